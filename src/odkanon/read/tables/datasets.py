"""Datasets of many Parquet files: folders, partitioned or not, and patterns such as ``trips/2024-*.parquet``."""

from __future__ import annotations

import glob
import hashlib
import logging
import re
from collections.abc import Collection, Iterable
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from odkanon.core.system import plain, remote
from odkanon.errors import FileMissingError, InputError, UnreadableFileError
from odkanon.model.measures import MEASURES

log = logging.getLogger(__name__)

STORES = ("s3", "gs")
"""Object stores that pyarrow reads; other addresses are for Spark."""


def is_store(source: str | PurePath) -> bool:
    """Return whether a source is in an object store that pyarrow reads: ``s3://`` or ``gs://``."""
    address = remote(source)
    return address is not None and address.partition("://")[0].lower() in STORES


def open_store(address: str) -> Any:
    """Return the Parquet file, or folder of files, at an address as an Arrow dataset.

    Credentials and endpoint come from the usual places: the environment (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT_URL``,
    ...), configuration files, or the machine.
    """
    import pyarrow as pa
    import pyarrow.dataset
    import pyarrow.fs

    try:
        files, path = pyarrow.fs.FileSystem.from_uri(address)
        own = pyarrow.dataset.dataset(path, filesystem=files, format="parquet")
        check_partitions(map(PurePosixPath, own.files), own.schema.names, address)
        found = pyarrow.dataset.dataset(path, filesystem=files, format="parquet", partitioning="hive")
    except (OSError, pa.ArrowException) as error:
        advice = "check the address, and whether you have access"
        raise UnreadableFileError.because(address, error, advice=advice) from None
    if not found.files:
        raise InputError(f"there are no Parquet files at {address}; check the address")
    return found


def dataset_files(source: str | Path) -> list[Path] | None:
    """Return the files of a dataset, sorted; None for a single file."""
    path, text = Path(source), str(source)
    if path.is_dir():
        files = sorted(
            file
            for file in path.rglob("*.parquet")
            if not any(part[0] in "._" for part in file.relative_to(path).parts)
        )
        if not files:
            raise InputError(f"{path} is a folder without Parquet files; give a file, or a folder of *.parquet")
        check_distinct_files(files)
        return list(map(plain, files))
    if not path.exists() and glob.has_magic(text):
        files = sorted(Path(name) for name in glob.glob(text, recursive=True))
        if not files:
            raise FileMissingError.at(text, what="file that matches", advice="check the pattern")
        # A pattern may match both a folder and its files.
        files = sorted({file for name in files for file in (dataset_files(name) or [plain(name)])})
        check_distinct_files(files)
        return files
    return None


def check_distinct_files(files: Iterable[Path]) -> None:
    """Raise if two names refer to one file, also by a link: its trips would count twice."""
    seen: dict[object, Path] = {}
    for file in files:
        about = file.stat() if file.exists() else None
        first = seen.setdefault(file if about is None else (about.st_dev, about.st_ino), file)
        if first is not file:
            twice = f"{file} is listed twice" if first == file else f"{first} and {file} are the same file"
            raise InputError(f"{twice}; its trips would count twice, so list each file once")


def check_partitions(files: Iterable[PurePath], own: Collection[str], name: str) -> None:
    """Raise if a folder such as ``weight=5`` would replace a column of the files; warn if it adds a counted one."""
    folders = {part for file in files for part in file.parent.parts if re.fullmatch(r"[^=]+=[^=]*", part)}
    made = {folder.partition("=")[0]: folder for folder in sorted(folders)}
    for key, folder in made.items():
        if key.lower() in map(str.lower, own):
            raise InputError(f"{name} has a column {key!r}, which folder {folder!r} would replace; rename one of them")
    counted = ("trips", *(measure.column for measure in MEASURES.values() if measure.column))
    added = [folder for key, folder in made.items() if any(word in key.lower() for word in counted)]
    if added:
        log.warning("%s: folder names are read as columns (%s)", name, ", ".join(added))


def dataset_sha256(files: list[Path]) -> str:
    """Return the SHA-256 of the digests of some files, in the order of their names; folders do not matter."""
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as content:
            whole.update(hashlib.file_digest(content, "sha256").digest())
    return whole.hexdigest()
