"""The queue of a reviewer: the releases of a folder, each with its sheet, verdict and decision.

Sheet and decision are kept beside the recipe, as ``NAME.evidence.html``, ``NAME.evidence.json`` and
``NAME.decision.json``; they are for the office, not for publication.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from html import escape
from pathlib import Path
from typing import Any, Literal, get_args

from odkanon.audit.folder_audit import group_by_trips, releases_in
from odkanon.core.atomic_write import write_whole
from odkanon.core.parsing import parse_json
from odkanon.errors import FileMissingError, InputError, InvalidValueError, OdkanonError
from odkanon.evidence.gather import SECONDS, Stage, gather_evidence
from odkanon.evidence.sheet_page import STYLE, page
from odkanon.read.input_spec import InputSpec, spec_from_recipe
from odkanon.release_format.names import MANIFEST, sha256
from odkanon.release_format.recipe import public_digest, read_recipe

QUEUE = "queue.html"
Choice = Literal["approved", "refused", "returned"]
"""May be published; may not; goes back to the steward with a note."""
_TITLE = "Releases to review"
_NOTICE = "For the reviewer, not for publication."
_CLASS = {"may be published": "pass", "do not publish": "fail", "approved": "pass", "refused": "fail"}


@dataclass(frozen=True)
class Decision:
    """What somebody decided about a release."""

    decision: Choice
    by: str
    note: str
    day: str
    sha256: str
    """The digest of the ``release.json`` that was decided on."""


@dataclass(frozen=True)
class QueueEntry:
    """A release in the queue."""

    name: str
    verdict: str
    points: tuple[str, ...]
    """What is to be decided, or why there is no sheet."""
    decision: Decision | None
    outdated: bool
    """Whether the release was changed after the decision."""
    sheet: Path | None

    @property
    def waiting(self) -> bool:
        """Whether a decision is missing."""
        return self.decision is None or self.outdated


def review_queue(
    folder: Path | str, *, policy: Path | str | None = None, seconds: float = SECONDS, stage: Stage | None = None
) -> tuple[QueueEntry, ...]:
    """Attack all releases in a folder that have no current sheet, and write the queue as ``queue.html`` there.

    Parameters
    ----------
    folder : path
        The folder of the releases. Their recipes name the trips.
    policy : path, optional
        The policy of the office.
    seconds : float
        The time limit of each attack.
    stage : callable, optional
        Called with a description of each step.

    Returns
    -------
    tuple of QueueEntry
        Releases that wait for a decision first.
    """
    root = Path(folder)
    entries = []
    for group in group_by_trips(releases_in(root)):
        for release in group.folders:
            source = None if group.spec is None else group.spec.source
            others = [each for each in group.folders if each != release and (each / MANIFEST).is_file()]
            problem = _gather(release, source, others, policy, seconds, stage)
            entries.append(_entry(release, problem))
    if not entries:
        advice = "give the folder that has the folders of releases in it"
        raise FileMissingError.at(root, what="release in", advice=advice)
    found = tuple(sorted(entries, key=lambda each: (not each.waiting, each.name)))
    write_whole(root / QUEUE, queue_page(found))
    return found


def trips_of(release: Path) -> InputSpec:
    """Return the trips that the recipe of a release names, to be read as they were."""
    recipe = read_recipe(release)
    (group,) = group_by_trips([release])
    if recipe is None or group.spec is None:
        raise InputError(
            f"the trips behind {release} were not found by its recipe; name them, with the reading options",
            option="trips FILE",
        )
    return spec_from_recipe(recipe, release.absolute().parent, group.spec.source)


def record_decision(release: Path | str, decision: str, *, by: str, note: str = "") -> Path:
    """Keep a decision beside the recipe of a release, together with the digest of what was decided on.

    Parameters
    ----------
    release : path
        The folder of the release.
    decision : {"approved", "refused", "returned"}
        May be published; may not; goes back to the steward.
    by : str
        Who decided.
    note : str
        Why, or on which conditions.
    """
    folder, digest = Path(release), public_digest(Path(release))
    if decision not in get_args(Choice):
        raise InvalidValueError.expected("a decision", " or ".join(get_args(Choice)), decision)
    if digest is None:
        raise InputError(f"{folder} is not a release; a decision is about the folder of one")
    if not by.strip():
        raise InputError("a decision needs a name", option="by NAME")
    made = Decision(decision, by, note, date.today().isoformat(), digest)  # type: ignore[arg-type]
    path = _beside(folder, "decision.json")
    write_whole(path, json.dumps(asdict(made), indent=2, ensure_ascii=False) + "\n")
    return path


def _beside(folder: Path, kind: str) -> Path:
    folder = folder.absolute()
    return folder.with_name(f"{folder.name}.{kind}")


def _gather(
    release: Path, source: Any, others: Sequence[Path], policy: Path | str | None, seconds: float, stage: Stage | None
) -> str | None:
    """Write the sheet of a release, unless it is there; return why there can be none."""
    recipe = read_recipe(release)
    if recipe is None or source is None:
        return "the trips behind it were not found" if recipe is not None else "its recipe is missing"
    if _is_current(release, others, policy):
        return None
    if stage is not None:
        stage(f"attacking {release.name}")
    spec = spec_from_recipe(recipe, release.absolute().parent, source)
    try:
        found = gather_evidence(release, spec, earlier=others, policy=policy, seconds=seconds)
    except OdkanonError as error:
        return str(error)
    write_whole(_beside(release, "evidence.html"), page(found.content))
    write_whole(_beside(release, "evidence.json"), json.dumps(found.content, indent=2, ensure_ascii=False) + "\n")
    return None


def _is_current(release: Path, others: Sequence[Path], policy: Path | str | None) -> bool:
    content = _read(_beside(release, "evidence.json"))
    if not content or "verdict" not in content or not (release / MANIFEST).is_file():
        return False
    compared = {each["sha256"] for each in content["earlier"]} >= {sha256(each / MANIFEST) for each in others}
    digest = None if policy is None else sha256(Path(policy))
    same = content["release"]["sha256"].get(MANIFEST) == sha256(release / MANIFEST)
    return compared and same and (content["policy"] or {}).get("sha256") == digest


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a file that may be missing or damaged."""
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _entry(release: Path, problem: str | None) -> QueueEntry:
    kept = _read(_beside(release, "decision.json"))
    decision = Decision(**{name: str(kept[name]) for name in Decision.__annotations__}) if kept else None  # type: ignore[arg-type]
    outdated = decision is not None and decision.sha256 != public_digest(release)
    if problem is not None:
        return QueueEntry(release.name, "no sheet", (problem,), decision, outdated, None)
    sheet = _beside(release, "evidence.html")
    verdict: Mapping[str, Any] = _read(_beside(release, "evidence.json"))["verdict"]
    points = (*verdict["stops"], *(each["question"] for each in verdict["points"]))
    return QueueEntry(release.name, verdict["verdict"], points, decision, outdated, sheet)


def queue_page(entries: Sequence[QueueEntry]) -> str:
    """Return the queue as HTML, with links to the sheets."""
    waiting = sum(each.waiting for each in entries)
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in _cells(each))}</tr>" for each in entries)
    top = "".join(f"<th>{name}</th>" for name in ("release", "verdict", "to decide", "decision", "note"))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_TITLE}</title>'
        f'<style>{STYLE}</style></head><body>\n<h1>{_TITLE}</h1>\n<p class="notice">{_NOTICE}</p>\n'
        f"<p>{len(entries):,} releases, {waiting:,} waiting for a decision.</p>\n"
        f'<div class="wide"><table><tr>{top}</tr>{rows}</table></div>\n</body></html>\n'
    )


def _cells(entry: QueueEntry) -> list[str]:
    name = escape(entry.name)
    if entry.sheet is not None:
        name = f'<a href="{escape(entry.sheet.name)}">{name}</a>'
    points = "".join(f"<li>{escape(each)}</li>" for each in entry.points)
    decided, note = "waiting", ""
    if entry.decision is not None:
        made = entry.decision
        decided = f'<span class="verdict {_CLASS.get(made.decision, "review")}">{made.decision}</span><br>'
        decided += f"{escape(made.by)}, {escape(made.day)}"
        decided += "<br>the release was changed since: decide again" if entry.outdated else ""
        note = escape(made.note)
    verdict = f'<span class="verdict {_CLASS.get(entry.verdict, "review")}">{escape(entry.verdict)}</span>'
    return [f"<strong>{name}</strong>", verdict, f"<ul>{points}</ul>" if points else "", decided, note]
