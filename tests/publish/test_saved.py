from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from odkanon.errors import InputError
from odkanon.release_format.folder import open_release
from web import made


def test_csv_and_parquet_give_the_same(tmp_path: Path) -> None:
    folder = made.hexagons(tmp_path / "release")
    from_csv = open_release(folder).table
    table = pyarrow.csv.read_csv(folder / "classes.csv")
    pyarrow.parquet.write_table(table, folder / "classes.parquet")
    (folder / "classes.csv").unlink()
    assert open_release(folder).table.equals(from_csv)


def test_only_the_folders_own_name_is_kept(tmp_path: Path) -> None:
    assert open_release(made.hexagons(tmp_path / "release")).name == "release"


def test_an_empty_release_can_be_read(tmp_path: Path) -> None:
    assert open_release(made.save(tmp_path / "empty", [])).table.num_rows == 0


@pytest.mark.parametrize("name", ["release.json", "zones.geojson", "classes.csv"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = made.hexagons(tmp_path / "release")
    (folder / name).unlink()
    with pytest.raises(InputError, match=name):
        open_release(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("release.json", "{", "not valid JSON"),
        ("zones.geojson", "[]", "does not hold a JSON object"),
        ("classes.csv", "origin,trips\na,1\n", "lacks the column"),
        ("classes.csv", "origin,destination,trips\na,b,many\n", "many"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    folder = made.hexagons(tmp_path / "release")
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=message):
        open_release(folder)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        open_release(tmp_path / "nowhere")
