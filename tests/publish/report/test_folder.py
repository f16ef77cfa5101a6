from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from odkanon.errors import InputError
from odkanon.publish.report.folder import is_index, read_folder, read_index
from web import made


def test_csv_and_parquet_give_the_same(tmp_path: Path) -> None:
    folder = made.hexagons(tmp_path / "release")
    from_csv = read_folder(folder)
    table = pyarrow.csv.read_csv(folder / "classes.csv")
    pyarrow.parquet.write_table(table, folder / "classes.parquet")
    (folder / "classes.csv").unlink()
    assert read_folder(folder) == from_csv


def test_only_the_folders_own_name_is_kept(tmp_path: Path) -> None:
    assert read_folder(made.hexagons(tmp_path / "release")).name == "release"


def test_an_empty_release_can_be_read(tmp_path: Path) -> None:
    assert read_folder(made.save(tmp_path / "empty", [])).classes["trips"] == []


@pytest.mark.parametrize("name", ["release.json", "zones.geojson", "classes.csv"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = made.hexagons(tmp_path / "release")
    (folder / name).unlink()
    with pytest.raises(InputError, match=name):
        read_folder(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("release.json", "{", "not valid JSON"),
        ("zones.geojson", "[]", "does not hold a JSON object"),
        ("classes.csv", "origin,trips\na,1\n", "lacks the column"),
        ("classes.csv", "origin,destination,trips\na,b,many\n", "invalid literal"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    folder = made.hexagons(tmp_path / "release")
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_folder(folder)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        read_folder(tmp_path / "nowhere")


def test_segments_are_read_with_the_whole_first_and_named_by_what_they_are(tmp_path: Path) -> None:
    folder = made.segments(tmp_path / "together")
    assert is_index(folder)
    assert not is_index(folder / "whole")
    assert [release.name for release in read_index(folder)] == ["whole", "hour: 06-09", "hour: 15-18"]


def test_an_index_without_segments_is_refused(tmp_path: Path) -> None:
    folder = made.segments(tmp_path / "together")
    (folder / "index.json").write_text('{"whole": "whole"}', encoding="utf-8")
    with pytest.raises(InputError, match="does not list its segments"):
        read_index(folder)
