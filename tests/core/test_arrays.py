"""Arrays: positions of values, and dataclasses whose arrays are read-only."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from odkanon.core.arrays import Frozen, Ints, locate


@pytest.mark.parametrize("keys", [[], [7], [5, 3, 9, 1], [1, 3, 5, 9]])
def test_values_are_located_among_distinct_keys(keys: list[int]) -> None:
    wanted = np.arange(12)
    at, found = locate(np.array(keys, dtype=np.int64), wanted)
    assert found.tolist() == [value in keys for value in wanted.tolist()]
    assert at.tolist() == [keys.index(value) if value in keys else 0 for value in wanted.tolist()]


@dataclass(frozen=True, eq=False)
class Example(Frozen):
    numbers: Ints
    counts: dict[str, Ints]
    names: dict[str, str]
    text: str = "free"


def test_every_array_of_a_frozen_dataclass_is_read_only_also_in_a_copy() -> None:
    numbers = np.arange(3)
    made = Example(numbers[:2], {"persons": np.arange(2)}, {"a": "b"})
    numbers[0] = 9
    for each in (made, pickle.loads(pickle.dumps(made))):
        assert each.numbers.tolist() == [0, 1]
        for array in (each.numbers, each.counts["persons"]):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 5
        with pytest.raises(TypeError):
            each.counts["persons"] = np.arange(2)
        assert each.names == {"a": "b"}
        assert each.text == "free"
