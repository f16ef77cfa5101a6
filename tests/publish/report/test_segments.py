from pathlib import Path

import pytest

from odkanon.errors import InputError
from odkanon.release_format.folder import is_linked_folder, open_linked
from web import made


def test_segments_are_read_with_the_whole_first_and_named_by_what_they_are(tmp_path: Path) -> None:
    folder = made.segments(tmp_path / "linked")
    assert is_linked_folder(folder)
    assert not is_linked_folder(folder / "whole")
    assert [release.name for release in open_linked(folder)] == ["whole", "hour: 06-09", "hour: 15-18"]


def test_an_index_without_segments_is_refused(tmp_path: Path) -> None:
    folder = made.segments(tmp_path / "linked")
    (folder / "index.json").write_text('{"whole": "whole"}', encoding="utf-8")
    with pytest.raises(InputError, match="does not list its segments"):
        open_linked(folder)
