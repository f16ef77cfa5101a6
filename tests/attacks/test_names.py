"""Names of files that libraries take for something else: the home folder, an address, a pattern, a file twice."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from cli.runner import odkanon, output
from odkanon import InputError, Rule, audit_releases, open_release, read_trips
from odkanon.core.atomic_write import check_new, partial_folder
from odkanon.methods.method_registry import anonymize
from worlds.matrices import golden_od


def trips(rows: int) -> pa.Table:
    """Rows without person or time, of which copies cannot be told from trips."""
    place = {"start_lat": 48.85, "start_lon": 2.35, "end_lat": 48.86, "end_lon": 2.36}
    return pa.table({name: [value] * rows for name, value in place.items()})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder beside somebody's home."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_a_folder_called_tilde_is_not_the_home_folder(here: Path, suffix: str) -> None:
    """DuckDB read the file of that name at home, and signed it with the digest of the other."""
    Path("~").mkdir()
    for folder, rows in ((here / "work" / "~", 7), (here / "home", 30)):
        if suffix == "csv":
            pyarrow.csv.write_csv(trips(rows), folder / "t.csv")
        elif suffix == "parquet":
            pyarrow.parquet.write_table(trips(rows), folder / "t.parquet")
        else:
            pyarrow.feather.write_feather(trips(rows), folder / "t.arrow")
    assert len(read_trips(f"~/t.{suffix}")) == 7
    Path("~", f"t.{suffix}").rename(f"~t.{suffix}")
    assert len(read_trips(f"~t.{suffix}")) == 7
    if suffix == "parquet":
        Path("~t.parquet").rename("~/t.parquet")
        assert len(read_trips("~")) == 7


@pytest.mark.parametrize("name", ["~t", "~/t", "s3:t", "file:t", "t[12]", "weight=1/t"])
def test_a_release_goes_where_its_name_says(here: Path, name: str) -> None:
    release = anonymize(golden_od("tiny"), Rule(trips=5))
    folder = release.save(name)
    assert (here / "work" / name / "release.json").is_file()
    assert open_release(folder).table.equals(release.to_arrow())
    assert "cannot be read" not in str(audit_releases([folder]).findings)
    assert not list((here / "home").iterdir())


def test_nothing_is_written_to_an_address_that_is_no_folder(here: Path) -> None:
    done = odkanon("sample", "-o", "s3://bucket/trips.parquet", cwd=here)
    assert done.returncode == 2
    assert "s3://bucket/trips.parquet is not on this machine" in output(done)
    with pytest.raises(InputError, match="is not on this machine"):
        check_new(Path("s3://bucket/release"))
    assert not (here / "s3:").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are Unicode")
def test_a_name_that_is_not_unicode_is_said(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"t\xff.csv")
    path.write_text("start_lat,start_lon,end_lat,end_lon\n1,2,3,4\n")
    with pytest.raises(InputError, match="not valid UTF-8; rename the file"):
        read_trips(path)
    with pytest.raises(InputError, match="not valid UTF-8; rename the file"), partial_folder(path.with_suffix("")):
        pass


def test_a_pattern_reads_a_file_once(tmp_path: Path) -> None:
    """``set/**`` matches a folder and what is in it: each trip was counted up to three times."""
    (tmp_path / "set" / "sub").mkdir(parents=True)
    pyarrow.parquet.write_table(trips(4), tmp_path / "set" / "a.parquet")
    pyarrow.parquet.write_table(trips(3), tmp_path / "set" / "sub" / "b.parquet")
    assert len(read_trips(str(tmp_path / "set" / "**"))) == 7


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_is_not_read_again_under_another_name(tmp_path: Path, link: object) -> None:
    pyarrow.parquet.write_table(trips(4), first := tmp_path / "a.parquet")
    second = tmp_path / "b.parquet"
    (os.symlink if link is os.symlink else os.link)(first, second)
    for source in (tmp_path, str(tmp_path / "*.parquet"), [first, second]):
        with pytest.raises(InputError, match="are the same file; its trips would count twice"):
            read_trips(source)
