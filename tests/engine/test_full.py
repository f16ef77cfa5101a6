"""A full disk and too little memory, for real: one clear error, and nothing written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pyarrow.parquet
import pytest

from cli.runner import odkanon
from engine.killing import check_whole
from engine.same import survey
from odkanon import Rule, read_trips
from odkanon.core.sql import write_csv
from odkanon.methods.method_registry import anonymize
from odkanon.read.od_matrix import build_od
from odkanon.sample.crowd import write_crowd

ON_SMALL_DISK = """
mount -t tmpfs -o "size=$1" tmpfs "$2" || exit 99
cp -r "$2.before/." "$2"
shift 2
"$@"
code=$?
cp -r "$DISK/." "$DISK.after"
exit $code
"""


class SmallDisk:
    """A disk of a few kilobytes; only the process on it sees it, so what is on it is copied in and out."""

    def __init__(self, folder: Path) -> None:
        self.path, self.before, self.after = (folder / name for name in ("disk", "disk.before", "disk.after"))
        for path in (self.path, self.before, self.after):
            path.mkdir()

    def odkanon(self, size: int, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        shell = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", ON_SMALL_DISK, "sh", size, self.path]
        return subprocess.run(
            [*map(str, shell), sys.executable, "-m", "odkanon", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "DISK": str(self.path), **environment},
        )


@cache
def why_no_small_disk() -> str:
    """Return why this machine does not let us mount a small disk; empty if it does."""
    if not shutil.which("unshare"):
        return "there is no unshare"
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr.strip()


@pytest.fixture
def disk(tmp_path: Path) -> SmallDisk:
    if why_no_small_disk():
        pytest.skip(f"cannot mount a small disk: {why_no_small_disk()}")
    return SmallDisk(tmp_path)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_crowd(60_000, tmp_path_factory.mktemp("many") / "trips", seed=4)


def one_error(done: subprocess.CompletedProcess[str]) -> str:
    """Return the message of a run that failed; it must be one line, and nothing else may have been said."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize("size", [64_000, 1_500_000])
def test_no_space_for_intermediate_results(disk: SmallDisk, many: Path, tmp_path: Path, size: int) -> None:
    """The smaller disk has no room for an empty database, the larger one none for these trips."""
    done = disk.odkanon(size, "anonymize", many, "-o", tmp_path / "out", "--engine", "duckdb", TMPDIR=str(disk.path))
    assert "no disk space left for intermediate results" in (said := one_error(done))
    assert "TMPDIR" in said
    assert not (tmp_path / "out").exists()
    assert not any(disk.after.iterdir())


@pytest.mark.parametrize(("engine", "room"), [("memory", 8_000), ("duckdb", 80_000)])
def test_no_space_for_the_release(disk: SmallDisk, tmp_path: Path, engine: str, room: int) -> None:
    """The earlier release stays as it was; the room is for some files, never for all."""
    pyarrow.parquet.write_table(survey(), trips := tmp_path / "trips.parquet")
    anonymize(build_od(read_trips(trips)), Rule(trips=10)).save(disk.before / "out")
    earlier = {file.name: file.read_bytes() for file in (disk.before / "out").iterdir()}
    size = sum(-(-len(content) // 4096) * 4096 for content in earlier.values()) + room
    target = disk.path / "out"
    done = disk.odkanon(size, "anonymize", trips, "-o", target, "--force", "--engine", engine)
    assert "no disk space left for the output; nothing was written" in one_error(done)
    check_whole(disk.after / "out")
    assert {file.name: file.read_bytes() for file in (disk.after / "out").iterdir()} == earlier
    assert sorted(path.name for path in disk.after.iterdir()) == ["out", "out.recipe.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_no_space_for_a_table() -> None:
    with pytest.raises(OSError, match="No space left"):
        write_csv(survey(100), Path("/dev/full"))


def test_too_little_memory_for_real(many: Path, tmp_path: Path) -> None:
    command = ("anonymize", many, "--engine", "duckdb", "--method", "odkanon", "--protect", "participants", "-o")
    assert "memory limit of 19.1 MiB is too small" in one_error(
        odkanon(*command, tmp_path / "none", "--memory-limit", "20MB")
    )
    assert not any(tmp_path.iterdir())
    assert odkanon(*command, tmp_path / "little", "--memory-limit", "100MB").returncode == 0
    anonymize(build_od(read_trips(many)), Rule(trips=10)).save(tmp_path / "plenty")
    little, plenty = ((tmp_path / name / "classes.parquet").read_bytes() for name in ("little", "plenty"))
    assert little == plenty
