"""Corrections of a published release: which of its flows may change, so that both tables disclose no small group.

Of each flow some trips stay, some were taken out and some were added. Trips are taken out of a flow if they meet the
rule as a group, and those that stay do, too, or there are none; trips are added if they meet it. All other flows are as
they were, and a flow that was not listed lists added trips only. Additions and removals are decided apart, so that
somebody who knows the one learns nothing of the other. Whatever is not changed may always be nothing, and what is
changed meets the rule: ``tests/attacks/test_corrections.py`` tries every story of a few flows. The totals of the two
inputs must not be known; they would disclose how many changes were not made.

The rows of a cascade lie in each other and may have passed trips on, so trips cannot be taken out of them. Trips that
were only added are trips of their own: they become a second release, on the same rows, which shares no trip with the
first.

All of this is about one change. Two corrections of a release may differ by a single trip, so what a release was
compared with is kept beside its recipe, as ``NAME.corrected.json``, and there is no correction by anything else. Late
trips are those in none of these inputs, so each is written once. What a correction could not add must not be published
alone, where it would show that it was too little: a mark beside the file, ``FILE.late.json``, makes a release refuse.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection as Connection

from odkanon.audit.auditor import OpenReleases, open_releases
from odkanon.audit.counting.counted_measures import DISTINCT, MEASURES
from odkanon.audit.counting.scan import open_scan
from odkanon.audit.row_nesting import zone_join
from odkanon.core.atomic_write import whole_file, write_whole
from odkanon.core.parsing import parse_json
from odkanon.core.sql import literal, quote_text
from odkanon.engine.dispatch import load
from odkanon.errors import InputError, RefusedError
from odkanon.linked.fixed_zoning import release_on_zones, zoning_of
from odkanon.model.measures import MEASURES as COUNTED
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.pipeline.request import Request
from odkanon.pipeline.run import run
from odkanon.publish.save import save_release
from odkanon.read.input_spec import InputSpec, spec_from_recipe
from odkanon.release_format.folder import is_linked_folder, open_release
from odkanon.release_format.names import late_mark, sha256
from odkanon.release_format.recipe import public_digest, read_recipe
from odkanon.release_format.targets import ReleaseTarget, check_files

_IDENTITY = ("origin", "destination", *DISTINCT, "weight", "trips")
"""The columns in which two records of the same trip agree; times may have been corrected."""
_TIMES = ("start_time", "end_time")
_ADVICE = "give the added trips to the next release as part of its period (--late FILE without -o writes them)"
_LATER = (
    "two corrections may differ by fewer trips than the rule asks for. Give the trips that came since to the next "
    "release as part of its period (--late FILE without -o, of the first release, writes them)"
)


@dataclass(frozen=True)
class Correction:
    """The outcome of a correction: the changes between two inputs that were published."""

    release: Path | None
    """The new release; None if only the late trips were written."""
    supplement: bool
    """Whether it has the added trips only, to be added to the first release, instead of replacing it."""
    flows: int
    """Flows of the first release that changed, or were added to it."""
    added: int
    removed: int
    """Trips that were added to and taken out of flows."""
    not_added: int
    not_removed: int
    """Trips for which that would have disclosed too small a group."""
    late: Path | None
    """Where the trips are that were not added, if that was asked for."""


@dataclass(frozen=True)
class _Change:
    """Both inputs, as the audit counts them, in one database."""

    connection: Connection
    opened: OpenReleases
    specs: tuple[InputSpec, InputSpec]
    rule: Rule
    name: str


def correct(
    release: Path | str,
    new: Any,
    output: Path | str | None = None,
    *,
    trips: Any = None,
    late: Path | str | None = None,
    force: bool = False,
) -> Correction:
    """Publish a correction of a release, as far as the two disclose nothing together that the rule forbids.

    Parameters
    ----------
    release : path
        The published release, with its recipe beside it.
    new : path or sequence of paths
        The corrected trips of the same period, which are read as those of the release were.
    output : path, optional
        The folder of the correction. The trips that it counts are written beside it, as ``NAME.trips.csv`` or
        ``.parquet``, for the audit; they are private.
    trips : path, optional
        The trips of the release, if they are no longer where the recipe has them.
    late : path, optional
        Where to write the added trips that cannot be published now. They can be read with those of a later period.
    force : bool
        Replace earlier outputs.

    Raises
    ------
    RefusedError
        If no safe way is known, with the reason.

    Examples
    --------
    >>> import tempfile
    >>> import odkanon
    >>> import pyarrow.parquet
    >>> survey = odkanon.make_survey().slice(0, 6000)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     may, complete = (Path(folder) / name for name in ("may.parquet", "complete.parquet"))
    ...     pyarrow.parquet.write_table(survey.slice(0, 4500), may)
    ...     pyarrow.parquet.write_table(survey, complete)
    ...     made = odkanon.anonymize(may, k=5, protect="trips", method="odkanon", resolution=6)
    ...     change = correct(made.save(Path(folder) / "may"), complete, Path(folder) / "corrected")
    >>> change.added > 0
    True
    """
    folder, target = Path(release), None if output is None else Path(output)
    if target is None and late is None:
        raise InputError("a correction needs a folder, or a file for late trips", option="output DIR")
    check_files(*([] if late is None else [Path(late)]), force=force)
    if target is not None:
        ReleaseTarget(target, force=force).check()
        check_files(_beside(target), force=force)
    kept = folder.absolute().with_name(f"{folder.absolute().name}.corrected.json")
    before = parse_json(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    before = before if before.get("release") == public_digest(folder) else {}
    if target is not None:
        _check_before(folder, kept, before, new)
    change = _open(folder, new, trips, before.get("inputs", []) if target is None else [])
    nested = change.opened.releases[0].nested
    _refuse(change, folder, nested=nested, late_only=target is None)
    if target is not None:
        _decide(change, nested=nested)
    counts = _counts(change.connection)
    with _recorded(folder, kept, before, change.specs[1], target or Path(late or "")):
        if target is not None and nested:
            _supplement(change, counts, folder, target, force=force)
        elif target is not None:
            _replacement(change, counts, folder, target, force=force)
        if late is not None:
            _write_rows(change, Path(late), "now AND NOT applied AND state = 'changed'")
            mark = late_mark(Path(late))
            mark.unlink(missing_ok=True)
            if target is not None or before:
                write_whole(mark, json.dumps({"of": folder.name, "sha256": sha256(Path(late))}) + "\n")
    made = _counts(change.connection)
    return Correction(target, nested and target is not None, *made, late=None if late is None else Path(late))


def _beside(target: Path) -> Path:
    return target.with_name(f"{target.name}.trips.parquet")


def _digests(paths: Iterable[Path | str]) -> list[str]:
    return sorted(sha256(Path(each)) for each in paths if Path(each).is_file())


def _check_before(folder: Path, kept: Path, before: Mapping[str, Any], new: Any) -> None:
    """Raise if a release was compared with something else before, or its late trips are a file of their own."""
    paths = new if isinstance(new, list | tuple) else [new]
    listed = [each["sha256"] for each in before.get("inputs", [])]
    if listed and listed != [_digests(paths)]:
        raise RefusedError(
            f"{folder} was corrected before, from another input (see {before['output']}): {_LATER}. If nothing of "
            f"the earlier correction was published, delete {kept.name} beside it first"
        )
    late = before.get("late")
    if late is not None and (kept.parent / late).is_file():
        raise RefusedError(
            f"{late} has the late trips of {folder} already, and each must be published once. If none was, delete that "
            "file first; otherwise there is nothing left to correct"
        )


@contextmanager
def _recorded(folder: Path, kept: Path, before: Mapping[str, Any], new: InputSpec, output: Path) -> Iterator[None]:
    """Record what a release is compared with.

    The record is made first, so that no correction is without one, and taken back if nothing comes of it.
    """
    paths = [os.path.relpath(each, kept.parent) for each in map(Path, new.paths) if each.is_file()]
    made = {"paths": paths, "sha256": _digests(new.paths)}
    inputs = [each for each in before.get("inputs", []) if each["sha256"] != made["sha256"]]
    late = os.path.relpath(output, kept.parent) if output.suffix in (".csv", ".parquet") else None
    record = {"release": public_digest(folder), "inputs": [*inputs, made], "output": str(output), "late": late}
    text = kept.read_text(encoding="utf-8") if before else None
    write_whole(kept, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    try:
        yield
    except BaseException:
        kept.unlink(missing_ok=True)
        if text is not None:
            write_whole(kept, text)
        raise


def _open(folder: Path, new: Any, trips: Any, earlier: Sequence[Mapping[str, Any]]) -> _Change:
    """Read both inputs with the options of the recipe, and number the trips that stay, go and come.

    * ``earlier``: inputs that the release was compared with before, whose trips are not late again.
    """
    recipe, beside = read_recipe(folder), folder.absolute().parent
    if recipe is not None and (recipe.get("about") or {}).get("method") == "noise":
        raise RefusedError(
            f"{folder} was made with noise: make the corrected one in the same way; both are in its ledger"
        )
    if is_linked_folder(folder):
        raise RefusedError(
            "segments are safe side by side as they are; correcting one of them would undo that. " + _ADVICE
        )
    if recipe is None:
        raise InputError(f"there is no recipe beside {folder}; only the steward who made the release can correct it")
    specs = spec_from_recipe(recipe, beside, trips), spec_from_recipe(recipe, beside, new)
    opened = [open_releases([folder], trips=spec) for spec in specs]
    first = opened[0].releases[0]
    reasons = [each.message for each in opened[0].findings if each.check == "recount" and each.severity == "finding"]
    if first.number not in opened[0].exact or reasons:
        raise InputError(
            f"the trips of {folder} are needed as they were: {reasons[0] if reasons else 'these are others'}",
            option="trips FILE",
        )
    connection = opened[1].connection
    inputs = [(opened[0], specs[0])]
    for each in earlier:
        paths = [beside / path for path in each["paths"]]
        if not paths or _digests(paths) != each["sha256"]:
            named = ", ".join(each["paths"]) or "a table in memory"
            raise InputError(f"{folder} was compared with {named} before, which is gone or changed; restore it")
        spec = spec_from_recipe(recipe, beside, paths[0] if len(paths) == 1 else paths)
        inputs.append((open_releases([folder], trips=spec), spec))
    for at, (found, spec) in enumerate([*inputs, (opened[1], specs[1])]):
        connection.register("incoming", _counted_trips(found, spec, nested=first.nested))
        side = min(at, 1)
        connection.execute(f"CREATE OR REPLACE TABLE side{side} AS SELECT {side}::BOOLEAN AS now, * FROM incoming")
        connection.unregister("incoming")
        if at:
            _match(connection)
        if 0 < at < len(inputs):  # the trips of either
            connection.execute(
                "CREATE OR REPLACE TABLE side0 AS SELECT * EXCLUDE (state, applied) REPLACE (false AS now) "
                "FROM decided WHERE NOT now OR state = 'changed'"
            )
    return _Change(connection, opened[0], specs, _rule(recipe["about"]["rule"]), first.name)


def _match(connection: Connection) -> None:
    """Create the table ``decided`` of the trips of both inputs: those that stay, and those that changed.

    Of several records of the same trip, those with the same times are matched first.
    """
    connection.execute(
        "CREATE OR REPLACE TABLE unmatched AS SELECT *, false AS same FROM (FROM side0 UNION ALL FROM side1)"
    )
    for key in ((*_IDENTITY, *_TIMES), _IDENTITY):
        listed = ", ".join(key)
        connection.execute(
            "CREATE OR REPLACE TABLE unmatched AS SELECT * EXCLUDE (copy) REPLACE (same OR count(*) OVER "
            f"(PARTITION BY {listed}, same, copy) = 2 AND NOT same AS same) FROM (SELECT *, row_number() OVER "
            f"(PARTITION BY now, same, {listed} ORDER BY row) AS copy FROM unmatched)"
        )
    connection.execute(
        "CREATE OR REPLACE TABLE decided AS SELECT * EXCLUDE (same), false AS applied, "
        "CASE WHEN same THEN 'stays' ELSE 'changed' END AS state FROM unmatched"
    )


def _counted_trips(opened: OpenReleases, spec: InputSpec, *, nested: bool) -> pa.Table:
    """Return the trips that a release covers, with the zones of their ends; nested rows have no zones to go by."""
    number, prefix = opened.releases[0].number, "" if spec.tree is None else "'0:' || "
    ends = "NULL AS co, NULL AS cd"
    joins = ""
    if not nested:
        ends = "z.co, z.cd"
        joins = (
            "LEFT JOIN (SELECT p.origin, p.destination, n_origin.zone AS co, n_destination.zone AS cd FROM "
            f"(SELECT DISTINCT origin, destination FROM scope{number}) p "
            f"{zone_join('p.origin', 'origin', prefix, number)} "
            f"{zone_join('p.destination', 'destination', prefix, number)}) z "
            "ON z.origin = r.origin AND z.destination = r.destination"
        )
    identity = ", ".join(f"r.{name}" for name in (*_IDENTITY, *_TIMES))
    query = f"SELECT r.row, {identity}, {ends} FROM scope{number} r {joins} ORDER BY r.row"
    return opened.connection.sql(query).to_arrow_table()


def _rule(described: Mapping[str, Any]) -> Rule:
    mean = described.get("mean_weight")
    thresholds = {name: described[name] for name in COUNTED if name in described}
    return Rule(k=described.get("k"), mean_weight=None if mean is None else Fraction(mean), **thresholds)


def _refuse(change: _Change, folder: Path, *, nested: bool, late_only: bool) -> None:
    """Raise if no safe way to correct a release is known; its late trips can be written in any case."""
    release = change.opened.releases[0]
    reason = None
    if release.manifest.get("parameters", {}).keys() & {"corrects", "adds_to"}:
        raise RefusedError(f"{folder} cannot be corrected: it corrects another release already, and {_LATER}")
    if late_only:
        return
    if release.axes or release.subject.place is not None:
        reason = "rows of a cube, or by one place, depend on each other in ways that were not examined"
    elif release.has_boxes:
        reason = "its zones are boxes, which are cut anew for other trips"
    elif release.thinned:
        reason = "pairs were suppressed before zones were formed, so a flow does not have all trips between its zones"
    elif release.constraints:
        reason = "its rule limits shares or destinations, and a change that keeps these may still disclose them"
    elif nested:
        gone = change.connection.execute(
            "SELECT coalesce(sum(trips), 0) FROM decided WHERE NOT now AND state = 'changed'"
        ).fetchall()[0][0]
        if gone:
            reason = (
                f"{gone:,} of its trips are not in the new input, or have another place, person or weight, and trips "
                "cannot be taken out of the rows of a cascade: they lie in each other, and may have passed trips on"
            )
    if reason is not None:
        raise RefusedError(f"{folder} cannot be corrected: {reason}. Instead, {_ADVICE}")


def _meets(rule: Rule, table: str, condition: str) -> str:
    """Return, in SQL, by flow whether the trips that meet a condition meet a rule."""
    totals = {each.name: each.total for each in MEASURES}
    tests = [f"{totals[name]} >= {float(value) * (1 - 1e-12):.17g}" for name, value in rule.thresholds.items()]
    return (
        f"SELECT co, cd FROM {table} WHERE {condition} AND co IS NOT NULL GROUP BY co, cd HAVING {' AND '.join(tests)}"
    )


def _decide(change: _Change, *, nested: bool) -> None:
    """Mark the trips that are taken out of flows and added to them."""
    connection, number = change.connection, change.opened.releases[0].number
    gone, come = "NOT now AND state = 'changed'", "now AND state = 'changed'"
    if nested:
        connection.execute(f"UPDATE decided SET applied = true WHERE {come}")
        return
    listed = f"SELECT origin, destination FROM classes WHERE release = {number}"
    stays = "NOT now AND state = 'stays'"
    connection.execute(f"CREATE TABLE added AS {_meets(change.rule, 'decided', come)}")
    connection.execute(
        f"CREATE TABLE removed AS {_meets(change.rule, 'decided', gone)} INTERSECT ({listed}) EXCEPT "
        f"(SELECT co, cd FROM decided WHERE {stays} EXCEPT ({_meets(change.rule, 'decided', stays)}))"
    )
    for condition, flows in ((gone, "removed"), (come, "added")):
        connection.execute(f"UPDATE decided SET applied = true WHERE {condition} AND (co, cd) IN (FROM {flows})")


def _counts(connection: Connection) -> tuple[int, int, int, int, int]:
    """Return the changed flows, and the trips that are added, removed, not added and not removed."""
    flows = connection.execute("SELECT count(DISTINCT (co, cd)) FROM decided WHERE applied").fetchall()[0][0]
    found = connection.execute(
        "SELECT "
        + ", ".join(
            f"coalesce(sum(trips) FILTER ({side} AND {applied} AND state = 'changed'), 0)::BIGINT"
            for applied in ("applied", "NOT applied")
            for side in ("now", "NOT now")
        )
        + " FROM decided"
    ).fetchall()[0]
    return int(flows), *map(int, found)  # type: ignore[return-value]


def _write_rows(change: _Change, path: Path, condition: str) -> None:
    """Write the rows of both inputs whose trips meet a condition, unchanged and with the delimiter of the input."""
    parts, mark = [], ","
    for now, spec in enumerate(change.specs):
        query = f"SELECT row FROM decided WHERE now = {bool(now)} AND {condition}"
        wanted = change.connection.sql(query).to_arrow_table()
        scan = open_scan(change.connection, spec)
        mark = found[1] if (found := re.search("delim='(.)'", scan.sql)) else mark
        change.connection.register("wanted", wanted)
        parts.append(
            change.connection.sql(
                f"SELECT * EXCLUDE (n) FROM (SELECT row_number() OVER () AS n, * FROM {scan.sql}) "
                "WHERE n IN (SELECT row FROM wanted) ORDER BY n"
            ).to_arrow_table()
        )
        change.connection.unregister("wanted")
    if parts[0].schema != parts[1].schema and all(part.num_rows for part in parts):  # one of them is a text file
        parts = [part.cast(pa.schema([(name, pa.string()) for name in part.column_names])) for part in parts]
    filled = [part for part in parts if part.num_rows] or parts[1:]
    change.connection.register("chosen_rows", pa.concat_tables(filled, promote_options="default"))
    with whole_file(path) as partial:
        form = "FORMAT parquet" if path.suffix == ".parquet" else f"FORMAT csv, HEADER, DELIMITER {quote_text(mark)}"
        change.connection.execute(f"COPY chosen_rows TO {literal(partial)} ({form})")
    change.connection.unregister("chosen_rows")


def _written(change: _Change, path: Path, condition: str) -> InputSpec:
    """Write the rows of some trips as a file of their own, and return how to read it."""
    _write_rows(change, path, condition)
    return replace(change.specs[1], source=path, encoding=None, delimiter=None)


def _nothing(change: _Change, counts: Sequence[int]) -> RefusedError:
    _, _, _, come, gone = counts
    if not come and not gone:
        return RefusedError(f"{change.name} needs no correction: both inputs have the same trips")
    return RefusedError(
        f"no flow can be corrected: {come:,} trips were added and {gone:,} taken out, and in no flow do they meet "
        f"{change.rule} by themselves, so that any change would disclose a smaller group. Leave the release as it is, "
        f"and {_ADVICE}"
    )


def _replacement(change: _Change, counts: Sequence[int], folder: Path, target: Path, *, force: bool) -> None:
    """Write the release that replaces one whose zones do not nest."""
    if not counts[0]:
        raise _nothing(change, counts)
    number = change.opened.releases[0].number
    listed = f"(co, cd) IN (SELECT (origin, destination) FROM classes WHERE release = {number})"
    counted = f"((now AND applied) OR (NOT now AND NOT applied AND {listed}))"
    spec = _written(change, _beside(target), counted)
    zoning = zoning_of(open_release(folder))
    made = release_on_zones(load(spec).in_memory(), change.rule, zoning, full=spec.tree)
    expected = change.connection.execute(
        f"SELECT co, cd, sum(trips)::BIGINT FROM decided WHERE {counted} GROUP BY 1, 2 ORDER BY 1, 2"
    ).fetchall()
    if made.refusal or _flows(made) != [tuple(row) for row in expected]:
        _beside(target).unlink(missing_ok=True)
        raise RefusedError(
            f"{folder} cannot be corrected: its zones do not give the same flows for other trips. {_ADVICE}"
        )
    # The change of a number of persons could disclose that few of them are new.
    hidden = replace(made.classes, contributors={}, min_contributors=made.classes.contributors)
    spec_of = made.spec.with_parameters(corrects=change.name)
    save_release(replace(made, classes=hidden, spec=spec_of), target, force=force)


def _flows(made: Release) -> list[tuple[str, str, int]]:
    table = made.to_arrow()
    columns = [table.column(name).to_pylist() for name in ("origin", "destination", "trips")]
    return sorted(zip(*columns, strict=True))


def _supplement(change: _Change, counts: Sequence[int], folder: Path, target: Path, *, force: bool) -> None:
    """Write the release of the added trips, on the rows of a cascade."""
    if not counts[1]:
        raise _nothing(change, counts)
    added = _beside(target)
    spec = _written(change, added, "now AND applied")
    request = Request(spec, change.rule, method="cascade", zones_of=folder)
    try:
        made = run(request)
        assert isinstance(made, Release)  # without segments
        save_release(replace(made, spec=made.spec.with_parameters(adds_to=change.name)), target, force=force)
    except (InputError, RefusedError) as error:
        added.unlink(missing_ok=True)
        raise RefusedError(
            f"the added trips cannot be published on the rows of {folder}: {error}. Instead, {_ADVICE}"
        ) from None
