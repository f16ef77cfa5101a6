"""The two spatial axes of an OD matrix."""

from typing import Literal

Axis = Literal["origin", "destination"]
AXES: tuple[Axis, Axis] = ("origin", "destination")
