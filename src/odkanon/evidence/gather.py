"""From a release and its trips to the evidence sheet: run the attacks, one after another, and collect the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

from odkanon.errors import InvalidValueError
from odkanon.evidence.attack import Attack, AttackRun, AttackTimer, does_not_apply
from odkanon.evidence.attack_context import AttackContext, open_context
from odkanon.evidence.attacks import ATTACKS
from odkanon.evidence.k_choices import k_choices
from odkanon.evidence.policy import read_policy, review_release
from odkanon.evidence.sheet import Evidence, describe_sampling, make_sheet, with_policy, with_verdict
from odkanon.read.input_spec import InputSpec
from odkanon.release_format.names import sha256

SECONDS = 30.0
"""The default time limit of an attack."""

Stage = Callable[[str], None]


def run_attack(
    context: AttackContext, attack: Attack, *, seconds: float = SECONDS, stage: Stage | None = None
) -> AttackRun:
    """Run one attack."""
    timer = AttackTimer(seconds, None if stage is None else lambda text: stage(f"{attack.title.lower()}: {text}"))
    start = monotonic()
    missing = [reason for need, reason in attack.needs.items() if not context.has(need)]
    result = does_not_apply(missing[0]) if missing else attack.run(replace(context, timer=timer))
    return AttackRun(attack, result, monotonic() - start)


def run_attacks(
    context: AttackContext,
    names: Iterable[str] | None = None,
    *,
    seconds: float = SECONDS,
    stage: Stage | None = None,
) -> tuple[AttackRun, ...]:
    """Run several attacks, all that are registered by default."""
    runs: list[AttackRun] = []
    for name in ATTACKS if names is None else names:
        if stage is not None:
            stage(ATTACKS[name].title.lower())
        runs.append(run_attack(context, ATTACKS[name], seconds=seconds, stage=stage))
    return tuple(runs)


def gather_evidence(
    release: Path | str,
    trips: InputSpec | Path | str,
    *,
    earlier: Sequence[Path | str] = (),
    policy: Path | str | None = None,
    seconds: float = SECONDS,
    stage: Stage | None = None,
) -> Evidence:
    """Attack a release with the trips that it was made from, and collect the outcomes on a sheet.

    Parameters
    ----------
    release : path
        The folder of a release, with its recipe beside it.
    trips : InputSpec or path
        The trips, to be read as they were for the release.
    earlier : sequence of path
        Other releases of the same trips, which an attacker has as well.
    policy : path, optional
        The policy of the office; the releases that it names are compared as well.
    seconds : float
        The time limit of each attack, in (0, inf).
    stage : callable, optional
        Called with a description of each step.

    Returns
    -------
    Evidence
        `Evidence.clean` is True if nothing was found that speaks against signing.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import InputSpec, Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> import pyarrow.parquet
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "survey.parquet"
    ...     pyarrow.parquet.write_table(make_survey().slice(0, 4000), file)
    ...     made = anonymize(build_od(read_trips(file), resolution=7), Rule(trips=10, persons=10))
    ...     saved = made.save(Path(folder) / "release")
    ...     evidence = gather_evidence(saved, InputSpec(file, resolution=7))
    >>> evidence.clean, evidence.content["attacks"][0]["verdict"]
    (True, 'clean')
    """
    if not seconds > 0:
        raise InvalidValueError.expected("the time limit of an attack", "above 0 seconds", seconds)
    rules = None if policy is None else read_policy(policy)
    notify = stage or (lambda text: None)
    notify("reading the release and the trips")
    others = {Path(each).resolve(): Path(each) for each in (*earlier, *(() if rules is None else rules.compare))}
    context = open_context(release, trips, earlier=list(others.values()))
    runs = run_attacks(context, seconds=seconds, stage=stage)
    notify("what another k would mean")
    content = make_sheet(context, runs, sampling=describe_sampling(context), choices=k_choices(context, seconds))
    if rules is not None and policy is not None:
        lines = review_release(release, rules, content)
        content = with_policy(content, rules, lines, name=Path(policy).name, digest=sha256(Path(policy)))
    return Evidence(with_verdict(content))
