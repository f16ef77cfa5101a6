"""HTML representations of matrices and releases for notebooks: small tables, and the page in a sandboxed frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from odkanon.core.parsing import format_number
from odkanon.errors import InvalidValueError, RefusedError

if TYPE_CHECKING:
    from odkanon.linked import LinkedReleases
    from odkanon.model.od import ODMatrix
    from odkanon.model.release import Release


def od_html(od: ODMatrix) -> str:
    """Return an OD matrix as HTML: its totals, and the rejected rows of the input."""
    rows = {"OD pairs": f"{len(od):,}", "trips": f"{od.trips:,}"}
    if od.weight is not None:
        rows["weight"] = format_number(od.weight / od.flows.scale)
    rows |= {name: f"{count:,}" for name, count in od.contributors.items()}
    rows["origin leaves"] = f"{len(od.origins.leaves):,}"
    rows["destination leaves"] = f"{len(od.destinations.leaves):,}"
    rows |= {f"rejected rows {reason}": f"{part.rows:,}" for reason, part in od.source.rejected.items()}
    return _table("OD matrix (not protected)", rows)


def release_html(release: Release) -> str:
    """Return a release as HTML: its statement, what is published, and its largest flows."""
    from odkanon.release_format.contents import classes_table
    from odkanon.release_format.conversions import FlowTable
    from odkanon.release_format.public_rule import promise

    if release.refusal:
        return _table("Release", {"nothing is published": release.refusal})
    published = int(release.classes.trips.sum())
    rows = {
        "method": release.method,
        "published flows": f"{len(release.classes):,}",
        "origin zones": f"{len(release.origins):,}",
        "destination zones": f"{len(release.destinations):,}",
        "published trips": f"{published:,} of {release.input.trips:,} ({published / max(release.input.trips, 1):.1%})",
    }
    return _table(promise(release), rows) + FlowTable(classes_table(release))._repr_html_()


def linked_html(linked: LinkedReleases) -> str:
    """Return linked releases as HTML: their statement, and a row for the whole and each segment."""
    from odkanon.release_format.public_rule import linked_promise

    rows = {"whole": f"{len(linked.whole.classes):,} flows"}
    rows |= {
        part.title: part.reason or "" if part.release is None else f"{len(part.release.classes):,} flows"
        for part in linked.parts
    }
    return _table(linked_promise(linked.whole), rows)


@dataclass(frozen=True)
class NotebookMap:
    """A page that a notebook displays below the cell that made it."""

    page: str = field(repr=False)
    """A complete HTML document that makes no requests."""
    height: int
    """In pixels."""

    def _repr_html_(self) -> str:
        # Sandboxed, so that neither the page nor the notebook can access the other.
        return (
            f'<iframe srcdoc="{escape(self.page)}" sandbox="allow-scripts allow-downloads" title="Map of the release" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )


def release_map(release: Release, *, height: int = 800) -> NotebookMap:
    """Return the page of a release for a notebook, as `Release.save` writes it to ``report.html``.

    * ``release``: the release.
    * ``height``: height of the frame in pixels, in [100, 10000].

    Examples
    --------
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey().slice(0, 4000)), resolution=7), Rule(trips=10))
    >>> release.map(height=400)._repr_html_()[:15]
    '<iframe srcdoc='
    """
    from odkanon.publish.manifests import public_manifest
    from odkanon.publish.report import make_page
    from odkanon.release_format.contents import classes_table, zones_geojson
    from odkanon.release_format.folder import SavedRelease

    if release.refusal:
        raise RefusedError(f"there is no map to show: {release.refusal}")
    if not 100 <= height <= 10_000:
        raise InvalidValueError.expected("the height of a map", "from 100 to 10,000 pixels", height)
    features = zones_geojson(release)["features"]
    saved = SavedRelease("release", public_manifest(release), features, classes_table(release))
    return NotebookMap(make_page([saved]), height)


def _table(caption: str, rows: Mapping[str, str]) -> str:
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows.items())
    return f"<table><caption>{escape(caption)}</caption><tbody>{body}</tbody></table>"
