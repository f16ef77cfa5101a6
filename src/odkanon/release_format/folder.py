"""Release folders as they are read: flows between zones, and the outlines of the zones."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from odkanon.core.arrays import Ints
from odkanon.core.parsing import format_count, parse_json
from odkanon.core.system import plain
from odkanon.errors import DamagedReleaseError, InputError, InvalidValueError
from odkanon.model.axes import AXES, Subject
from odkanon.model.measures import ADDITIVE, AT_CAP, MEASURES, STANDARD_ERROR
from odkanon.release_format.conversions import FlowTable, ZoneTable, to_shapes
from odkanon.release_format.names import CSV, INDEX, MANIFEST, PARQUET, WHOLE, ZONES, read_guarded_csv

if TYPE_CHECKING:
    from odkanon.estimate.flow_estimates import FlowEstimates

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]
_MAX_DEGREES = 1_000
"""Outlines across the date line may exceed 180 degrees."""
WORLD = "world"  # the zone of ends that no flow below the rule may narrow down; it has no outline
_RESAVE = "save the release again"


@dataclass(frozen=True, eq=False)
class ZoneIndex:
    """The zones of both axes in one list."""

    ids: list[str]
    """Ids of all zones, sorted. An id whose outline differs between the axes is prefixed ``origin:`` or
    ``destination:``."""
    outlines: list[dict[str, Any] | None]  # GeoJSON geometry of each, where known
    origin: Ints
    destination: Ints
    """For each flow, the positions of its zones."""


@dataclass(frozen=True, eq=False)
class SavedRelease:
    """The content of a release folder."""

    name: str
    """Name of the folder; never its path, so that pages do not disclose where it was made."""
    manifest: dict[str, Any]
    """Content of ``release.json``."""
    features: list[dict[str, Any]]
    """The zones of both axes as GeoJSON features."""
    table: pa.Table
    """``origin, destination``, the attributes of a cube, ``trips`` and the other published measures; of a table by one
    place, that place and its unit instead. Nested rows also have ``at_cap``: whether there are *at least* so many."""

    def __repr__(self) -> str:
        published = self.manifest["published"]
        counts = ", ".join(f"{count:,.10g} {name}" for name, count in published.items() if count is not None)
        return f"SavedRelease({self.name}, {self.manifest['method']}: {counts})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}<br>{escape(self.manifest['statement'])}</p>{self.flows._repr_html_()}"

    @cached_property
    def subject(self) -> Subject:
        """What is counted, and by which places."""
        return Subject.from_dict(self.manifest)

    def require_flows(self, purpose: str) -> None:
        """Raise for a table by one place, which has no flows."""
        if self.subject.place is not None:
            raise InputError(
                f"{purpose} shows flows between two places; {self.name} counts {self.subject.unit} by "
                f"{self.subject.place} only"
            )

    @property
    def flows(self) -> FlowTable:
        """The published flows, for conversion to other libraries."""
        return FlowTable(self.table)

    @property
    def zones(self) -> ZoneTable:
        """The zones of both axes, for conversion to other libraries."""
        return ZoneTable(self.features)

    def measure(self, name: str) -> Floats:
        """Return a measure of each flow."""
        column = self.subject.column(name)
        if column not in self.table.column_names:
            known = ", ".join(each for each in map(self.subject.column, MEASURES) if each in self.table.column_names)
            raise InputError(f"the release {self.name} has no {name}; choose from {known}")
        return np.asarray(self.table.column(column).to_numpy(), dtype=np.float64)

    @property
    def measures(self) -> list[str]:
        """The published measures that are additive; numbers of persons are not."""
        return [name for name in map(self.subject.column, ADDITIVE) if name in self.table.column_names]

    @property
    def is_noisy(self) -> bool:
        """Whether its trips are estimates from counts with noise."""
        return STANDARD_ERROR in self.table.column_names

    @property
    def axes(self) -> list[str]:
        """The attributes of a cube; none for other releases."""
        return [axis["name"] for axis in self.manifest.get("axes", [])]

    def without_attributes(self) -> SavedRelease:
        """Return the flows of a cube summed over its attributes, one for each pair of zones."""
        if not self.axes:
            return self
        places = list(self.subject.places)
        table, added = self.table, list(self.measures)
        if self.is_noisy:
            squares = pc.power(table.column(STANDARD_ERROR), 2)
            table = table.set_column(table.column_names.index(STANDARD_ERROR), STANDARD_ERROR, squares)
            added.append(STANDARD_ERROR)
        sums = table.group_by(places, use_threads=False).aggregate([(name, "sum") for name in added])
        sums = sums.rename_columns([*places, *added])
        if self.is_noisy:
            sums = sums.set_column(len(places) + len(added) - 1, STANDARD_ERROR, pc.sqrt(sums.column(STANDARD_ERROR)))
        manifest = {name: value for name, value in self.manifest.items() if name != "axes"}
        return replace(self, manifest=manifest, table=sums.sort_by([(place, "ascending") for place in places]))

    def axis_features(self, axis: str) -> list[dict[str, Any]]:
        """Return the zones of one axis as GeoJSON features."""
        return [feature for feature in self.features if feature["properties"]["axis"] == axis]

    @cached_property
    def zone_index(self) -> ZoneIndex:
        """The zones of both axes in one list."""
        outlines = {
            axis: {zone["properties"]["id"]: zone.get("geometry") for zone in self.axis_features(axis)} for axis in AXES
        }
        both = outlines["origin"].keys() & outlines["destination"].keys()
        ambiguous = {zone for zone in both if outlines["origin"][zone] != outlines["destination"][zone]}
        named = {
            axis: {zone: f"{axis}:{zone}" if zone in ambiguous else zone for zone in zones}
            for axis, zones in outlines.items()
        }
        outline = {named[axis][zone]: geometry for axis, zones in outlines.items() for zone, geometry in zones.items()}
        ids = sorted(outline)
        position = {zone: number for number, zone in enumerate(ids)}
        ends = [
            np.array([position[named[axis][zone]] for zone in self.table.column(axis).to_pylist()], dtype=np.int64)
            for axis in AXES
        ]
        return ZoneIndex(ids, [outline[zone] for zone in ids], ends[0], ends[1])

    @cached_property
    def shapes(self) -> npt.NDArray[Any]:
        """The shapely geometry of each zone of `zone_index`, None where unknown."""
        return to_shapes(self.zone_index.outlines)

    @cached_property
    def centroids(self) -> Floats:
        """Longitude and latitude of the centroid of each zone of `zone_index`; NaN where it has no outline."""
        import shapely

        centroid = shapely.centroid(self.shapes)
        lon = (shapely.get_x(centroid) + 180) % 360 - 180
        return np.stack([lon, shapely.get_y(centroid)], axis=1)

    def estimate(
        self,
        *,
        onto: Any = None,
        code: str | None = None,
        origin: Any = None,
        destination: Any = None,
        where: str | Mapping[str, str] | None = None,
        least: float = 0.05,
    ) -> FlowEstimates:
        """Return estimated flows between areas, with intervals, and with bounds that hold whatever the truth is.

        All is computed from the published rows and zones; see `odkanon.estimate.flow_model`.

        Parameters
        ----------
        onto : int, path or GeoDataFrame, optional
            The areas: an H3 resolution, a file of polygons, or polygons. By default cells of resolution 7, or of a
            coarser one where these would be more than 4,000.
        code : str, optional
            The column with the codes of polygons.
        origin, destination : str or geometry, optional
            Return one flow only: a code of `onto`, the id of a zone, an H3 cell, a town, a polygon in degrees, or
            "anywhere".
        where : str or mapping, optional
            Of a release by attributes, which trips to count, such as ``mode == "car" and hour in ["07-09"]`` or
            ``{"mode": "car"}``; see `odkanon.view_release`.
        least : float
            Smaller estimates are left out, unless some trips are sure.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> import odkanon
        >>> release = odkanon.anonymize(odkanon.make_survey().slice(0, 4000), k=10, resolution=8)
        >>> with TemporaryDirectory() as folder:
        ...     saved = open_release(release.save(Path(folder) / "release"))
        >>> flows = saved.estimate(onto=6)
        >>> flows.table.column_names[:5]
        ['origin', 'destination', 'estimate', 'low', 'high']
        """
        from odkanon.estimate.questions import estimate_between

        return estimate_between(
            self, onto=onto, code=code, origin=origin, destination=destination, where=where, least=least
        )

    def with_outlines(self, purpose: str) -> SavedRelease:
        """Return the flows between zones with outlines; raise if other zones than the whole world have none."""
        index = self.zone_index
        without = [zone for zone, outline in zip(index.ids, index.outlines, strict=True) if outline is None]
        if not without:
            return self
        if without != [WORLD]:
            raise InputError(
                f"{purpose} needs the outlines of all zones, and {len(without):,} have none (first: {without[0]}); "
                "supply polygons when the release is made"
            )
        ends = [pc.equal(self.table.column(axis), WORLD) for axis in AXES]
        anywhere = self.table.filter(pc.or_(*ends))
        if anywhere.num_rows:
            log.warning(
                "%s has no place for flows from or to anywhere (zone %r): %s of %s are left out",
                purpose, WORLD, format_count(anywhere.num_rows, "flows", "flow"),
                format_count(pc.sum(anywhere.column("trips")).as_py() or 0, "trips"),
            )  # fmt: skip
        features = [each for each in self.features if each["properties"]["id"] != WORLD]
        return replace(self, table=self.table.filter(pc.invert(pc.or_(*ends))), features=features)


def open_release(folder: str | Path) -> SavedRelease:
    """Open a release folder.

    Raises
    ------
    InputError
        If the folder is not a release, one of its files cannot be read, or the files are inconsistent.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from odkanon import Rule, anonymize, make_survey, read_trips
    >>> from odkanon.read.od_matrix import build_od
    >>> release = anonymize(build_od(read_trips(make_survey().slice(0, 4000)), resolution=7), Rule(trips=10))
    >>> with TemporaryDirectory() as folder:
    ...     saved = open_release(release.save(Path(folder) / "release"))
    >>> len(saved.flows) == len(release.classes)
    True
    >>> saved.manifest["rule"]
    {'k': 10, 'trips': 10}
    """
    if not isinstance(folder, str | PurePath):
        raise InvalidValueError.expected("the release", "the path of a saved one", folder)
    folder = plain(Path(folder))
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the folder of a release")
    if is_linked_folder(folder):
        raise InputError(f"{folder} holds several releases; give one of them, such as {folder / WHOLE}")
    manifest, features = _read_json(folder / MANIFEST), _read_json(folder / ZONES).get("features")
    table = _read_flows(folder, _attribute_names(manifest, folder), Subject.from_dict(manifest))
    release = SavedRelease(folder.resolve().name, manifest, features if isinstance(features, list) else [], table)
    _check_zones(release, folder)
    return release


def is_linked_folder(folder: Path) -> bool:
    """Return whether a folder holds linked releases instead of one release."""
    return (folder / INDEX).is_file()


def open_linked(folder: Path) -> list[SavedRelease]:
    """Open a folder of linked releases: the whole first, then each published segment, named after its values.

    Raises
    ------
    InputError
        If the index or one of the releases that it lists cannot be read.
    """
    return [replace(open_release(folder / name), name=title) for title, name in _listed(folder)]


def linked_folders(folder: Path) -> list[Path]:
    """Return the folders of the whole and of each published segment."""
    return [folder / name for _, name in _listed(folder)]


def _listed(folder: Path) -> list[tuple[str, str]]:
    """Return the title and the folder of each release that an index lists."""
    try:
        content = parse_json((folder / INDEX).read_text(encoding="utf-8"))
        segments = [
            (", ".join(f"{name}: {label}" for name, label in part["segment"].items()), str(part["folder"]))
            for part in content["segments"]
            if part["folder"] is not None
        ]
        return [(str(content["whole"]), str(content["whole"])), *segments]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedReleaseError.because(
            folder / INDEX, f"does not list its segments ({error})", advice="save them again"
        ) from None


def with_zones_from(release: SavedRelease, others: Sequence[SavedRelease]) -> SavedRelease:
    """Return a release with the zones of others added, without flows."""
    zones = {(zone["properties"]["axis"], zone["properties"]["id"]): zone for zone in release.features}
    for zone in (zone for other in others for zone in other.features):
        own = zone["properties"]
        empty = {name: 0 if name in release.measures else value for name, value in own.items()}
        zones.setdefault((own["axis"], own["id"]), {**zone, "properties": empty})
    return release if len(zones) == len(release.features) else replace(release, features=list(zones.values()))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        needed = f"{MANIFEST}, {ZONES} and {PARQUET}"
        raise InputError(f"{path.parent} is not a release: it has no {path.name}; a release has {needed}") from None
    except (ValueError, OSError) as error:
        raise DamagedReleaseError.because(path, f"is not valid JSON ({error})", advice=_RESAVE) from None
    if not isinstance(content, dict):
        raise DamagedReleaseError.because(path, "does not hold a JSON object", advice=_RESAVE)
    return content


def _attribute_names(manifest: dict[str, Any], folder: Path) -> list[str]:
    """Return the attributes of a cube that its manifest lists."""
    try:
        axes = {str(axis["name"]): axis["levels"] for axis in manifest.get("axes", [])}
        for name, levels in axes.items():
            if not all(isinstance(value, str) for level in levels for value in level):
                raise ValueError(f"the levels of {name!r} are not all text")
            if not all(len(level) == len(levels[0]) for level in levels):
                raise ValueError(f"the levels of {name!r} differ in length")
        return list(axes)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise DamagedReleaseError.because(folder / MANIFEST, f"has incomplete axes ({error})", advice=_RESAVE) from None


def _read_flows(folder: Path, attributes: list[str], subject: Subject) -> pa.Table:
    path = next((folder / name for name in (PARQUET, CSV) if (folder / name).exists()), None)
    if path is None:
        raise DamagedReleaseError.because(folder, f"has neither {PARQUET} nor {CSV}", advice=_RESAVE)
    types = dict.fromkeys([*subject.places, *attributes], pa.string())
    types |= dict.fromkeys(map(subject.column, MEASURES), pa.int64())
    types |= {"weight": pa.float64(), AT_CAP: pa.bool_(), STANDARD_ERROR: pa.float64()}
    try:
        # Not read as a dataset, which would take a folder named sex=Woman for a column.
        table = pyarrow.parquet.ParquetFile(path).read() if path.name == PARQUET else read_guarded_csv(path, types)
        missing = [name for name in (*subject.places, *attributes, subject.unit) if name not in table.column_names]
        if missing:
            raise DamagedReleaseError.because(path, f"lacks the column(s) {', '.join(missing)}", advice=_RESAVE)
        known = [name for name in types if name in table.column_names]
        # Any other column, such as the hour or the mode, is text, whatever it looks like.
        others = [name for name in table.column_names if name not in types]
        schema = [*((name, types[name]) for name in known), *((name, pa.string()) for name in others)]
        return table.select([*known, *others]).cast(pa.schema(schema))
    except (OSError, pa.ArrowException) as error:
        raise DamagedReleaseError.because(path, f"cannot be read ({error})", advice=_RESAVE) from None


def _check_zones(release: SavedRelease, folder: Path) -> None:
    """Raise unless every zone has an id, unique on its axis, and every flow is between known zones."""
    path = folder / ZONES
    try:
        ids: dict[str, list[str]] = {place: [] for place in release.subject.places}
        for zone in release.features:
            ids[zone["properties"]["axis"]].append(zone["properties"]["id"])
            _check_outline(zone.get("geometry"))
        distinct = {axis: set(own) for axis, own in ids.items()}
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise DamagedReleaseError.because(path, f"has an invalid zone ({error})", advice=_RESAVE) from None
    for axis in release.subject.places:
        if len(distinct[axis]) < len(ids[axis]) or not all(isinstance(zone, str) for zone in ids[axis]):
            problem = f"names an {axis} zone twice, or not in text"
            raise DamagedReleaseError.because(path, problem, advice=_RESAVE)
        unknown = set(release.table.column(axis).to_pylist()) - distinct[axis]
        if unknown:
            raise DamagedReleaseError.because(
                folder, f"has flows of the zone {min(map(str, unknown))!r}, which {ZONES} lacks", advice=_RESAVE
            )


def _check_outline(outline: Any) -> None:
    """Raise unless a geometry is null, a polygon or a multipolygon with closed rings of plausible coordinates."""
    if outline is None:
        return
    parts = {"Polygon": [outline["coordinates"]], "MultiPolygon": outline["coordinates"]}[outline["type"]]
    for ring in (ring for rings in parts for ring in rings):
        points = np.array(ring)
        if points.dtype.kind not in "if" or points.ndim != 2 or points.shape[1] < 2 or len(points) < 4:
            raise ValueError("an outline is not a ring of points")
        if not np.all(np.abs(points) <= _MAX_DEGREES) or ring[0] != ring[-1]:
            raise ValueError("an outline leaves the globe or is not closed")
