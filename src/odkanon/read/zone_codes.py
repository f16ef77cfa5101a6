"""Codes of zones that are written in two ways: with and without leading zeros, or as the number that they are not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Texts = npt.NDArray[np.str_]


def bare(codes: Texts) -> Texts:
    """Return codes without what programs add to or take from numbers: ``052``, ``52`` and ``52.0`` are the same.

    Examples
    --------
    >>> bare(np.array(["0052", "52.0", "A07", "0"])).tolist()
    ['52', '52', 'A07', '0']
    """
    whole = np.char.partition(codes, ".")
    number = np.char.isdigit(whole[:, 0]) & np.isin(whole[:, 2], ["", "0", "00"])
    digits = np.char.lstrip(whole[:, 0], "0")
    return np.where(number, np.where(digits == "", "0", digits), codes)


def unknown_codes(codes: Texts, leaves: Texts) -> str:
    """Say which codes of the data are no leaf of the lookup table, and what may be wrong with them; empty for none.

    Rows are not matched by guess: in some tables ``1`` and ``01`` are two zones.
    """
    strange = np.setdiff1d(codes, leaves)
    if len(strange) == 0:
        return ""
    many = "1 code of the data is" if len(strange) == 1 else f"{len(strange):,} codes of the data are"
    known = dict(zip(bare(leaves).tolist(), leaves.tolist(), strict=True))
    for code, alike in zip(strange.tolist(), bare(strange).tolist(), strict=True):
        if alike in known:
            return (
                f"{many} not in the lookup table, such as {code!r}, which is {known[alike]!r} there; codes have to be "
                "written alike: keep them as text, with their leading zeros"
            )
    return (
        f"{many} not in the lookup table, such as {str(strange[0])!r}; a leaf there is called {min(leaves.tolist())!r}"
    )
