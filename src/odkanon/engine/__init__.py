"""Engines answer the questions that methods ask of the data, wherever the data is.

A method over hierarchies decides on marginal masses, on what a pair of cuts leaves below the rule, and on the
classes of a pair of cuts. It never looks at a pair, so the same method runs on any engine.
"""

from __future__ import annotations

from typing import Protocol

from odkanon.arrays import Ints
from odkanon.flows import Flows
from odkanon.hierarchy import Cut, Hierarchy
from odkanon.od import Axis
from odkanon.rule import Measure


class Engine(Protocol):
    """What a method over hierarchies may ask."""

    def tree(self, axis: Axis) -> Hierarchy:
        """Return the hierarchy over the leaves of an axis."""
        ...

    def node_masses(self, axis: Axis, measure: Measure) -> tuple[Ints, ...]:
        """Return the mass of every node of an axis, by level."""
        ...

    def coarsen(self, origins: Cut, destinations: Cut) -> Engine:
        """Return the engine over the classes of two cuts; it can be coarsened further, and is faster at it."""
        ...

    @property
    def flows(self) -> Flows:
        """The classes of the cuts that the engine was coarsened to; the OD pairs if it was not."""
        ...
