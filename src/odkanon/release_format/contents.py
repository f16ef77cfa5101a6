"""The public contents of a release folder: flows, zones and manifest.

All of it follows from the published classes, the zones and public parameters. Other numbers that look harmless
(observed leaves, exact totals, quality metrics with all their digits) disclose groups that the rows do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from odkanon._version import __version__
from odkanon.core.arrays import Codes, Ints, group_sum
from odkanon.core.weights import from_units, round_units
from odkanon.model.axes import TRIPS, Axis
from odkanon.model.measures import AT_CAP, MEASURES, STANDARD_ERROR, exact_masses
from odkanon.model.published_flows import WEIGHT_DIGITS, disclosed_weights
from odkanon.model.release import Release
from odkanon.release_format.datapackage import AT_CAP_MEANING, HIDDEN_WEIGHT, STANDARD_ERROR_MEANING
from odkanon.release_format.names import MANIFEST, WHOLE, sha256
from odkanon.release_format.public_rule import linked_promise, promise, public_rule, publishable_rule
from odkanon.zoning.zones import Zones

FORMAT = 1
WEIGHT_UNIT = "sum of the weights of these trips, in four significant digits"
_TRIPS_UNIT = "trips of the input"
_NOISY_TRIPS_UNIT = "estimated trips that are not between the zones of a finer row"
_NESTED_TRIPS_UNIT = "trips of the input that no finer row lists; at least so many where at_cap is true"


def published_tables(release: Release) -> tuple[pa.Table, dict[str, Any]]:
    """Return the rows of a release and its zones as they are published, made once.

    Estimates are cached with the table of rows, so that files, page and accuracy share one fit.
    """
    if release not in _TABLES:
        _TABLES[release] = classes_table(release), zones_geojson(release)
    return _TABLES[release]


_TABLES: WeakKeyDictionary[Release, tuple[pa.Table, dict[str, Any]]] = WeakKeyDictionary()


def classes_table(release: Release) -> pa.Table:
    """Return the published classes as a table: ``origin, destination``, attributes, and every known measure.

    A table by one place has that instead of origin and destination, and its unit instead of trips. Nested rows also
    have ``at_cap``, which follows from the rows: whether a row lists *at least* so many trips.
    """
    classes, subject, weight = release.classes, release.subject, public_weights(release)
    ends = {subject.column(axis): axis_zones(release, axis) for axis in subject.axes}
    columns: dict[str, Any] = {
        name: pa.array(zones.ids[code].tolist(), pa.string()) for name, (zones, code) in ends.items()
    }
    columns |= {name: pa.array(values.tolist(), pa.string()) for name, values in classes.attributes.items()}
    for measure in MEASURES:
        masses = weight if measure == "weight" else exact_masses(classes, measure)
        if masses is not None:
            columns[subject.column(measure)] = from_units(masses, classes.scale) if measure == "weight" else masses
    if classes.at_cap is not None:
        columns[AT_CAP] = pa.array(classes.at_cap)
    if classes.standard_error is not None:
        columns[STANDARD_ERROR] = pa.array(classes.standard_error)
    return pa.table(columns)


def public_weights(release: Release) -> Ints | None:
    """Return the weights of the rows as they are published, in their own units; None if none are.

    Weights have four significant digits. Rows whose own weight would disclose something (`Classes.hides_weight`) get
    the mean weight of the others. If there are no others, no weights are published unless the rule promises one.
    """
    classes, promised = release.classes, publishable_rule(release).disclosed_thresholds.get("weight", 0)
    hides = classes.hides_weight
    if classes.weight_units is None or (hides is not None and len(hides) and hides.all() and not promised):
        return None
    least = ceil(Fraction(promised) * classes.scale)
    return disclosed_weights(classes.trips, classes.weight_units, hides, least)


def zones_geojson(release: Release) -> dict[str, Any]:
    """Return every zone of both axes as GeoJSON, with its published totals."""
    features = [
        feature for axis in release.subject.axes for feature in _features(release, *axis_zones(release, axis), axis)
    ]
    return {"type": "FeatureCollection", "features": features}


def axis_zones(release: Release, axis: Axis) -> tuple[Zones, Codes]:
    """Return the zones of an axis, and for each class the position of its zone."""
    if axis == "origin":
        return release.origins, release.classes.origin
    return release.destinations, release.classes.destination


def leaf_counts(release: Release) -> dict[str, dict[str, list[int] | None]]:
    """Return the numbers of observed leaves of the zones of each axis, in the order of ``zones.geojson``; private."""
    subject = release.subject
    leaves = {subject.column(axis): axis_zones(release, axis)[0].leaves for axis in subject.axes}
    return {axis: {"leaves": None if own is None else own.tolist()} for axis, own in leaves.items()}


def _features(release: Release, zones: Zones, zone_of_class: Codes, axis: Axis) -> list[dict[str, Any]]:
    trips, weight = release.classes.trips, public_weights(release)
    totals: dict[str, Any] = {release.subject.column(TRIPS): group_sum(zone_of_class, len(zones), trips)}
    if weight is not None:
        summed = round_units(group_sum(zone_of_class, len(zones), weight), WEIGHT_DIGITS)
        totals["weight"] = from_units(summed, release.classes.scale)
    return [
        {
            "type": "Feature",
            "properties": {
                "axis": release.subject.column(axis),
                **zones.describe(zone),
                **{name: values[zone].item() for name, values in totals.items()},
            },
            "geometry": zones.geometry(zone),
        }
        for zone in range(len(zones))
    ]


def make_manifest(
    release: Release, *, parameters: Mapping[str, Any], quality: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the content of ``release.json``, without the digests of the other files.

    * ``parameters``: those of the method that were requested, not found in the data.
    * ``quality``: publishable quality metrics, if any.
    """
    matrix, subject, weight = release.matrix, release.subject, public_weights(release)
    published = count_published(release)
    if weight is not None:
        total = round_units(weight.sum(keepdims=True), WEIGHT_DIGITS)
        published["weight"] = from_units(total, release.classes.scale).item()
    return {
        "format": FORMAT,
        "version": __version__,
        **subject.to_dict(),
        "statement": promise(release),
        "rule": {} if release.is_noisy else subject.published(public_rule(publishable_rule(release))),
        "method": release.method,
        "parameters": dict(parameters),
        **({"noise": dict(release.parameters["noise"])} if release.is_noisy else {}),
        "resolution": None if matrix is None else matrix.origins.resolution,
        "zones": {
            subject.column(axis): sorted({zones.kind(zone) for zone in range(len(zones))})
            for axis in subject.axes
            for zones in [axis_zones(release, axis)[0]]
        },
        **public_axes(release),
        **_period(release),
        "published": subject.published(published),
        "unlisted": subject.published({"at_most_trips": at_most_unlisted(release)}),
        "quality": quality,
        "units": _units(release, weighted=weight is not None),
    }


def _units(release: Release, *, weighted: bool) -> dict[str, str]:
    """Return the meaning of the numbers in the rows and zones."""
    subject, hides, at_cap = release.subject, release.classes.hides_weight, release.classes.at_cap
    units = {subject.unit: _TRIPS_UNIT if at_cap is None else _NESTED_TRIPS_UNIT}
    if weighted:
        units["weight"] = f"{WEIGHT_UNIT}; {HIDDEN_WEIGHT}" if hides is not None and hides.any() else WEIGHT_UNIT
    if at_cap is not None:
        units[AT_CAP] = AT_CAP_MEANING
    units = {name: subject.words(text) for name, text in units.items()}
    if release.is_noisy:
        units |= {subject.unit: subject.words(_NOISY_TRIPS_UNIT), STANDARD_ERROR: STANDARD_ERROR_MEANING}
    return units | {"area_km2": "square kilometres"}


def make_index(whole: Release, segments: Mapping[str, tuple[str, Mapping[str, str]]], folder: Path) -> dict[str, Any]:
    """Return the content of ``index.json``.

    * ``whole``: the unsegmented release.
    * ``segments``: by folder, the dimension and the values of each published segment. The others must not be listed.
    * ``folder``: where these folders are.
    """
    return {
        "version": __version__,
        "statement": linked_promise(whole),
        "whole": WHOLE,
        "segments": [
            {"dimension": dimension, "segment": segment, "folder": name}
            for name, (dimension, segment) in segments.items()
        ],
        "files": {f"{name}/{MANIFEST}": sha256(folder / name / MANIFEST) for name in (WHOLE, *segments)},
    }


def public_axes(release: Release) -> dict[str, Any]:
    """Return the attributes of a cube with their publishable values; nothing for other releases."""
    matrix = release.matrix
    if matrix is None or not matrix.axes:
        return {}
    return {
        "axes": [
            {"name": axis.name, "levels": axis.listed(release.classes.attributes[axis.name].tolist())}
            for axis in matrix.axes
        ]
    }


def _period(release: Release) -> dict[str, Any]:
    """Return the period in which the trips start, with its time zone; nothing where the input was not limited."""
    reading = release.input.source.reading
    days = {name: reading[name] for name in ("since", "until", "timezone") if name in reading}
    return {"period": days} if days.keys() - {"timezone"} else {}


def count_published(release: Release) -> dict[str, Any]:
    """Return the numbers of classes, zones and published trips."""
    return {
        "classes": len(release.classes),
        **{f"{axis}s": len(axis_zones(release, axis)[0]) for axis in release.subject.axes},
        "trips": int(release.classes.trips.sum()),
    }


def at_most_unlisted(release: Release) -> int | None:
    """Return an upper bound of the suppressed trips that anyone can derive; None where there is none.

    Under a budget of a share b of the trips it is ``b / (1 - b)`` times the published trips. A budget of OD pairs does
    not bound trips, unless it is zero. Complementary suppression may go beyond the budget by the smallest flow (see
    `odkanon.model.release_spec`). Whether it did must not be disclosed, so the smallest published flow always
    counts: the suppressed one had no more trips, unless the rule orders flows by another measure.
    """
    if release.unlisted is not None or release.budget is None:
        return release.unlisted
    share, trips, rule = Fraction(str(release.budget.share)), release.classes.trips, release.rule
    if share == 0:
        return 0
    if release.budget.of != "trips" or (rule.thresholds_only and rule.main_measure != "trips"):
        return None
    beyond = int(trips.min()) if rule.thresholds_only and len(trips) else 0
    return floor(share / (1 - share) * (int(trips.sum()) + beyond)) + beyond
