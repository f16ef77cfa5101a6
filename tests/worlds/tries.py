"""How many examples a property tries."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

ALL = 100
"""What the profile ``thorough`` tries of a property that does not say how many; others are scaled alike."""
LEAST = 8


def tries(examples: int, **more: Any) -> settings:
    """Return the settings of a property: so many examples in `make test-slow`, and its share of them in `make test`."""
    share = settings().max_examples / ALL
    return settings(max_examples=min(examples, max(LEAST, round(share * examples))), **more)
