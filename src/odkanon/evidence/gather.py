"""From a release and its trips to evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from odkanon.errors import InputError
from odkanon.evidence.attack_context import open_case
from odkanon.evidence.finding import Watch
from odkanon.evidence.noise_comparison import yardstick
from odkanon.evidence.policy import read_policy
from odkanon.evidence.policy_check import check_release
from odkanon.evidence.runner import SECONDS, Stage, attempt_all
from odkanon.evidence.sampling import sampling_of
from odkanon.evidence.sheet import Evidence, make_sheet, with_policy
from odkanon.read.input_spec import InputSpec
from odkanon.release_format.names import sha256


def gather_evidence(
    release: Path | str,
    trips: InputSpec | Path | str,
    *,
    earlier: Sequence[Path | str] = (),
    policy: Path | str | None = None,
    seconds: float = SECONDS,
    with_yardstick: bool = True,
    stage: Stage | None = None,
) -> Evidence:
    """Attack a release with the trips that it was made of, and put what comes out on a sheet.

    Parameters
    ----------
    release : path
        The folder of a release, with its recipe beside it.
    trips : Reading or path
        The trips, to be read as they were then.
    earlier : sequence of path
        Other releases of the same trips, which an attacker has, too.
    policy : path, optional
        The policy of the office; the releases that it names are compared with as well.
    seconds : float
        How long each attack may take, in (0, inf).
    with_yardstick : bool
        Compare with differential privacy, too; needs OpenDP.
    stage : callable, optional
        Told what is going on.

    Returns
    -------
    Evidence
        `Evidence.clean` tells whether anything speaks against signing.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import InputSpec, Rule, anonymize, build_od, make_survey, read_trips
    >>> import pyarrow.parquet
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "survey.parquet"
    ...     pyarrow.parquet.write_table(make_survey().slice(0, 4000), file)
    ...     made = anonymize(build_od(read_trips(file), resolution=7), Rule(trips=10, persons=10))
    ...     saved = made.save(Path(folder) / "release")
    ...     evidence = gather_evidence(saved, InputSpec(file, resolution=7), with_yardstick=False)
    >>> evidence.clean, evidence.content["attacks"][0]["verdict"]
    (True, 'clean')
    """
    if not seconds > 0:
        raise InputError(f"an attack needs some time; {seconds:g} seconds are none")
    asked = None if policy is None else read_policy(policy)
    told = stage or (lambda text: None)
    told("reading the release and the trips")
    known = {Path(each).resolve(): Path(each) for each in (*earlier, *(() if asked is None else asked.compare))}
    case = open_case(release, trips, earlier=list(known.values()))
    made = attempt_all(case, seconds=seconds, stage=stage)
    noise = None
    if with_yardstick and not made[-1].stopped:
        told("yardstick")
        watch = Watch(2 * seconds, lambda text: told(f"yardstick: {text}"))
        noise = yardstick(replace(case, watch=watch))
    content = make_sheet(case, made, sampling=sampling_of(case), yardstick=noise)
    if asked is not None and policy is not None:
        broken = check_release(release, asked, content)
        content = with_policy(content, Path(policy).name, sha256(Path(policy)), broken)
    return Evidence(content)
