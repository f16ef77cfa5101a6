"""Is this where people live? A coarse look at where trips lie, to catch swapped coordinates."""

from __future__ import annotations

import base64
import logging
import zlib
from functools import cache

import numpy as np
import numpy.typing as npt

from odkanon.zoning.cells import Cells, latlng_to_cell

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]

SAMPLE = 10_000
_LAND = (
    "c-oy%JxIeq6n>YhHi(!G6@MYYBBFvyaS#VvP|(pqH^If#A5g@}WDx8oI0+6qiQp`V4lRP1LBYXARGL9hP)G-BQ?2*ByVR08`a#~k"
    "+<otR-+R%Wle&Wu_W9~*PG2g)4mHe}7<U<-k+Xaj5g+k8cmHjgS<JEr6J12tL>~na@)I?Loete+;Q9@KBtv8lKmmdQSP{hnNCa-a"
    "j6`vO79+ZilF4OXhS3QDL$`pOEN}o7XtL@?=Cq>n?Ay@MWt5w_LJfx!`w?02VIokEXGDvJ2QyHG-wDEdm`e&yxq(+<sA34v(K@AG"
    "8#MBp$*66yrlOw43)XbEJB!8G;iar9fd##r)g1`hN-g0I+8vlTfcPURTP$r&1$p?uTNheL>H0?hW0D&P`}%gn$0#sm4b-$1c<(CZ"
    "ku7B<=Uq-+Bf>3RM_e{LXU?fwU#3nQ&2+m*7AvhAWJL-;mc)N32`TMKwV2-$z~J8kqpRoy&4>lXV;<jDN1Tiw3$sU`{Z3=~d4{q@"
    "2mV5_%Zbp0v2d<7X;u-8K(5Nz9@s)RK#U(L_&0t4YM=m?"
)
"""One bit for each H3 cell of resolution 2, in ascending order: does it hold land north of 60 degrees south?

Worked out from the public-domain outlines of Natural Earth, 1:50 million.
"""


def warn_if_misplaced(lat: Floats, lon: Floats) -> None:
    """Warn where most points lie in the sea or in Antarctica, but on land if latitude and longitude were swapped.

    Many places have land at both readings (Rome, Madrid), so silence proves nothing.
    """
    few = slice(None, None, max(len(lat) // SAMPLE, 1))
    lat, lon = lat[few], lon[few]
    swappable = np.abs(lon) <= 90
    if _on_land(lat, lon).mean() < 0.5 < (swappable & _on_land(np.where(swappable, lon, 0.0), lat)).mean():
        log.warning(
            "most trips lie in the sea or in Antarctica, around latitude %.2f, longitude %.2f; swap lat and lon?",
            np.median(lat),
            np.median(lon),
        )


def _on_land(lat: Floats, lon: Floats) -> npt.NDArray[np.bool_]:
    cells, land = _land()
    return land[np.searchsorted(cells, latlng_to_cell(lat, lon, 2))]


@cache
def _land() -> tuple[Cells, npt.NDArray[np.bool_]]:
    import h3.api.numpy_int as h3

    cells = np.sort(h3.uncompact_cells(h3.get_res0_cells(), 2))
    packed = np.frombuffer(zlib.decompress(base64.b85decode(_LAND)), dtype=np.uint8)
    return cells, np.unpackbits(packed, count=len(cells)).astype(bool)
