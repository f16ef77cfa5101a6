"""Codes that lost their leading zeros, or became numbers, are shown with an example; never guessed."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from odkanon.engine.dispatch import load
from odkanon.errors import InputError
from odkanon.read.input_spec import InputSpec
from odkanon.zoning.lookup import lookup_hierarchy

ZONES = lookup_hierarchy(pa.table({"block": ["01001", "01002", "52000"], "department": ["01", "01", "52"]}))


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize(
    ("written", "shown"), [("1001", "'1001', which is '01001'"), ("52000.0", "'52000.0', which is '52")]
)
def test_the_message_names_both_spellings(tmp_path: Path, engine: str, written: str, shown: str) -> None:
    path = tmp_path / "od.parquet"
    pa.parquet.write_table(pa.table({"origin": [written] * 3, "destination": [written] * 3}), path)
    with pytest.raises(InputError, match="no usable row") as error:
        load(InputSpec(path, hierarchy=ZONES), engine=engine)  # type: ignore[arg-type]
    assert shown in str(error.value)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_rows_that_match_stay_and_the_others_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, engine: str
) -> None:
    path = tmp_path / "od.parquet"
    pa.parquet.write_table(pa.table({"origin": ["52000", "1002", "x"], "destination": ["01001"] * 3}), path)
    with caplog.at_level(logging.WARNING):
        od = load(InputSpec(path, hierarchy=ZONES), engine=engine)  # type: ignore[arg-type]
    assert od.summary.trips == 1
    assert "2 codes of the data are not in the lookup table, such as '1002', which is '01002' there" in caplog.text


def test_codes_that_are_alike_are_two_zones() -> None:
    twins = lookup_hierarchy(pa.table({"block": ["1", "01"], "department": ["a", "b"]}))
    od = load(
        InputSpec(pa.table({"origin": ["1", "01"], "destination": ["01", "1"]}), hierarchy=twins), engine="memory"
    )
    assert od.summary.pairs == 2
