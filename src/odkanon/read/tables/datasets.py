"""Datasets of many Parquet files: folders, partitioned or not, and patterns such as ``trips/2024-*.parquet``."""

from __future__ import annotations

import glob
import hashlib
import re
from pathlib import Path, PurePath
from typing import Any

from odkanon.errors import InputError

STORES = ("s3", "gs")
"""Object stores that pyarrow reads; other addresses are for Spark."""
_REMOTE = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?=[^/])")


def remote(source: str | PurePath) -> str | None:
    """Return the address of a source in an object store, such as ``s3a://bucket/trips``; None for local paths."""
    # A path object has lost one of the two slashes, and on Windows turned the others round.
    text = source.as_posix() if isinstance(source, PurePath) else source
    found = _REMOTE.match(text)
    return None if found is None else f"{found[1]}://{text[found.end() :]}"


def is_store(source: str | PurePath) -> bool:
    """Tell whether a source lies in an object store that is read from here: ``s3://`` or ``gs://``."""
    address = remote(source)
    return address is not None and address.partition("://")[0].lower() in STORES


def open_store(address: str) -> Any:
    """Return the Parquet files at an address as a dataset of Arrow: one file, or a folder of them.

    Who may read them, and where the store is, pyarrow finds out as other programs do: from the environment
    (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT_URL``, ...), from files of the user, or from the machine.
    """
    import pyarrow as pa
    import pyarrow.dataset
    import pyarrow.fs

    try:
        files, path = pyarrow.fs.FileSystem.from_uri(address)
        found = pyarrow.dataset.dataset(path, filesystem=files, format="parquet", partitioning="hive")
    except (OSError, pa.ArrowException) as error:
        told = str(error).splitlines()[0]
        raise InputError(f"{address} cannot be read ({told}); check the address, and whether you may read it") from None
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
        return files
    if not path.exists() and glob.has_magic(text):
        files = sorted(Path(name) for name in glob.glob(text, recursive=True))
        if not files:
            raise InputError(f"no file matches {text}; check the pattern")
        return [file for name in files for file in (dataset_files(name) or [name])]
    return None


def partitions(files: list[Path]) -> dict[str, str]:
    """Return the columns that folders such as ``month=5`` make, each with such a folder."""
    folders = [part for file in files for part in file.parent.parts if re.fullmatch(r"[^=]+=[^=]*", part)]
    return {folder.partition("=")[0]: folder for folder in folders}


def dataset_sha256(files: list[Path]) -> str:
    """Return the SHA-256 of the SHA-256 of each file, in the order of their names; where they lie does not matter."""
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as content:
            whole.update(hashlib.file_digest(content, "sha256").digest())
    return whole.hexdigest()
