"""Output paths: whether something may be written there, and what may be replaced."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from odkanon.core.atomic_write import check_new, exclusive_lock, move_into_place, partial_folder, restore
from odkanon.core.parsing import parse_json
from odkanon.errors import InputError, TargetExistsError, UnreadableFileError
from odkanon.release_format.names import FILES, INDEX, MANIFEST, WHOLE, ZONES
from odkanon.release_format.recipe import read_recipe, recipe_path, settle_recipe

ContentCheck = Callable[[Path], None]
"""Raises unless an existing path is an earlier output of the same kind, which may be replaced."""


def check_files(*paths: Path, force: bool, private: bool = True) -> None:
    """Raise if one of some files cannot be written; called before the work begins.

    * ``force``: replace earlier files.
    * ``private``: refuse a place inside a release folder, which is going to be published.
    """
    for path in paths:
        if private:
            check_private(path)
        check_new(path, force=force)


def check_private(path: Path) -> None:
    """Raise if a path for the steward's eyes only lies in a folder that is going to be published."""
    for folder in path.resolve().parents:
        index = _has_keys(folder / INDEX, {"whole", "segments"})
        if index or ((folder / MANIFEST).is_file() and (folder / ZONES).is_file()):
            raise InputError(f"{path} lies in the release {folder}, which is to be published; write it elsewhere")


def check_export(output: Path, files: Sequence[str], *, force: bool) -> list[Path]:
    """Return the paths that an export writes, in a folder if there are names of files.

    Raises `InputError` if one of them exists, if a folder is where a file should be or the reverse, or if the folder is
    a release, with which the export would be published.
    """
    if output.exists() and output.is_dir() == (not files):
        kind, needed = ("file", "folder") if files else ("folder", "file")
        raise TargetExistsError.at(output, f"is a {kind}", advice=f"this format needs a {needed}")
    folder = output if files else output.parent
    if any((folder / name).exists() for name in (MANIFEST, INDEX)):
        raise InputError(f"{folder} is a release, in which an export would be published as part of it; choose another")
    targets = [output / name for name in files] or [output]
    check_files(*targets, force=force, private=False)
    return targets


@dataclass(frozen=True)
class OutputFolder:
    """A folder that is written as a whole, and may replace an earlier output of the same kind."""

    path: Path  # where it goes
    check_contents: ContentCheck  # raises unless an existing folder may be replaced
    force: bool = False  # replace an earlier output
    sync: bool = True  # wait until everything is on the disk, so that it survives a power cut

    def check(self) -> None:
        """Raise if the folder cannot be written; called before the work begins, and again when it is put in place."""
        if self.path.exists():
            self.check_contents(self.path)
        check_new(self.path, force=self.force)

    @contextmanager
    def replaced(self) -> Iterator[Path]:
        """Yield a new folder to fill, which takes its place when the block ends without an error."""
        self.check()
        with partial_folder(self.path) as partial:
            made = partial / "made"
            made.mkdir()
            yield made
            move_into_place(made, self.path, check=self.check, sync=self.sync)


@dataclass(frozen=True)
class ReleaseTarget:
    """A release folder, or a folder of linked releases, with its recipe beside it."""

    path: Path  # where the folder goes
    force: bool = False
    """Replace an earlier release. A folder with anything else in it is never replaced."""
    linked: bool = False  # whether it is a folder of linked releases

    def check(self) -> None:
        """Raise if the release cannot be written; called before the work begins.

        First, the folder and the recipe that a killed run left behind are put in place or removed.
        """
        check_private(recipe_path(self.path))
        with exclusive_lock(self.path):  # so that a run that is just finishing is not taken for a killed one
            restore(self.path)
            settle_recipe(self.path)
            if not self.path.exists() or self.path.is_dir():
                read_recipe(self.path)
        self._check_replaceable()

    def _check_replaceable(self) -> None:
        if self.path.exists():
            (check_linked_contents if self.linked else check_release_contents)(self.path)
        check_new(self.path, force=self.force)
        check_new(recipe_path(self.path), force=self.force)

    @contextmanager
    def replaced(self) -> Iterator[tuple[Path, Path]]:
        """Yield a new folder and the path of a recipe to write; both take their places at the end of the block."""
        self.check()
        with partial_folder(self.path) as partial:
            made, recipe = partial / "release", partial / recipe_path(self.path).name
            made.mkdir()
            yield made, recipe
            move_into_place(made, self.path, check=self._check_replaceable, beside=recipe)


def only_files(names: Collection[str], what: str, *, required: str | None = None) -> ContentCheck:
    """Return a check that a folder is empty, or holds files of some names only.

    * ``what``: what such a folder is, for messages: ``a view``.
    * ``required``: a file that a folder that is not empty must have.
    """

    def check(folder: Path) -> None:
        if not folder.is_dir():
            raise TargetExistsError.at(folder, "exists and is not a folder")
        present = sorted(path.name for path in folder.iterdir())
        if present and required is not None and required not in present:
            raise TargetExistsError.at(folder, f"exists and is not {what}", advice="choose another folder")
        foreign = [name for name in present if name not in names or (folder / name).is_dir()]
        if foreign:
            raise TargetExistsError.at(
                folder, f"has {foreign[0]} in it, which is not part of {what}", advice="move it away first"
            )

    return check


_check_release_files = only_files(FILES, "a release", required=MANIFEST)


def check_release_contents(folder: Path) -> None:
    """Raise unless a path is an empty folder, or a release folder with nothing else in it."""
    if (folder / MANIFEST).is_file() and not _has_keys(folder / MANIFEST, {"rule", "method"}):
        raise TargetExistsError.at(folder, "exists and is not a release", advice="choose another folder")
    _check_release_files(folder)


def check_linked_contents(folder: Path) -> None:
    """Raise unless a path is an empty folder, or one of linked releases with nothing else in it."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if not (folder / INDEX).is_file():
        raise TargetExistsError.at(folder, "exists and does not hold linked releases", advice="choose another folder")
    try:
        content = parse_json((folder / INDEX).read_text(encoding="utf-8"))
        parts = {WHOLE, *(part["folder"] for part in content["segments"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableFileError.because(folder / INDEX, error, advice="choose another folder") from None
    for path in sorted(folder.iterdir()):
        if path.name in parts:
            check_release_contents(path)
        elif path.name != INDEX:
            raise TargetExistsError.at(
                folder, f"has {path.name} in it, which is not part of the releases", advice="move it away first"
            )


def _has_keys(path: Path, keys: set[str]) -> bool:
    """Return whether a file is a JSON object with some keys; other programs may use the same file names."""
    try:
        return keys <= set(parse_json(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return False
