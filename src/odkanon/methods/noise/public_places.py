"""The public places and values between which a noisy release counts; nothing of them comes from the trips."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from odkanon.attributes.hierarchies import AttributeAxis
from odkanon.core.arrays import Codes, Ints
from odkanon.errors import InputError
from odkanon.estimate.flow_model import FEWER_KM
from odkanon.estimate.place_tree import FINEST
from odkanon.model.od import Matrix
from odkanon.zoning.cells import Cells, Floats, cell_to_children, cell_to_parent, cell_to_resolution
from odkanon.zoning.hierarchy import Hierarchy, StudyArea, h3_hierarchy
from odkanon.zoning.spherical_geometry import RADIUS_KM
from odkanon.zoning.zones import find_nodes

MOST_PLACES = 4_500
"""The pairs of places are held in memory all at once."""
MOST_BLOCKS = 400_000
"""The pairs of zones that get noise of their own, of which OpenDP draws some 40,000 a second."""


@dataclass(frozen=True, eq=False)
class PublicPlaces:
    """Places, the zones that they form, and the distances between them, all of them public.

    Attributes
    ----------
    tree : Hierarchy
        The places as leaves, observed or not, up to the root.
    leaf_level : int
        For other zonings than H3, the level of the public tree whose nodes are the places.
    public : Hierarchy or None
        That tree.
    """

    tree: Hierarchy
    leaf_level: int = 0
    public: Hierarchy | None = None

    def __len__(self) -> int:
        return len(self.tree.leaves)

    def number(self, tree: Hierarchy) -> Ints:
        """Return the place of each leaf of a tree; -1 for those outside of all places."""
        places = self.tree.leaves
        if self.public is None:
            assert self.tree.resolution is not None
            cells = cell_to_parent(tree.leaves, self.tree.resolution)
            at = np.searchsorted(places, cells).clip(max=len(places) - 1)
            return np.where(places[at] == cells, at, -1)
        leaf = find_nodes(self.public, 0, tree.leaves)
        return self.public.codes[self.leaf_level][leaf].astype(np.int64)

    @cached_property
    def block_levels(self) -> tuple[int, ...]:
        """The levels of the fine and the coarse blocks: the finest with few enough pairs, and the one above it."""
        counts = [len(ids) for ids in self.tree.ids]
        fine = next((level for level, count in enumerate(counts) if count**2 <= MOST_BLOCKS), self.tree.top)
        above = [level for level in range(fine + 1, self.tree.top + 1) if 1 < counts[level] < counts[fine]]
        return (fine, *above[:1])

    @cached_property
    def distance_class(self) -> npt.NDArray[np.uint8]:
        """The class of distance of each pair of places, the same for all where distances are unknown."""
        centres = self._centres
        if centres is None:
            return np.zeros((len(self), len(self)), dtype=np.uint8)
        lat, lon = (np.radians(each) for each in centres)
        vectors = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
        cosine = np.clip(vectors @ vectors.T, -1, 1)
        distance = RADIUS_KM * np.arccos(cosine, out=cosine)
        np.fill_diagonal(distance, 0.0)
        found = np.searchsorted(FEWER_KM, np.round(distance, 3), side="right") - 1
        classes: npt.NDArray[np.uint8] = found.astype(np.uint8)
        return classes

    @property
    def distances(self) -> int:
        """Number of classes of distance."""
        return len(FEWER_KM)

    @cached_property
    def _centres(self) -> tuple[Floats, Floats] | None:
        if self.tree.resolution is not None:
            return self.tree.centres
        outlines = self.tree.outlines or {}
        shapes = [outlines.get(str(name)) for name in self.tree.leaves.tolist()]
        if any(shape is None for shape in shapes):
            return None
        import shapely

        centroid = shapely.centroid(shapely.from_geojson([json.dumps(shape) for shape in shapes]))
        return shapely.get_y(centroid), shapely.get_x(centroid)


def public_places(od: Matrix) -> PublicPlaces:
    """Return the public places of a matrix.

    Raises
    ------
    InputError
        If they are known from the trips only.
    """
    tree = od.origins
    if tree.resolution is None:
        full = tree.public or tree
        level = next((at for at, ids in enumerate(full.ids) if len(ids) <= MOST_PLACES), full.top)
        return PublicPlaces(_above(full, level), level, full)
    if tree.within is None:
        raise InputError(
            "noise needs a public area: which cells have trips is itself an answer about them. Give the area, or your "
            "zones",
            option="within area.gpkg",
        )
    return PublicPlaces(_cells_of(tree.within, tree.resolution))


def _above(full: Hierarchy, level: int) -> Hierarchy:
    """Return a tree whose leaves are the nodes of a level of another."""
    starts = tuple(np.searchsorted(full.starts[level], each) for each in full.starts[level:])
    return replace(full, ids=full.ids[level:], starts=starts, listed=None, public=None, names=full.names[level:])


def _cells_of(area: StudyArea, finest: int) -> Hierarchy:
    """Return the cells of an area at the finest useful resolution at which they are not too many."""
    found = _cover(area, 0, finest)
    for resolution in range(1, min(finest, FINEST) + 1):
        finer = _cover(area, resolution, finest)
        if len(finer) > MOST_PLACES:
            break
        found = finer
    return h3_hierarchy(found)


def _cover(area: StudyArea, resolution: int, finest: int) -> Cells:
    """Return the cells of a resolution that contain the cells of an area, of up to two resolutions more."""
    mask = area.mask(min(finest, resolution + 2))
    at = cell_to_resolution(mask)
    parts = [cell_to_parent(mask[at >= resolution], resolution)]
    parts += [cell_to_children(mask[at == coarse], resolution) for coarse in np.unique(at[at < resolution]).tolist()]
    return np.unique(np.concatenate(parts))


def check_public_values(axes: Sequence[AttributeAxis]) -> None:
    """Raise unless the values of attributes are the user's rather than those that occur."""
    for axis in axes:
        if not axis.named:
            raise InputError(
                f"noise needs the public values of {axis.name!r}: which ones occur is itself an answer about the "
                f"trips; name them, as in {axis.name}:first=1+2,second=3"
            )


def value_numbers(axis: AttributeAxis, code: Codes) -> Ints:
    """Return the number of values among all public ones."""
    return find_nodes(axis.public, 0, axis.tree.leaves)[code].astype(np.int64)
