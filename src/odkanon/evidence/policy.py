"""The rules of an office, in a file: what a release must promise, hold and withstand before somebody signs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odkanon.core.parsing import parse_toml
from odkanon.errors import InputError, nearest
from odkanon.evidence.attacks.attack_registry import ATTACKS
from odkanon.methods.method_registry import METHODS
from odkanon.model.measures import MEASURES
from odkanon.model.rule import CONSTRAINTS

EXAMPLE = """\
# What this office asks of a release. Remove what you do not ask for. `odkanon check RELEASE --policy FILE` tells what
# is broken, and `odkanon evidence` puts it on the sheet.

[rule]
# The least that every published flow must promise, by what is counted.
trips = 10
persons = 10          # where the data names persons, ask for them: ten trips of one person hide nobody
# households = 5
# weight = 25000.0
# max_share = 0.5        # no person or household has more than half of the trips of a flow
# min_destinations = 2   # no origin zone with a single published destination

[release]
methods = ["odkanon", "cascade"]   # which methods may be used
most_suppressed = 0.10             # the share of the trips that may be left out
finest_resolution = 9              # no zone finer than this H3 resolution (10 is a block, 9 a few of them)
smallest_area_km2 = 0.05           # no zone smaller than this

[attacks]
# Attacks that must be clean; the sheet of `odkanon evidence` has them.
clean = ["complement", "differencing", "intervals", "borders"]
# "replay" can be asked for, too: give it time (--seconds 600), and it may still end as "not settled".

[limits.dominance]
# Numbers of attacks that must not be exceeded, by their names on the sheet.
"largest share" = 0.75

[limits.membership]
"outsider AUC" = 0.90

[compare]
# Releases of the same trips that are out already; paths are seen from this file.
releases = []
"""

_KEYS = {
    "rule": (*MEASURES, *CONSTRAINTS),
    "release": ("methods", "most_suppressed", "finest_resolution", "smallest_area_km2"),
    "attacks": ("clean",),
    "limits": tuple(ATTACKS),
    "compare": ("releases",),
}


@dataclass(frozen=True)
class Policy:
    """What an office asks of a release.

    Attributes
    ----------
    rule : mapping of str to float
        By measure, the least that a release must promise of every flow; and what else, ``max_share`` being a most.
    methods : tuple of str
        Which methods may be used; any where none is named.
    most_suppressed : float or None
        The share of the trips that may be left out, in [0, 1].
    finest_resolution : int or None
        The finest H3 resolution of a zone.
    smallest_area_km2 : float or None
        The least area of a zone.
    clean : tuple of str
        Attacks that must be clean.
    limits : mapping of str to mapping of str to float
        By attack and number, what must not be exceeded.
    compare : tuple of Path
        Releases to compare with.
    """

    rule: Mapping[str, float] = field(default_factory=dict)
    methods: tuple[str, ...] = ()
    most_suppressed: float | None = None
    finest_resolution: int | None = None
    smallest_area_km2: float | None = None
    clean: tuple[str, ...] = ()
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    compare: tuple[Path, ...] = ()

    @property
    def needs_evidence(self) -> bool:
        """Whether it asks for attacks."""
        return bool(self.clean or self.limits or self.compare)


def read_policy(path: Path | str) -> Policy:
    r"""Read a policy.

    Raises
    ------
    InputError
        If the file cannot be read, or asks for something that is not known.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "policy.toml"
    ...     _ = file.write_text("[rule]\ntrips = 10\n")
    ...     read_policy(file).rule
    {'trips': 10}
    """
    path = Path(path)
    try:
        said = parse_toml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a policy ({error}); see the example") from None
    for table, content in said.items():
        _known(path, table, _KEYS, "table")
        if not isinstance(content, dict):
            raise InputError(f"{path}: {table} is a table, written [{table}]")
        for key in content:
            _known(path, key, _KEYS[table], f"key of [{table}]")
    release, attacks = said.get("release", {}), said.get("attacks", {})
    for name in _texts(path, release, "methods"):
        _known(path, name, METHODS, "method")
    for name in _texts(path, attacks, "clean"):
        _known(path, name, ATTACKS, "attack")
    return Policy(
        {name: _number(path, name, value) for name, value in said.get("rule", {}).items()},
        _texts(path, release, "methods"),
        _optional(path, release, "most_suppressed"),
        None
        if release.get("finest_resolution") is None
        else int(_number(path, "finest_resolution", release["finest_resolution"])),
        _optional(path, release, "smallest_area_km2"),
        _texts(path, attacks, "clean"),
        {
            attack: {name: _number(path, name, value) for name, value in numbers.items()}
            for attack, numbers in said.get("limits", {}).items()
        },
        tuple(path.parent / name for name in _texts(path, said.get("compare", {}), "releases")),
    )


def _known(path: Path, name: str, known: Any, what: str) -> None:
    if name not in known:
        raise InputError(f"{path}: there is no {what} {name!r}{nearest(name, known)}; there are {', '.join(known)}")


def _texts(path: Path, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InputError(f'{path}: {key} is a list of texts, such as ["odkanon"], not {value!r}')
    return tuple(value)


def _number(path: Path, key: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise InputError(f"{path}: {key} is a number of at least 0, not {value!r}")
    return value


def _optional(path: Path, table: Mapping[str, Any], key: str) -> float | None:
    return None if key not in table else float(_number(path, key, table[key]))
