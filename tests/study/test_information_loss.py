"""What a release lost: the table adds up, the page needs nothing else, and neither goes into the release."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

pytest.importorskip("geopandas")
pytest.importorskip("shapely")

import geopandas
import numpy as np
import pyarrow.parquet
import shapely

from cli.runner import odkanon, output
from odkanon import InputError, Rule
from odkanon.methods.method_registry import anonymize
from odkanon.model.od import ODMatrix
from odkanon.read.tables.geo_files import ZonePolygons
from odkanon.study.information_loss import explain_release
from worlds.matrices import by_mode, effort, town
from worlds.polygons import square_town

METHODS = ["odkanon", "atg-soft", "mondrian", "freezones", "cascade", "cube"]


@pytest.fixture(scope="module")
def od() -> ODMatrix:
    return town(4)


@pytest.fixture(scope="module", params=METHODS)
def saved(od: ODMatrix, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cube = request.param == "cube"
    method = "cascade" if cube else request.param
    release = anonymize(by_mode(od) if cube else od, Rule(trips=10), method=method, **effort(method))
    folder = release.save(tmp_path_factory.mktemp("release") / request.param)
    (folder.parent / "cpc").write_text(repr(release.accuracy["trips"].squares[1].right))
    return folder


def test_a_saved_release_is_measured_as_it_was_when_it_was_made(od: ODMatrix, saved: Path) -> None:
    loss = explain_release(saved, od, km=2.0)
    assert loss.summary.cpc == pytest.approx(float((saved.parent / "cpc").read_text()), abs=1e-6)
    assert loss.before.sum() == od.trips
    published = sum(loss.after) + loss.elsewhere
    assert published == pytest.approx(
        int(pyarrow.parquet.read_table(saved / "classes.parquet")["trips"].to_numpy().sum())
    )
    assert loss.elsewhere >= 0
    assert loss.summary.floor is not None
    assert loss.summary.context in loss.to_html()
    assert sum(before for _, before, _ in loss.lengths) == pytest.approx(1)
    assert sum(after for _, _, after in loss.lengths) == pytest.approx(1)


def test_so_are_free_zones_of_a_lookup_table(tmp_path: Path) -> None:
    squares = square_town(4)
    release = anonymize(squares, Rule(trips=10), method="freezones", **effort("freezones"))
    loss = explain_release(release.save(tmp_path / "release"), squares, km=2.0)
    found = release.accuracy["trips"].on_squares(2.0)
    assert found is not None
    assert loss.summary.cpc == pytest.approx(found.right, abs=1e-6)


def test_the_worst_flow_comes_first_and_has_a_verdict(od: ODMatrix, saved: Path) -> None:
    rows = explain_release(saved, od, km=1.0).to_arrow().to_pylist()
    off = [abs(row["difference"]) for row in rows]
    assert off == sorted(off, reverse=True)
    for row in rows:
        ratio = row["release"] / row["trips"]
        expected = "gone" if ratio < 0.05 else "less" if ratio <= 0.75 else "near" if ratio < 1.25 else "more"
        assert row["verdict"] == expected
    assert {row["verdict"] for row in rows} >= {"gone"}


def test_on_zones_of_ones_own(od: ODMatrix, saved: Path) -> None:
    west, east = shapely.box(-5, 40, 2.35, 55), shapely.box(2.35, 40, 9, 55)
    loss = explain_release(saved, od, onto=ZonePolygons(["west", "east"], np.array([west, east])))
    assert loss.places == ["west", "east"]
    assert loss.before.sum() == od.trips
    assert loss.summary.cpc > 0.6
    text = loss.to_html()
    assert "west" in text
    assert text.count("<path") == 2


def test_the_page_is_whole_and_says_what_it_is(od: ODMatrix, saved: Path) -> None:
    text = explain_release(saved, od).to_html()
    assert "Not for publication" in text
    assert "<svg" in text
    assert not re.search(r"https?://|<script|<link|url\(", text)


def test_the_page_shows_the_worst_and_says_how_far_off_it_is(od: ODMatrix, saved: Path) -> None:
    loss = explain_release(saved, od, km=1.0)
    text = loss.to_html()
    worst = int(np.argmax(loss.before - loss.after))
    first = text.partition("Flows that lost most")[2].partition("</tr><tr>")[2].partition("</tr>")[0]
    cells = re.findall(r"<td>(.*?)</td>", first)
    there = "inside" if loss.origin[worst] == loss.destination[worst] else loss.places[loss.destination[worst]]
    assert cells[:2] == [loss.places[loss.origin[worst]], there]
    assert cells[2:] == [
        f"{loss.before[worst]:,.0f}",
        f"{loss.after[worst]:,.0f}",
        f"{loss.after[worst] - loss.before[worst]:+,.0f}",
    ]
    # Places with next to no trips are grey, whatever is missing there; the others have a colour of their share.
    trips = np.bincount(loss.origin, loss.before, len(loss.places)) + np.bincount(
        loss.destination, loss.before, len(loss.places)
    )
    assert text.count('fill="#e4e4e0"') == np.count_nonzero(trips < 20)
    assert text.count('fill="rgb(') == np.count_nonzero(trips >= 20)


def test_other_trips_are_noticed(od: ODMatrix, saved: Path) -> None:
    few = od.take(np.arange(len(od)) < 50)
    with pytest.raises(InputError, match="made from others"):
        explain_release(saved, few)


def test_the_command_writes_beside_and_never_into_the_release(tmp_path: Path) -> None:
    assert odkanon("sample", "-o", tmp_path / "survey.csv").returncode == 0
    made = odkanon("anonymize", tmp_path / "survey.csv", "-o", tmp_path / "release")
    assert made.returncode == 0, made
    assert "are right to" in output(made)
    wanted = ["explain", tmp_path / "release", "--trips", tmp_path / "survey.csv", "-o"]
    inside = odkanon(*wanted, tmp_path / "release/lost.html")
    assert inside.returncode == 2
    assert "lies in the release" in output(inside)
    frame = geopandas.GeoDataFrame(
        {"CODE": [1, 2]}, geometry=[shapely.box(1, 48, 2.35, 50), shapely.box(2.35, 48, 4, 50)]
    )
    frame.set_crs("EPSG:4326").to_file(tmp_path / "halves.gpkg")
    done = odkanon(*wanted, tmp_path / "lost.html", "--onto", tmp_path / "halves.gpkg", "--id", "CODE")
    assert done.returncode == 0, done
    assert "do not publish them" in output(done)
    with (tmp_path / "lost.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["origin"] for row in rows} <= {"1", "2", "outside"}
    again = odkanon(*wanted, tmp_path / "lost.html")
    assert again.returncode == 2
    assert "--force" in output(again)
