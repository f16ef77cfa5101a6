"""Registries that other packages extend, by name or by entry point; lazy modules; and optional dependencies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar, overload

from odkanon.errors import InvalidValueError, MissingExtraError, UnknownNameError


class Named(Protocol):
    """Anything that is looked up by its name."""

    @property
    def name(self) -> str: ...  # noqa: D102


T = TypeVar("T", bound=Named)
D = TypeVar("D")


class Registry(Mapping[str, T], Generic[T]):
    """Entries by name: the built-in ones, registered ones, and those that entry points declare.

    Another package declares its own in ``pyproject.toml`` and needs no import to be found::

        [project.entry-points."odkanon.methods"]
        my-method = "my_package:METHOD"

    * ``what``: the noun for an entry, such as ``"method"``; the group of its entry points is ``odkanon.methods``.
    * ``builtin``: our own entries.
    * ``check``: raises if something cannot be registered.
    """

    def __init__(self, what: str, builtin: Iterable[T], *, check: Callable[[T], None] | None = None) -> None:
        self.what = what
        self._own = {each.name: each for each in builtin}
        self._builtin = frozenset(self._own)
        self._check = check
        self._loaded = False

    def register(self, thing: T) -> T:
        """Add an entry and return it; raise if its name is taken."""
        if self._check is not None:
            self._check(thing)
        if thing.name in self._own and self._own[thing.name] is not thing:
            raise InvalidValueError(f"there is a {self.what} {thing.name!r} already; give yours another name")
        self._own[thing.name] = thing
        return thing

    def unregister(self, name: str) -> None:
        """Remove a registered entry; built-in ones stay."""
        if name not in self._builtin:
            self._own.pop(name, None)

    def _all(self) -> dict[str, T]:
        if not self._loaded:
            from importlib.metadata import entry_points  # slow, and our own names do not need it

            self._loaded = True
            for point in entry_points(group=f"odkanon.{self.what}s"):
                self.register(point.load())
        return self._own

    def __getitem__(self, name: str) -> T:
        if name in self._builtin:  # without searching the installed packages, which is slow
            return self._own[name]
        try:
            return self._all()[name]
        except KeyError:
            raise UnknownNameError.among(self.what, name, self._own) from None

    @overload
    def get(self, key: str, default: None = None, /) -> T | None: ...
    @overload
    def get(self, key: str, default: T | D, /) -> T | D: ...
    def get(self, key: str, default: object = None, /) -> object:
        """Return the entry with a name, or the default."""
        try:
            return self[key]
        except UnknownNameError:
            return default

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._all()

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class LazyModule:
    """A module of this package that is imported when one of its functions is first called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def import_extra(module: str, *, purpose: str, extra: str, package: str | None = None) -> Any:
    """Import a module of an optional dependency.

    * ``module``: the module to import, such as ``scipy.sparse``.
    * ``purpose``: what needs it; the subject of the error message.
    * ``extra``: the extra of this package that installs it.
    * ``package``: the name of the distribution; by default the first part of the module's name.

    Raises `MissingExtraError` if it is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError.needed_for(purpose, package or module.partition(".")[0], extra) from None
