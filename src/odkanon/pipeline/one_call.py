"""`odkanon.anonymize`: what ``odkanon anonymize`` does, in one call."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from odkanon.core.parsing import is_number
from odkanon.engine.dispatch import parse_bytes
from odkanon.errors import InputError, InvalidValueError, ReleaseWarning, UnknownNameError
from odkanon.linked import LinkedReleases
from odkanon.methods.method_registry import METHODS, NOISE_METHOD, Method
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.pipeline.cautions import cautions
from odkanon.pipeline.request import Request, RuleRequest, Target
from odkanon.pipeline.run import run
from odkanon.read.input_spec import InputSpec, ReadOptions, as_input_spec, check_unread, lists_read_options

if TYPE_CHECKING:
    from odkanon.engine.dispatch import EngineName
    from odkanon.model.od import Matrix

MethodName = Literal["odkanon", "oigh", "atg-soft", "mondrian", "cascade", "treecut", "freezones", "noise"]
"""Methods of this package; those of others are passed as the `odkanon.Method` that was registered."""

PROTECTED: dict[str, str] = {"trips": "participants", "weight": "population"}
"""Measures that name a target as well; persons and households are both."""


class Options(ReadOptions, total=False):
    """The keyword arguments of `anonymize`, for type checkers."""

    k: int
    protect: Target | Literal["trips", "weight"] | Sequence[Target | Literal["trips", "weight"]]
    min_trips: int | None
    min_weight: float | Fraction | None
    min_persons: int | None
    min_households: int | None
    max_share: float | None
    min_destinations: int | None
    method: MethodName | Method | None
    budget: float | None
    budget_of: Literal["rows", "trips"] | None
    suppress: Literal["before", "after"] | None
    max_levels: int | None
    target: float | None
    objective: Literal["g", "e", "c_avg"] | None
    compactness: float | None
    iterations: int | None
    time_limit: float | None
    coarsest: int | None
    allow_inference: bool
    total_known: bool
    substeps: bool
    at_level: str | int | None
    symmetric: bool
    epsilon: float | None
    delta: float | None
    trips_per_person: int | None
    ledger: str | Path | None
    epsilon_limit: float | None
    parameters: Mapping[str, Any] | None
    by: str | Sequence[str]
    drop_order: str | None
    age_bands: Sequence[int] | None
    segment_budget: float | None
    protect_intervals: bool
    after: str | Path | None
    zones_of: str | Path | None
    engine: EngineName | None
    memory_limit: int | str | None
    spark_master: str | None


@overload
def anonymize(
    source: Any, rule: Rule | None = None, *, segment: None = None, **options: Unpack[Options]
) -> Release: ...


@overload
def anonymize(
    source: Any, rule: Rule | None = None, *, segment: str | Sequence[str], **options: Unpack[Options]
) -> LinkedReleases: ...


@lists_read_options
def anonymize(
    source: Any,
    rule: Rule | None = None,
    *,
    k: int = 10,
    protect: str | Sequence[str] = (),
    min_trips: int | None = None,
    min_weight: float | Fraction | None = None,
    min_persons: int | None = None,
    min_households: int | None = None,
    max_share: float | None = None,
    min_destinations: int | None = None,
    method: MethodName | Method | None = None,
    budget: float | None = None,
    budget_of: Literal["rows", "trips"] | None = None,
    suppress: Literal["before", "after"] | None = None,
    max_levels: int | None = None,
    target: float | None = None,
    objective: Literal["g", "e", "c_avg"] | None = None,
    compactness: float | None = None,
    iterations: int | None = None,
    time_limit: float | None = None,
    coarsest: int | None = None,
    allow_inference: bool = False,
    total_known: bool = False,
    substeps: bool = False,
    at_level: str | int | None = None,
    symmetric: bool = False,
    epsilon: float | None = None,
    delta: float | None = None,
    trips_per_person: int | None = None,
    ledger: str | Path | None = None,
    epsilon_limit: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    by: str | Sequence[str] = (),
    drop_order: str | None = None,
    segment: str | Sequence[str] | None = None,
    age_bands: Sequence[int] | None = None,
    segment_budget: float | None = None,
    protect_intervals: bool = False,
    after: str | Path | None = None,
    zones_of: str | Path | None = None,
    engine: EngineName | None = None,
    memory_limit: int | str | None = None,
    spark_master: str | None = None,
    **options: Unpack[ReadOptions],
) -> Release | LinkedReleases:
    """Turn trips into origin-destination flows that can be published.

    Parameters
    ----------
    source : path, sequence of paths, table, InputSpec or matrix
        Trips or an OD table: a file of any kind that `odkanon.InputSpec` lists, a DataFrame of pandas or polars, a
        GeoDataFrame, an Arrow table; or a matrix from `odkanon.read_matrix`, which needs no further reading options.
    rule : Rule, optional
        What every published flow must meet, instead of ``k``, ``protect`` and the thresholds.
    k : int
        How many must share every published flow, in [1, inf).
    protect : str or sequence of str
        Who: ``participants`` (or ``trips``: k trips), ``population`` (or ``weight``: k times the mean weight of a
        trip), ``persons``, ``households`` (k distinct ones). Of several, all must hold. By default participants, and
        persons where the input names them.
    min_trips, min_weight, min_persons, min_households : number, optional
        Thresholds one by one, instead of ``k`` and ``protect``.
    max_share : float, optional
        Largest share of the trips of a flow that one person or household may have, in (0, 1).
    min_destinations : int, optional
        Fewest destinations published from every origin zone.
    method : str or Method, optional
        ``"cascade"`` by default; ``"oigh"`` with ``at_level``, ``"odkanon"`` with what needs one zoning for all flows:
        ``symmetric``, ``segment``, a budget, ``suppress``, ``max_share``, ``min_destinations``.
    budget, budget_of, suppress, max_levels
        Share that may be suppressed, in [0, 1); a share of ``"rows"`` or ``"trips"``; spent ``"before"`` or
        ``"after"`` generalising; with ``"before"``, levels that a pair may be lifted to be kept.
    target, objective, compactness, iterations, time_limit, coarsest, allow_inference, total_known
        Parameters of single methods: trips per origin zone (atg-soft); what is minimised (treecut); roundness of zones
        (freezones); length of the search (treecut, freezones); the coarsest level to publish, whether groups below
        the rule may be inferred, and whether the total of the input is known (cascade).
    substeps : bool
        Two more levels between an H3 cell and its parent.
    at_level : str or int, optional
        Publish at this level of the hierarchy, or H3 resolution, only.
    symmetric : bool
        One zoning for origins and destinations.
    epsilon, delta, trips_per_person
        With ``method="noise"``: the promise of differential privacy, and the most trips of a person that count;
        ``unit`` is ``"person"`` or ``"trip"``. See `odkanon.methods.noise.method.noise`.
    ledger, epsilon_limit
        With noise: the file that adds up what was spent on the same people, by default the nearest
        `odkanon-ledger.json` beside the input or above it; and the most epsilon that it may come to.
    parameters : mapping, optional
        Further parameters, of a method from another package.
    by, drop_order
        Attributes to publish by in one table (a cube), such as ``["mode", "hour:7-9,9-17"]``, and in which order
        detail is dropped.
    segment, segment_budget, protect_intervals
        Attributes to split the trips by, in tables that are safe side by side; the share that the tables of a segment
        may suppress; and whether small flows are protected from being known to within less than k.
    age_bands : sequence of int, optional
        Where bands of ages begin.
    after, zones_of : path, optional
        An earlier release: use only trips after its period; use its zones, or the rows of a cascade.
    engine, memory_limit, spark_master
        Where to compute; see `odkanon.read_matrix`.
    **options
        How to read ``source``; see `odkanon.InputSpec`.

    Returns
    -------
    Release or LinkedReleases
        The latter with ``segment``. Where the rule cannot be met the release is empty, and ``refusal`` has the reason.
        Only what ``save`` writes into its folder may be shared: the object holds the input.

    Warns
    -----
    ReleaseWarning
        About everything that a person should know before publishing.

    Examples
    --------
    >>> import odkanon
    >>> release = odkanon.anonymize(odkanon.make_survey(), k=10, resolution=7)
    >>> release.flows.to_arrow().column_names
    ['origin', 'destination', 'trips', 'weight', 'at_cap']
    """
    own = {
        "budget": budget,
        "budget_of": budget_of,
        "suppress": suppress,
        "max_levels": max_levels,
        "target": target,
        "objective": objective,
        "compactness": compactness,
        "iterations": iterations,
        "time_limit": time_limit,
        "coarsest": coarsest,
        "allow_inference": allow_inference or None,
        "total_known": total_known or None,
        "substeps": substeps or None,
        "at_level": None if at_level is None else str(at_level),
        "symmetric": symmetric or None,
        "drop_order": drop_order,
        "epsilon": epsilon,
        "delta": delta,
        "trips_per_person": trips_per_person,
    }
    if age_bands is not None and not (isinstance(age_bands, Sequence) and all(map(is_number, age_bands))):
        raise InvalidValueError.expected("age_bands", "a list of ages, such as [18, 40, 65]", age_bands)
    thresholds = {"trips": min_trips, "weight": min_weight, "persons": min_persons, "households": min_households}
    attributes = _texts("by", by)
    if method == NOISE_METHOD or (method is None and epsilon is not None):
        own["unit"] = options.pop("unit", None)
    given = _input_of(source, options)
    request = Request(
        given,
        _rule_request(rule, k, protect, thresholds, max_share, min_destinations),
        _method_name(method),
        {name: value for name, value in own.items() if value is not None} | dict(parameters or {}),
        by=attributes,
        segments=() if segment is None else _texts("segment", segment),
        age_bands=None if age_bands is None else tuple(age_bands),
        segment_budget=segment_budget,
        protect_intervals=protect_intervals,
        after=None if after is None else Path(after),
        zones_of=None if zones_of is None else Path(zones_of),
        ledger=None if ledger is None else Path(ledger),
        epsilon_limit=epsilon_limit,
        engine=engine,
        memory_limit=parse_bytes(memory_limit) if isinstance(memory_limit, str) else memory_limit,
        spark_master=spark_master,
    )
    result = run(request)
    for text in cautions(result):
        warnings.warn(text, ReleaseWarning, stacklevel=3)
    return result


def _rule_request(
    rule: Rule | None,
    k: int,
    protect: str | Sequence[str],
    thresholds: Mapping[str, Any],
    max_share: float | None,
    min_destinations: int | None,
) -> Rule | RuleRequest:
    """Return what is asked of the rule; a complete rule excludes its parts."""
    given = {name: value for name, value in thresholds.items() if value is not None}
    targets = tuple(PROTECTED.get(name, name) for name in _texts("protect", protect))
    if rule is None:
        return RuleRequest(k, targets, given, max_share, min_destinations)
    if not isinstance(rule, Rule):
        raise InvalidValueError.expected("the rule", "an odkanon.Rule, such as Rule(trips=10)", rule)
    if k != 10 or targets or given or max_share is not None or min_destinations is not None:
        raise InputError("the rule is given; leave out k, protect and thresholds, or leave out the rule")
    return rule


def _input_of(source: Any, options: ReadOptions) -> InputSpec | Matrix:
    """Return what to read, or the matrix that was read already."""
    if not hasattr(source, "in_memory"):
        return as_input_spec(source, options)
    check_unread(options)
    matrix: Matrix = source
    return matrix


def _method_name(method: str | Method | None) -> str:
    """Return the name of a method that is registered; empty for the one that the other options imply."""
    if method is None:
        return ""
    name = method.name if isinstance(method, Method) else method
    if not isinstance(name, str) or name not in METHODS:
        raise UnknownNameError.among("method", name, METHODS)
    return name


def _texts(what: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """Return one text or several as a tuple."""
    texts = (value,) if isinstance(value, str) or not isinstance(value, Sequence) else tuple(value)
    if not all(isinstance(each, str) for each in texts):
        raise InvalidValueError.expected(what, "a text or a list of texts", value)
    return texts
