"""Run a request: read, protect, and write the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odkanon.errors import InputError, RefusedError
from odkanon.linked import LinkedReleases
from odkanon.methods import anonymize as run_method
from odkanon.methods.cascade.reuse import EarlierRows
from odkanon.methods.method_registry import CUBE_METHOD, METHODS, NOISE_METHOD
from odkanon.model.release import Release
from odkanon.model.rule import NO_RULE
from odkanon.pipeline.request import Request
from odkanon.read.input_spec import InputSpec, in_memory
from odkanon.read.trips import rejected_share, selected_rows, unusable_rows

if TYPE_CHECKING:
    from odkanon.attributes.spec import AttributeSpec
    from odkanon.linked.fixed_zoning import Zoning
    from odkanon.model.od import Matrix
    from odkanon.model.provenance import Source
    from odkanon.publish.report import PageTexts

Stage = Callable[[str], None]
"""Is called with what happens next."""


def _silent(text: str) -> None:
    del text


def run(request: Request, *, stage: Stage = _silent) -> Release | LinkedReleases:
    """Read the input of a request and protect it.

    Parameters
    ----------
    request : Request
        What to make.
    stage : callable
        Is called with what happens next, for progress.

    Returns
    -------
    Release or LinkedReleases
        The latter if the request has segments.
    """
    _check_late(request.input)
    request = replace(request, input=only_new(request))
    return _run_linked(request, stage) if request.segments else _run_single(request, stage)


def publish(
    request: Request,
    folder: Path,
    *,
    force: bool = False,
    texts: PageTexts | None = None,
    command: Mapping[str, Any] | None = None,
    stage: Stage = _silent,
) -> Release | LinkedReleases:
    """Run a request and write the result to a folder, all or nothing; the folder is checked before the work begins.

    Parameters
    ----------
    folder : Path
        Where the release goes.
    force : bool
        Replace an earlier release.
    texts : PageTexts, optional
        What the release is called on its page and in its data package.
    command : mapping, optional
        The options of the command line, for the recipe.
    stage : callable
        Is called with what happens next, for progress.
    """
    from odkanon.estimate.questions import check_places
    from odkanon.publish.save import save_linked, save_release
    from odkanon.release_format.targets import ReleaseTarget

    ReleaseTarget(folder, force=force, linked=bool(request.segments)).check()
    matrix = check_places(request.matrix, request.matrix_code)
    result = run(request, stage=stage)
    if isinstance(result, LinkedReleases):
        stage(f"writing {folder}")
        save_linked(result, folder, force=force, matrix=matrix, texts=texts, command=command)
        return result
    stage(f"writing {folder}")
    save_release(result, folder, force=force, matrix=matrix, texts=texts, command=command)
    return result


def _check_late(source: InputSpec | Matrix) -> None:
    """Refuse late trips of a corrected release alone: their rows would show what was too little to be added."""
    from odkanon.core.parsing import parse_json
    from odkanon.release_format.names import late_mark, sha256

    paths = [Path(each) for each in source.paths] if isinstance(source, InputSpec) else []
    marks = [parse_json(late_mark(each).read_text()) for each in paths if late_mark(each).is_file()]
    if not marks or {sha256(each) for each in paths if each.is_file()} != {each["sha256"] for each in marks}:
        return
    raise RefusedError(
        f"{paths[0]} has the trips that the correction of {marks[0]['of']} could not add: alone, they would show that "
        f"they were too few. Read them with the trips of the next period: odkanon anonymize NEXT {paths[0]}"
    )


def only_new(request: Request) -> InputSpec | Matrix:
    """Return the input of a request, restricted to trips after the earlier release that it names."""
    from odkanon.linked.fixed_zoning import only_new as restrict
    from odkanon.release_format.recipe import read_recipe_file

    if request.after is None:
        return request.input
    if not isinstance(request.input, InputSpec):
        raise InputError("which trips are new can only be found while they are read; pass the file, not a matrix")
    return restrict(request.input, read_recipe_file(request.after)["input"], str(request.after))


def read_earlier(folder: Path) -> Zoning | EarlierRows:
    """Read what can be used again of an earlier release: its zones, those of a whole, or the rows of a cascade."""
    from odkanon.linked.fixed_zoning import zoning_of
    from odkanon.methods.cascade.reuse import EarlierRows
    from odkanon.methods.method_registry import is_nested
    from odkanon.release_format.folder import is_linked_folder, open_release
    from odkanon.release_format.names import WHOLE

    release = open_release(folder / WHOLE if is_linked_folder(folder) else folder)
    release.require_flows("a release on earlier zones")
    if release.is_noisy:
        raise InputError(
            f"the rows of {folder} are estimates with noise and no zoning; use the zones of a release of counts"
        )
    nested = is_nested(str(release.manifest.get("method"))) and not release.axes
    return EarlierRows.from_saved(release) if nested else zoning_of(release)


def _load(request: Request, attributes: Sequence[AttributeSpec], stage: Stage) -> Matrix:
    from odkanon.engine.dispatch import load

    source = request.input
    if not isinstance(source, InputSpec):
        return source
    stage(f"reading {source.name}")
    matrix = load(
        source,
        engine=request.engine,
        memory_limit=request.memory_limit,
        spark_master=request.spark_master,
        attributes=attributes,
    )
    _check_rejected(source, matrix.summary.source)
    return matrix


def _check_rejected(spec: InputSpec, source: Source) -> None:
    """Refuse an input of which more than half cannot be used, unless that is accepted."""
    if rejected_share(source) <= 0.5 or spec.accept_rejected:
        return
    unusable, selected = unusable_rows(source), selected_rows(source)
    reasons = "; ".join(f"{rows:,} {reason}" for reason, rows in unusable.items())
    which = "" if selected == source.rows else " that no filter or area leaves out"
    example = f"; for instance in {source.example}" if source.example else ""
    raise InputError(
        f"{sum(unusable.values()):,} of {selected:,} rows of {spec.name}{which} cannot be used ({reasons}){example}. "
        "Correct them, or accept that they are lost",
        option="accept-rejected",
    )


def _run_single(request: Request, stage: Stage) -> Release:
    earlier = None if request.zones_of is None else read_earlier(request.zones_of)
    matrix = _load(request, _cube_attributes(request), stage)
    rule = request.rule_for(matrix)
    how = f"with {request.method}" if earlier is None else f"on the zones of {request.zones_of}"
    unit = matrix.summary.source.subject.unit
    stage(f"protecting {matrix.summary.trips:,} {unit} {', '.join(['by', *request.by]) if request.by else how}")
    if request.method == NOISE_METHOD:
        return _run_noisy(request, matrix)
    if earlier is None:
        return run_method(matrix, rule, method=request.method, **request.parameters)
    if isinstance(earlier, EarlierRows):
        return run_method(matrix, rule, method=CUBE_METHOD, rows=earlier)
    from odkanon.linked.fixed_zoning import release_on_zones

    tree = request.input.tree if isinstance(request.input, InputSpec) else None
    return release_on_zones(matrix.in_memory(), rule, earlier, full=tree)


def _run_noisy(request: Request, matrix: Matrix) -> Release:
    """Make a noisy release, and enter it into the ledger of the same people."""
    from odkanon.methods.noise.method import make_promise, query_shares
    from odkanon.pipeline.noise_ledger import charge

    ledger = request.ledger or _ledger_of(request.input)
    if ledger is None and request.epsilon_limit is not None:
        raise InputError("a limit of epsilon needs a ledger; name its file", option="ledger FILE")
    unknown = request.parameters.keys() - {*METHODS[NOISE_METHOD].options}
    if ledger is None or unknown:  # the method refuses unknown options
        return run_method(matrix, NO_RULE, method=NOISE_METHOD, **request.parameters)
    matrix, promise = matrix.in_memory(), make_promise(**request.parameters)
    total = charge(ledger, promise, query_shares(matrix, promise), limit=request.epsilon_limit)
    release = run_method(matrix, NO_RULE, method=NOISE_METHOD, **request.parameters)
    epsilon, delta = total.spent(promise.unit)
    bounded = epsilon if isfinite(epsilon) else None
    spent = {"ledger": str(ledger), "releases": len(total.releases), "epsilon": bounded, "delta": delta}
    return replace(release, spec=release.spec.with_parameters(spent=spent))


def _ledger_of(source: InputSpec | Matrix) -> Path | None:
    """Return the ledger beside the files of an input; None where it has none."""
    from odkanon.pipeline.noise_ledger import ledger_beside

    if isinstance(source, InputSpec):
        return ledger_beside(source.paths)
    named = source.summary.source.reading.get("source") or ()
    return ledger_beside([path for path in ([named] if isinstance(named, str) else named) if not in_memory(path)])


def _cube_attributes(request: Request) -> Sequence[AttributeSpec]:
    from odkanon.attributes.spec import AGE_BANDS, parse_attributes

    if not request.by:
        return ()
    if not isinstance(request.input, InputSpec):
        raise InputError("attributes are read along with the trips; pass the file, or a matrix read with `by`")
    period = (request.input.since, request.input.until)
    return parse_attributes(request.by, request.age_bands or AGE_BANDS, period)


def _run_linked(request: Request, stage: Stage) -> LinkedReleases:
    from odkanon.attributes.spec import AGE_BANDS, segment_attributes
    from odkanon.linked import make_dimensions, release_linked

    attributes = segment_attributes(request.segments, request.age_bands or AGE_BANDS)
    zoning = None if request.zones_of is None else read_earlier(request.zones_of)
    if isinstance(zoning, EarlierRows):
        raise InputError(f"{request.zones_of} is a cascade: its zones overlap, and are no zoning for segments")
    od = _load(request, attributes, stage).in_memory()
    dimensions, rule = make_dimensions(od, request.segments), request.rule_for(od)
    stage(f"protecting {od.trips:,} trips and their segments")
    return release_linked(
        od,
        rule,
        dimensions,
        segment_budget=request.budget_of_segments,
        protect_intervals=request.protect_intervals,
        zoning=zoning,
        method=request.method,
        **request.parameters,
    )
