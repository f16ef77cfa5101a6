import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from cli.runner import odkanon
from odkanon import make_survey
from odkanon.errors import InputError
from odkanon.publish.report import PageTexts, render, write_report
from web import made

pytestmark = pytest.mark.usefixtures("page_built")


def test_the_page_asks_for_nothing(tmp_path: Path) -> None:
    page = render([made.hexagons(tmp_path / "release")])
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="(?!data:)', page)


def test_nothing_of_the_data_can_end_its_element(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><!--"
    shapes = {"origin": {evil: None}, "destination": {"b": None}}
    page = render([made.save(tmp_path / "release", [(evil, "b", 10)], shapes)])
    block = page.split('id="model">')[1].split("</script>")[0]
    assert evil in json.loads(block)["levels"][0]["id"]


def test_the_same_release_gives_the_same_bytes_wherever_it_lies(tmp_path: Path) -> None:
    first = made.hexagons(tmp_path / "here" / "release")
    second = made.hexagons(tmp_path / "there" / "release")
    page = render([first])
    assert page == render([second])
    assert str(tmp_path) not in page


def test_write_report_puts_the_page_into_the_folder(tmp_path: Path) -> None:
    folder = made.hexagons(tmp_path / "release")
    assert write_report(folder) == folder / "report.html"
    assert (folder / "report.html").read_text(encoding="utf-8") == render([folder])


def test_at_least_one_release_is_needed() -> None:
    with pytest.raises(InputError, match="no release"):
        render([])


def test_the_page_carries_the_licences_of_what_is_inside(page_built: Path) -> None:
    """Whoever passes a report on passes these programs on, and their licences ask for their text."""
    _, found, told = page_built.read_text(encoding="utf-8").rpartition("<!-- Inside this page:")
    assert found
    assert told.rstrip().endswith("-->")
    assert told.count("-->") == 1
    for block in told.split("=" * 60):
        names, _, text = block.strip().partition("\n\n")
        assert all(re.search(r"^\S+ \d\S* \(.+\)$", name) for name in names.splitlines()), names
        assert re.search(r"copyright|Apache License", text, re.IGNORECASE), names
    assert {"@deck.gl/core", "@flowmap.gl/layers", "world-atlas"} <= set(re.findall(r"^(\S+) \d", told, re.MULTILINE))


def embedded_model(page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.split('id="model">')[1].split("</script>")[0])
    return found


def test_what_the_steward_calls_it_is_on_the_page_and_in_the_package(tmp_path: Path) -> None:
    """Given once, to the command or in odkanon.toml, and found again by the next report of the folder."""
    survey = tmp_path / "survey.parquet"
    pyarrow.parquet.write_table(make_survey().slice(0, 3000), survey)
    outlines = {"Here": made.box(2.2, 48.8, 2.34, 48.92), "There": made.box(2.34, 48.8, 2.5, 48.92)}
    features = [
        {"type": "Feature", "properties": {"nom": name, "code": 1}, "geometry": outline}
        for name, outline in outlines.items()
    ]
    (tmp_path / "districts.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    (tmp_path / "odkanon.toml").write_text(
        'title = "Where we go"\nsource = "Survey 2012"\nlicence = "CC-BY-4.0"\nnames = "districts.geojson"\n'
    )
    done = odkanon("anonymize", survey, "-o", "release", "--resolution", 8, "--language", "es", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "release"
    titles = {"title": "Where we go", "source": "Survey 2012", "licence": "CC-BY-4.0", "language": "es"}
    model = embedded_model((folder / "report.html").read_text(encoding="utf-8"))
    assert model["titles"] == titles
    assert model["levels"][0]["name"] == ["Here", "There"]
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    assert (package["title"], package["sources"]) == ("Where we go", [{"title": "Survey 2012"}])
    assert package["licenses"] == [{"name": "cc-by-4.0", "title": "CC-BY-4.0"}]
    again = render([folder], texts=PageTexts(period="a day"))
    assert embedded_model(again)["titles"] == titles | {"period": "a day"}
    wrong = odkanon("report", folder, "--name-column", "naam", cwd=tmp_path)
    assert "it has nom, code" in wrong.stderr
