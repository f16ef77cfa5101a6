"""Is this where people live? A coarse look at where trips lie, to catch swapped coordinates."""

from __future__ import annotations

import logging

import numpy as np
import numpy.typing as npt

log = logging.getLogger(__name__)


def warn_if_misplaced(lat: npt.NDArray[np.float64], lon: npt.NDArray[np.float64]) -> None:
    """Warn where most points lie in the sea or at a pole but would not if latitude and longitude were swapped."""
