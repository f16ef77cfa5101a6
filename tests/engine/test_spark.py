"""Real Spark, in local mode, gives the same release as memory, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from engine.needs import ON_SPARK
from engine.same import RULES, WAYS, check_same, messy
from odkanon import Area, InputError, Rule, build_od, lookup_hierarchy, read_od, read_trips
from odkanon.cells import str_to_cell
from odkanon.crowd import write_crowd
from odkanon.engine.choose import load_table
from odkanon.engine.matrix import SqlMatrix
from odkanon.engine.spark import Spark, open_spark_input, to_spark
from odkanon.sample import CENTRAL_CELLS

GOLDEN = Path(__file__).parent.parent / "golden"
pytestmark = ON_SPARK


def on_spark(session: Any, source: Path, *, fetchable: int | None = None, **options: Any) -> SqlMatrix:
    od = load_table(open_spark_input(source, backend=Spark(session, fetchable=fetchable)), **options)
    assert isinstance(od, SqlMatrix)
    return od


def saved(table: pa.Table, path: Path) -> Path:
    pyarrow.parquet.write_table(table, path)
    return path


def test_all_methods_and_rules_on_a_messy_survey(session: Any, tmp_path: Path) -> None:
    path = saved(messy(), tmp_path / "messy.parquet")
    check_same(build_od(read_trips(path)), on_spark(session, path))


def test_every_statement_runs_on_spark(session: Any, tmp_path: Path) -> None:
    """Nothing is fetched here that the engine could leave where it is."""
    table = pa.table({**_golden("tiny"), "person": np.arange(len(_golden("tiny")["origin"])) % 23})
    path = saved(table, tmp_path / "tiny.parquet")
    reference, other = read_od(path), on_spark(session, path, fetchable=0)
    check_same(reference, other, [Rule(trips=5)], [WAYS[0], WAYS[3]])
    check_same(reference, other, [Rule(weight=60, persons=3)], WAYS[:1])
    check_same(reference, other, [Rule(persons=4)], [{"method": "oigh"}])


def _golden(case: str) -> dict[str, Any]:
    table = pa.csv.read_csv(GOLDEN / case / "od.csv")
    return {name: table.column(name) for name in table.column_names}


def test_datasets_areas_filters_and_other_zonings(session: Any, tmp_path: Path) -> None:
    write_crowd(1_500, tmp_path / "crowd")
    area = Area(cells=np.unique(str_to_cell(pa.array(CENTRAL_CELLS))))
    where = "weight > 0.5 and part in [0, 1]"
    options: dict[str, Any] = {"within": area}
    check_same(
        build_od(read_trips(tmp_path / "crowd", where=where), **options),
        on_spark(session, tmp_path / "crowd", where=where, **options),
        RULES[:1],
        WAYS[:1],
    )
    tree = lookup_hierarchy(pa.table({"zone": list("abcd"), "town": ["it's", "it's", 'q"', 'q"']}))
    path = saved(
        pa.table({"origin": list("abcdzabc") * 9, "destination": list("ddccbaab") * 9}), tmp_path / "od.parquet"
    )
    check_same(read_od(path, hierarchy=tree), on_spark(session, path, hierarchy=tree), [Rule(trips=10)], WAYS[:1])


def test_what_spark_cannot_read_is_one_clear_error(session: Any, tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="which takes Parquet files"):
        open_spark_input(tmp_path / "trips.csv", backend=Spark(session))


def test_spelling() -> None:
    assert to_spark("""SELECT "a""b", hash("c") FROM t WHERE "d" = 'it''s "\\'""") == (
        """SELECT `a"b`, xxhash64(`c`) FROM t WHERE `d` = 'it\\'s "\\\\'"""
    )
