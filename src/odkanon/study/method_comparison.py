"""The comparison of methods on one input: runs, a table of results, and the best method for each use."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack

import pyarrow as pa

from odkanon._version import __version__
from odkanon.attributes.spec import AGE_BANDS, segment_attributes
from odkanon.core.atomic_write import whole_file, write_text, write_whole
from odkanon.core.registry import import_extra
from odkanon.core.sql import write_csv
from odkanon.errors import InputError
from odkanon.methods.method_registry import METHODS, NOISE_METHOD, Method
from odkanon.methods.noise.method import make_promise
from odkanon.model.od import ODMatrix
from odkanon.model.release_spec import Budget
from odkanon.pipeline.one_call import PROTECTED
from odkanon.quality.utility import extra_metrics
from odkanon.read.attribute_values import source_columns
from odkanon.read.input_spec import InputSpec, ReadOptions, as_input_spec, check_unread, lists_read_options
from odkanon.read.od_table import spec_to_matrix
from odkanon.read.trips import Trips, spec_to_trips
from odkanon.release_format.names import guard_text
from odkanon.study.experiment import PAPER_ROWS, WHOLE, Experiment, Outcome, all_rows, find_row, read_outcomes
from odkanon.study.tables import PaperTable, long_table, paper_tables, targets_of
from odkanon.study.tradeoffs import draw_targets

Progress = Callable[[int], AbstractContextManager[Callable[[int, str], None]]]
"""Given the number of runs, a context with a function to call with the number done and the next run."""

USES: tuple[tuple[str, float, Callable[[Outcome], bool]], ...] = (
    ("flows across the whole area", 8, lambda outcome: True),
    ("flows between its parts", 4, lambda outcome: True),
    ("single quarters", 1, lambda outcome: True),
    ("one zone a place, the same for all partners", 4, lambda run: not METHODS[find_row(run.cell.row).method].overlaps),
    ("all trips but one in a thousand", 4, lambda outcome: (outcome.suppressed or 0.0) <= 0.001),
)
"""Uses of a matrix: a description, the squares to evaluate it on, and which releases are suitable."""


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """Methods side by side."""

    experiment: Experiment
    """The input and the grid of runs."""
    outcomes: tuple[Outcome, ...]
    """The outcome of each run."""

    @property
    def tables(self) -> list[PaperTable]:
        """The tables of the paper, as far as the comparison fills them."""
        return paper_tables(self.outcomes, self.experiment)

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with one row per segment, target, method and measure, and a column per metric."""
        return long_table(self.outcomes)

    def to_pandas(self) -> Any:
        """Return the table of `to_arrow` as a pandas DataFrame."""
        import_extra("pandas", purpose="a DataFrame", extra="dataframes")
        return self.to_arrow().to_pandas()

    def save(self, folder: str | Path) -> str | None:
        """Write ``tables.md``, ``tables.tex``, ``tables.csv`` and ``zones.png``; return why there is no picture."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "tables.md", "\n".join(table.to_markdown() for table in self.tables))
        write_whole(folder / "tables.tex", "\n".join(table.to_latex() for table in self.tables))
        with whole_file(folder / "tables.csv") as partial:
            write_csv(guard_text(self.to_arrow()), partial)
        return draw_targets(self.experiment, folder / "zones.png")

    @property
    def targets(self) -> list[str]:
        """The protection targets."""
        return targets_of(self.outcomes)

    def ranking(self, target: str) -> list[Outcome]:
        """Return the runs on the whole input for a target by descending CPC on squares of 4 km, refused ones last.

        Without CPC, they are sorted by ascending G.
        """

        def merit(outcome: Outcome) -> tuple[bool, float, float]:
            cpc = outcome.cpc("trips", 4)
            g = outcome.utility.get("trips", {}).get("g")
            return outcome.refusal is not None, -1.0 if cpc is None else -cpc, float("inf") if g is None else g

        whole = [each for each in self.outcomes if (each.cell.dimension, each.cell.target) == (WHOLE, target)]
        return sorted(whole, key=merit)

    def recommendations(self, target: str) -> list[tuple[str, Outcome, float, float]]:
        """Return for each use the best suitable run, the side of the squares in km, and the CPC on them."""
        # Noise keeps another promise, and which of the two is asked for is no question of accuracy.
        runs = [outcome for outcome in self.ranking(target) if outcome.refusal is None and not outcome.promise]
        rated = [
            [(use, run, km, cpc) for run in runs if suits(run) and (cpc := run.cpc("trips", km))]
            for use, km, suits in USES
        ]
        return [max(suitable, key=lambda each: each[3]) for suitable in rated if suitable]


@contextmanager
def _silent(runs: int) -> Iterator[Callable[[int, str], None]]:
    yield lambda done, text: None


@lists_read_options
def compare(
    source: Any,
    methods: Sequence[str | Method] | Literal["all"] | None = None,
    *,
    k: int = 10,
    budget: float = 0.10,
    protect: str | Sequence[str] | None = None,
    segment: str | Sequence[str] = (),
    age_bands: Sequence[int] = AGE_BANDS,
    noise: Mapping[str, Any] | None = None,
    log: str | Path | None = None,
    force: bool = False,
    progress: Progress = _silent,
    **reading: Unpack[ReadOptions],
) -> MethodComparison:
    """Run methods side by side on one input, and evaluate their releases.

    Parameters
    ----------
    source : path, sequence of paths, table, InputSpec, Trips or ODMatrix
        The input; see `odkanon.anonymize`. Only trips can be segmented.
    methods : sequence of str or Method, or "all", optional
        Methods, registered ones included, or the variants ``odkanon-published``, ``oigh-no-budget`` and
        ``cascade-budget``. By default all methods, or those of the paper with ``segment``.
    k : int
        The threshold of every published flow, in [1, inf).
    budget : float
        Share of trips that may be suppressed, in [0, 1).
    protect : str or sequence of str, optional
        Protection targets, as in `odkanon.anonymize`: all must hold. By default two comparisons, one that protects
        participants and one that protects the population.
    segment : str or sequence of str
        Attributes whose segments are compared as well, such as ``"sex"``.
    age_bands : sequence of int
        The ages at which bands begin.
    noise : mapping, optional
        The promise of ``noise``, which then is among all methods: ``{"epsilon": 3}`` or more of the options of
        `odkanon.methods.noise.method.noise`. Its draws are in no ledger: do not publish them or their accuracy.
    log : path, optional
        A file that records finished runs; an interrupted comparison resumes from it.
    force : bool
        Run everything again instead of resuming.
    progress : callable, optional
        Given the number of runs, a context manager that yields a function of the number done and the next run.
    **reading
        Options for reading ``source``, such as ``resolution`` and ``where``; see `odkanon.anonymize`.

    Returns
    -------
    MethodComparison
        Convert it with `MethodComparison.to_pandas`, or write its tables with `MethodComparison.save`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from odkanon import read_hierarchy
    >>> tree = read_hierarchy(pa.table({"zone": ["a1", "a2", "b1", "b2"], "district": ["a", "a", "b", "b"]}))
    >>> ends = {"origin": ["a1", "a1", "b1", "b2"], "destination": ["b1", "b2", "a1", "a1"]}
    >>> flows = pa.table({**ends, "trips": [20, 12, 13, 2]})
    >>> found = compare(flows, ["odkanon", "cascade"], k=10, budget=0.1, hierarchy=tree)
    >>> found.to_pandas()[["method", "classes", "g"]].values.tolist()
    [['odkanon', 2, 2.0], ['cascade', 3, 2.0]]
    """
    texts = (segment,) if isinstance(segment, str) else tuple(segment)
    experiment, settings = make_experiment(
        source,
        methods,
        k=k,
        budget=budget,
        protect=protect,
        segment=texts,
        age_bands=age_bands,
        noise=noise,
        reading=reading,
    )
    return run_experiment(experiment, settings, log=log, force=force, progress=progress)


def make_experiment(
    source: Any,
    methods: Sequence[str | Method] | Literal["all"] | None,
    *,
    k: int,
    budget: float,
    protect: str | Sequence[str] | None,
    segment: Sequence[str],
    age_bands: Sequence[int],
    noise: Mapping[str, Any] | None = None,
    reading: ReadOptions | None = None,
) -> tuple[Experiment, dict[str, Any]]:
    """Read the input of a comparison; return the grid of its runs, and the settings that determine their outcomes."""
    dimensions = tuple(dict.fromkeys(segment))
    # Searching for zones takes seconds per run: little for one choice, much for a grid of segments.
    usual = PAPER_ROWS if dimensions and methods is None else all_rows()
    chosen = () if methods in (None, "all") else methods or ()
    rows = tuple(each.name if isinstance(each, Method) else each for each in chosen) or usual
    if noise and not chosen:
        rows = (*rows, NOISE_METHOD)
    noisy = any(METHODS[find_row(row).method].noisy for row in rows)
    if noise and not noisy:
        raise InputError(f"the options of noise ({', '.join(noise)}) need {NOISE_METHOD} among the methods")
    promise = make_promise(**noise or {}) if noisy else None
    Budget(budget, "trips")
    if isinstance(source, Trips | ODMatrix):
        check_unread(reading or {}, ("resolution", "within") if isinstance(source, Trips) else ())
        data, spec = source, InputSpec(None, **(reading or {}))
    else:
        spec = as_input_spec(source, reading or {})
        data = _read(spec, source_columns(segment_attributes(dimensions)))
    given = (protect,) if isinstance(protect, str) else protect or ()
    joined = "+".join(dict.fromkeys(PROTECTED.get(name, name) for name in given))
    targets = (joined,) if joined else None
    experiment = Experiment(data, k, budget, dimensions, rows, spec.finest, spec.area, age_bands, targets, promise)
    settings = {
        "version": __version__,
        "sha256": data.source.sha256,
        "rows": data.source.rows,
        "k": k,
        "budget": budget,
        "resolution": spec.finest,
        "reading": spec.to_dict(),
        "age_bands": list(age_bands),
        "targets": None if targets is None else list(targets),
    }
    extra = [metric.name for metric in extra_metrics()]
    more = {"metrics": extra, "noise": promise and vars(promise)}
    return experiment, settings | {name: value for name, value in more.items() if value}


def _read(spec: InputSpec, attributes: list[str]) -> Trips | ODMatrix:
    """Read trips with the attributes to segment by, or an OD table, which cannot be segmented."""
    table = spec.open()
    if spec.detect_kind(table) == "trips":
        return spec_to_trips(spec, attributes, table=table)
    if attributes:
        raise InputError("segments need trips with coordinates; an OD table cannot be split")
    return spec_to_matrix(spec, table=table)


def run_experiment(
    experiment: Experiment,
    settings: Mapping[str, Any],
    *,
    log: str | Path | None = None,
    force: bool = False,
    progress: Progress = _silent,
) -> MethodComparison:
    """Run a grid; with a log, resume from the runs that it records."""
    path = None if log is None else Path(log)
    done = {} if path is None or force else read_outcomes(path, settings)
    work = list(experiment.run(done))
    if path is not None:
        # The log is replaced only when the new one holds all earlier outcomes.
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        kept = [json.dumps(settings), *(outcome.to_json() for outcome in done.values())]
        write_text(partial, "".join(f"{line}\n" for line in kept))
        partial.replace(path)
    outcomes = []
    with progress(len(work)) as report:
        for finished, (cell, run) in enumerate(work):
            report(finished, f"{cell.dimension} {cell.segment}, {cell.target}: {cell.row}")
            outcomes.append(run())
            if path is not None and cell not in done:
                with path.open("a", encoding="utf-8", newline="\n") as file:
                    file.write(outcomes[-1].to_json() + "\n")
    return MethodComparison(experiment, tuple(outcomes))
