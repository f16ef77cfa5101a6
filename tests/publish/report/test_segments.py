from pathlib import Path

import pytest

from odkanon.errors import InputError
from odkanon.publish.report.segment_pages import is_index, read_index
from web import made


def test_segments_are_read_with_the_whole_first_and_named_by_what_they_are(tmp_path: Path) -> None:
    folder = made.segments(tmp_path / "linked")
    assert is_index(folder)
    assert not is_index(folder / "whole")
    assert [release.name for release in read_index(folder)] == ["whole", "hour: 06-09", "hour: 15-18"]


def test_an_index_without_segments_is_refused(tmp_path: Path) -> None:
    folder = made.segments(tmp_path / "linked")
    (folder / "index.json").write_text('{"whole": "whole"}', encoding="utf-8")
    with pytest.raises(InputError, match="does not list its segments"):
        read_index(folder)
