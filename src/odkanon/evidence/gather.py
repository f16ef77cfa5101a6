"""From a release and its trips to the evidence sheet: run the attacks, and make the release again with another k."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from odkanon.errors import InvalidValueError
from odkanon.evidence.attack import Attack, AttackRun, AttackTimer, does_not_apply
from odkanon.evidence.attack_context import AttackContext, open_context
from odkanon.evidence.attacks import ATTACKS
from odkanon.evidence.attacks.person_attacks import dominance, membership
from odkanon.evidence.noise_comparison import check_noise, compare_with_noise
from odkanon.evidence.policy import read_policy, review_release
from odkanon.evidence.sheet import (
    Evidence,
    describe_sampling,
    make_noise_sheet,
    make_sheet,
    with_policy,
    with_verdict,
)
from odkanon.methods.method_registry import METHODS, anonymize
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.read.input_spec import InputSpec
from odkanon.release_format.folder import open_release
from odkanon.release_format.names import sha256

SECONDS = 30.0  # the default time limit of an attack

Stage = Callable[[str], None]

CHOICES = (5, 10, 20)
MAX_TRIPS = 1_000_000
"""Above this, the same release is not made several times."""
SQUARES = ("2 km", "4 km")


def run_attack(
    context: AttackContext, attack: Attack, *, seconds: float = SECONDS, stage: Stage | None = None
) -> AttackRun:
    """Run one attack."""
    notify = None if stage is None else lambda text: stage(f"{attack.title.lower()}: {text}")
    context.timer, start = AttackTimer(seconds, notify), monotonic()
    missing = [reason for need, reason in attack.needs.items() if not context.has(need)]
    result = does_not_apply(missing[0]) if missing else attack.run(context)
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
    noise: bool = False,
    stage: Stage | None = None,
) -> Evidence:
    """Attack a release with the trips that it was made from, and collect the outcomes on a sheet.

    A release with noise has no counts to attack: its sheet states whether the noise keeps the promise, how much it lets
    somebody learn at most, and what all releases of the same people come to.

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
    noise : bool
        Also compare the release with noise at several epsilon; see `odkanon.evidence.noise_comparison`.
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
    opened = open_release(release)
    if opened.is_noisy:
        content = make_noise_sheet(Path(release), opened.manifest, check_noise(Path(release), opened.manifest))
    else:
        context = open_context(release, trips, earlier=list(others.values()))
        runs = run_attacks(context, seconds=seconds, stage=stage)
        notify("what another k would mean")
        content = make_sheet(context, runs, sampling=describe_sampling(context), choices=k_choices(context, seconds))
        content["input"]["few_households"] = few_households(context)
        if noise:
            content["noise"] = compare_with_noise(Path(release), context.od, stage=notify)
    if rules is not None and policy is not None:
        lines = review_release(release, rules, content)
        content = with_policy(content, rules, lines, name=Path(policy).name, digest=sha256(Path(policy)))
    return Evidence(with_verdict(content))


def few_households(context: AttackContext) -> dict[str, Any] | None:
    """Return how many flows have fewer than k households, and the price of protecting them; None if not applicable."""
    records, number, k = context.opened.records, context.release.number, context.release.k
    if records is None or not {"households"} & {*records.measures} - {*context.release.disclosed_thresholds}:
        return None
    counts = f"SELECT count(DISTINCT household) AS few FROM member{number} WHERE co IS NOT NULL GROUP BY co, cd, ca"
    found = context.opened.connection.execute(f"SELECT count(*) FROM ({counts}) WHERE few < {k}").fetchall()
    price = None
    if found[0][0] and _obstacle(context) is None and context.rule.thresholds_only:
        made = anonymize(
            context.od, context.rule.with_contributors("households"), method=context.method, **context.options
        )
        listed = context.trips.trips[context.trips.row >= 0].sum()
        share, now = (int(each.sum()) / context.od.trips for each in (made.classes.trips, listed))
        price = f"With households protected, {share:.1%} instead of {now:.1%} of the trips would be published, in "
        price += f"{len(made.classes):,} flows."
    return {"below": int(found[0][0]), "of": context.trips.rows, "k": k, "price": price}


def k_choices(context: AttackContext, seconds: float) -> dict[str, Any]:
    """Return the effect of k = 5, 10 and 20 on this input, beside the k of the release, or why it is unknown.

    * ``seconds``: the time limit of each attack.
    """
    reason = _obstacle(context)
    if reason is not None:
        return {"choices": [], "reason": reason}
    own = context.release.k
    choices = []
    for k in sorted({*CHOICES, own}):
        made = anonymize(context.od, _rule_for(context.rule, own, k), method=context.method, **context.options)
        choices.append({"k": k, "own": k == own, **_describe(made, context, seconds)})
    return {"choices": choices, "reason": None}


def _obstacle(context: AttackContext) -> str | None:
    if context.method not in METHODS or context.release.parameters.get("rows") == "given":
        return "the zones are those of an earlier release, so another k would not change them"
    if not context.matrix_matches:
        return "the release covers part of the trips that were given"
    if context.od.trips > MAX_TRIPS:
        return f"there are more than {MAX_TRIPS:,} trips; `odkanon compare --k 5,10,20` takes its time"
    return None


def _rule_for(rule: Rule, own: int, k: int) -> Rule:
    """Return a rule with all thresholds scaled from one k to another."""
    share = Fraction(k, own)
    scaled: dict[str, Any] = {
        name: value * share if name == "weight" else ceil(value * share) for name, value in rule.thresholds.items()
    }
    return Rule(mean_weight=rule.mean_weight, **({} if rule.k_from_data else {"k": k}), **scaled, **rule.constraints)


def _describe(made: Release, context: AttackContext, seconds: float) -> dict[str, Any]:
    if made.refusal:
        return {"refusal": made.refusal}
    accuracy = made.accuracy.get("trips")
    right = {} if accuracy is None else {each.name: each.right for each in accuracy.squares if each.name in SQUARES}
    with TemporaryDirectory() as folder:
        opened = open_context(made.save(Path(folder) / "release"), context.spec, seed=context.seed)
        numbers: dict[str, Any] = {}
        for attack, needed in ((membership, "several persons"), (dominance, "persons")):
            if opened.has(needed):  # type: ignore[arg-type]
                opened.timer = AttackTimer(seconds)
                numbers |= attack(opened).numbers
    return {
        "flows": len(made.classes),
        "share": int(made.classes.trips.sum()) / made.input.trips,
        "right": right,
        "outsider": numbers.get("outsider AUC"),
        "largest": numbers.get("largest share"),
    }
