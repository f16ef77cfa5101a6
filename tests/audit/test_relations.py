"""Which releases are about the same trips, and what follows: nothing that shares trips, or may, is passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h3
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from audit.tamper import edit_json
from cli.runner import odkanon, output
from odkanon import InputError, Rule, audit_releases, make_survey, read_area, read_hierarchy, read_matrix, read_trips
from odkanon.audit import Report, TripsSource
from odkanon.audit.auditor import open_releases
from odkanon.audit.counting.release_trips import disclosed_area
from odkanon.audit.release_reader import PublishedRelease
from odkanon.audit.zone_geometry import ZonePlaces
from odkanon.core.sql import connect
from odkanon.linked.fixed_zoning import release_on_zones, zoning_of
from odkanon.methods.method_registry import anonymize
from odkanon.read.area import Area
from odkanon.read.od_matrix import build_od
from odkanon.release_format.folder import open_release
from odkanon.release_format.recipe import recipe_path
from worlds.people import (
    Person,
    Trip,
    audit_with_trips,
    crowd,
    findings,
    matrix,
    places,
    release,
    scattered,
    together,
    write,
)

RULE = Rule(trips=10)


def busy(sex: str = "Woman", prefix: str = "") -> list[Trip]:
    """Return enough trips for several flows."""
    people = [Person(f"{prefix}{sex}{at}", sex, 18 + at % 3, 1.0) for at in range(40)]
    return [Trip(who, at % 4, 7 + at % 2) for at, who in enumerate(people)]


def on_zones_of(first: Path, path: Path, folder: Path, where: str | None = None, rule: Rule = RULE) -> Path:
    return release_on_zones(matrix(path, where), rule, zoning_of(open_release(first))).save(folder)


def attributes(report: Report) -> dict[tuple[str, str], str]:
    return {each.releases: each.relation for each in report.compared}


def rests(report: Report) -> list[int]:
    return sorted(each.details[0]["rest"] for each in findings(report, "difference"))


def without_person(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Release women, and women without one person who made 18 trips, on the same zones."""
    one = Person("one", "Woman", 30, 1.0)
    trips = busy() + busy("Man") + [Trip(one, 0, 7) for _ in range(9)] + [Trip(one, 1, 8) for _ in range(9)]
    path = write(trips, tmp_path / "trips.parquet")
    release(path, tmp_path / "women", RULE, where='sex == "Woman"')
    where = 'sex == "Woman" and person != "one"'
    on_zones_of(tmp_path / "women", path, tmp_path / "without", where)
    return path, tmp_path / "women", tmp_path / "without"


def test_women_without_one_person_show_that_person(tmp_path: Path) -> None:
    path, *folders = without_person(tmp_path)
    report = audit_with_trips(path, *folders)
    assert attributes(report) == {("without", "women"): "part"}
    assert rests(report) == [9, 9]


def test_two_filters_without_the_trips_cannot_be_compared(tmp_path: Path) -> None:
    _, *folders = without_person(tmp_path)
    report = audit_releases(folders)
    (found,) = findings(report, "relation")
    assert "or --disjoint if they share none" in found.message
    assert [each.compared for each in report.compared] == ["not compared"]
    assert audit_releases(folders, disjoint=True).clean


def test_ages_from_18_and_from_19(tmp_path: Path) -> None:
    path = write(busy() + busy("Man"), tmp_path / "trips.parquet")
    release(path, tmp_path / "from18", RULE, where="age >= 18")
    on_zones_of(tmp_path / "from18", path, tmp_path / "from19", "age >= 19")
    report = audit_with_trips(path, tmp_path / "from18", tmp_path / "from19")
    assert rests(report)
    assert all(residual < 10 for residual in rests(report))


def test_a_copy_of_the_file_with_one_more_column_gives_the_same_findings(tmp_path: Path) -> None:
    path, women, without = without_person(tmp_path)
    table = pyarrow.parquet.read_table(path)
    other = tmp_path / "more.parquet"
    pyarrow.parquet.write_table(table.append_column("more", pa.array(["x"] * len(table))), other)
    on_zones_of(women, other, tmp_path / "copy" / "without", 'sex == "Woman" and person != "one"')
    expected = rests(audit_with_trips(path, women, without))
    assert rests(audit_with_trips(path, women, tmp_path / "copy" / "without")) == expected
    assert rests(audit_with_trips(other, women, tmp_path / "copy" / "without")) == expected
    assert findings(audit_releases([women, tmp_path / "copy" / "without"]), "relation")


def test_csv_beside_parquet(tmp_path: Path) -> None:
    trips = [Trip(who, 0, 8) for who in crowd(20)] + [Trip(who, 1, 8) for who in crowd(4, prefix="x")]
    coarse = zoning_of(anonymize(matrix(write(trips, tmp_path / "some.parquet")), Rule(trips=24)))
    path = write([*trips, *scattered()], tmp_path / "trips.parquet")
    pyarrow.csv.write_csv(pyarrow.parquet.read_table(path), tmp_path / "trips.csv")
    release_on_zones(matrix(path), RULE, coarse).save(tmp_path / "ten")
    fine = zoning_of(anonymize(matrix(path), Rule(trips=1), budget=0.0))
    release_on_zones(matrix(tmp_path / "trips.csv"), Rule(trips=11), fine).save(tmp_path / "eleven")
    folders = [tmp_path / "ten", tmp_path / "eleven"]
    assert findings(audit_releases(folders), "relation")
    report = audit_with_trips(path, *folders)
    assert rests(report) == [4]
    assert attributes(report) == {("ten", "eleven"): "same"}


def test_a_series_that_grows_by_a_trip_that_was_swapped(tmp_path: Path) -> None:
    january = [Trip(who, 0, 8) for who in crowd(20)] + [Trip(who, 5, 9) for who in crowd(20, prefix="x")]
    release(write(january, tmp_path / "january.parquet"), tmp_path / "january", RULE)
    swapped = write([*january[:-1], Trip(crowd(1, prefix="y")[0], 0, 8)], tmp_path / "february.parquet")
    on_zones_of(tmp_path / "january", swapped, tmp_path / "february")
    report = audit_releases([tmp_path / "january", tmp_path / "february"], cumulative=True)
    assert rests(report) == [1, 1]


@pytest.mark.parametrize("other", ["mondrian", "odkanon"])
def test_boxes_are_compared_by_the_trips_and_not_passed_over_without(tmp_path: Path, other: str) -> None:
    trips = [Trip(who, 0, 8) for who in crowd(22, "Woman") + crowd(3, "Man")]
    trips += [Trip(who, 5, 9) for who in crowd(30, "Woman", prefix="x")]
    path = write(trips, tmp_path / "trips.parquet")
    release(path, tmp_path / "boxes", RULE, method="mondrian")
    release(path, tmp_path / "other", RULE, method=other, where='sex != "Man"')
    folders = [tmp_path / "boxes", tmp_path / "other"]
    (found,) = findings(audit_releases(folders), "relation")
    assert "cannot be compared" in found.message
    report = audit_with_trips(path, *folders)
    assert not findings(report, "relation")
    assert [each.compared for each in report.compared] == ["all combinations of rows compared"]
    assert rests(report) == [3]


def test_months_of_different_trips_are_clean_with_the_trips(tmp_path: Path) -> None:
    trips = [trip._replace(hour=7) for trip in busy()] + [trip._replace(hour=18) for trip in busy("Man")]
    path = write(trips, tmp_path / "trips.parquet")
    release(path, tmp_path / "women", RULE, where='sex == "Woman"')
    on_zones_of(tmp_path / "women", path, tmp_path / "men", 'sex == "Man"')
    report = audit_with_trips(path, tmp_path / "women", tmp_path / "men")
    assert not findings(report, "difference")
    assert attributes(report) == {("women", "men"): "disjoint"}


def test_three_filters_that_overlap_are_combined(tmp_path: Path) -> None:
    """Women and men are everyone: the rest of a coarse flow of everyone is seen only with both."""
    trips = [Trip(who, 0, 8) for who in crowd(15, "Woman") + crowd(15, "Man")]
    trips += [Trip(who, 1, 8) for who in crowd(2, "Woman", prefix="x") + crowd(1, "Man", prefix="x")]
    coarse = zoning_of(anonymize(matrix(write(trips, tmp_path / "some.parquet")), Rule(trips=33), budget=0.0))
    path = write([*trips, *scattered()], tmp_path / "trips.parquet")
    fine = zoning_of(anonymize(matrix(path), Rule(trips=1), budget=0.0))
    release_on_zones(matrix(path), RULE, coarse).save(tmp_path / "everyone")
    for name in ("Woman", "Man"):
        release_on_zones(matrix(path, f"sex != '{name}'"), RULE, fine).save(tmp_path / f"not{name}")
    folders = [tmp_path / name for name in ("everyone", "notWoman", "notMan")]
    assert 3 in rests(audit_with_trips(path, *folders))


def test_linked_segments_are_clean_and_compared(tmp_path: Path) -> None:
    path = write(busy() + busy("Man") + busy(prefix="x") + busy("Man", "x"), tmp_path / "trips.parquet")
    together(path, tmp_path / "both", Rule(trips=4), ["sex", "age"])
    report = audit_with_trips(path, tmp_path / "both")
    assert not findings(report, "difference")
    assert not findings(report, "relation")
    assert len(report.compared) == len(report.releases) * (len(report.releases) - 1) // 2
    assert set(report.as_dict()["compared"][0]) == {"releases", "relation", "how", "compared"}


def test_releases_added_to_a_folder_of_segments_are_not_linked(tmp_path: Path) -> None:
    path = write(busy() + busy("Man") + busy(prefix="x") + busy("Man", "x"), tmp_path / "trips.parquet")
    together(path, tmp_path / "both", Rule(trips=4), ["sex"])
    later = anonymize(matrix(path, "age >= 0"), RULE).save(tmp_path / "later")
    recipe_path(later).rename(tmp_path / "both" / "later.recipe.json")
    later.rename(tmp_path / "both" / "later")
    report = audit_releases([tmp_path / "both" / "sex=Woman", tmp_path / "both" / "later"])
    assert findings(report, "relation")


def test_a_public_folder_without_its_recipe_says_what_cannot_be_checked(tmp_path: Path) -> None:
    path = write(busy(), tmp_path / "trips.parquet")
    release(path, tmp_path / "release", RULE)
    (tmp_path / "release.recipe.json").unlink()
    report = audit_releases([tmp_path / "release"])
    assert report.clean
    assert any("there is no recipe beside it" in each.message for each in report.findings)
    assert not findings(audit_with_trips(path, tmp_path / "release"), "recount")


def test_the_folder_must_say_what_the_recipe_says(tmp_path: Path) -> None:
    _, women, _ = without_person(tmp_path)

    def forge(content: Any) -> None:
        content["about"]["published"]["trips"] += 1

    edit_json(tmp_path / "women.recipe.json", forge)
    found = [each.message for each in findings(audit_releases([women]))]
    assert any("release.json and the recipe disagree on published, trips" in each for each in found)


def test_several_filters_all_hold(tmp_path: Path) -> None:
    path = write(busy() + busy("Man"), tmp_path / "trips.parquet")
    trips = read_trips(path, where=['sex == "Woman"', "age >= 19"])
    anonymize(build_od(trips), RULE).save(tmp_path / "release")
    assert not findings(audit_with_trips(path, tmp_path / "release"), "recount")


def test_an_unknown_filter_makes_the_relation_unknown(tmp_path: Path) -> None:
    path, women, without = without_person(tmp_path)

    def forget(content: Any) -> None:
        del content["input"]["where"]

    edit_json(tmp_path / "women.recipe.json", forget)
    (found,) = findings(audit_with_trips(path, women, without), "recount")
    assert "give the file, filter, area and resolution that it was made with" in found.message
    assert findings(audit_releases([women, without]), "relation")


def test_the_area_of_a_recipe_is_used(tmp_path: Path) -> None:
    path = write(busy(), tmp_path / "trips.parquet")
    area = str(h3.cell_to_parent(places()[0], 7))
    done = odkanon("anonymize", path, "-o", tmp_path / "release", "--within", area)
    assert done.returncode == 0, output(done)
    assert not findings(audit_with_trips(path, tmp_path / "release"), "recount")


def in_cells(path: Path, folder: Path, level: int, *more: object) -> Path:
    """Release trips on cells of one resolution."""
    done = odkanon("anonymize", path, "-o", folder, "--at-level", level, "--budget", 0.4, *more)
    assert done.returncode == 0, output(done)
    return folder


def between(*flows: tuple[int, int, int], sex: str = "Woman") -> list[Trip]:
    return [
        Trip(who, origin, destination)
        for origin, destination, count in flows
        for who in crowd(count, sex, prefix=f"{origin}to{destination}")
    ]


def test_whoever_knows_the_area_of_a_release_knows_where_its_trips_are(tmp_path: Path) -> None:
    """Of 25 trips inside two cells, 23 are in rows of the release of everywhere: 2 went from the one to the other."""
    path = write(between((0, 0, 12), (1, 1, 11), (0, 1, 2), (4, 4, 30), (5, 5, 8)), tmp_path / "trips.parquet")
    everywhere = in_cells(path, tmp_path / "everywhere", 10)
    inside = in_cells(path, tmp_path / "inside", 9, "--within", ",".join(places()[:2]))
    report = audit_with_trips(path, everywhere, inside)
    assert attributes(report) == {("inside", "everywhere"): "part"}
    assert rests(report) == [2]


@pytest.mark.parametrize("with_trips", [False, True])
def test_the_area_that_all_releases_have_is_known(tmp_path: Path, with_trips: bool) -> None:
    """Everyone between two cells is in a row; of the women there is one row of the cell around them."""
    women = between((0, 0, 10), (0, 1, 10), (1, 0, 10), (1, 1, 11), (4, 4, 5), (5, 5, 6))
    path = write(women + between((0, 0, 2), (1, 1, 1), sex="Man"), tmp_path / "trips.parquet")
    area = ("--within", ",".join(places()[at] for at in (0, 1, 4, 5)))
    folders = [
        in_cells(path, tmp_path / "everyone", 10, *area),
        in_cells(path, tmp_path / "women", 9, *area, "--where", 'sex == "Woman"'),
    ]
    assert rests(audit_releases(folders, trips=path if with_trips else None)) == [3]


def test_an_area_that_changed_or_is_not_there_is_not_known(tmp_path: Path) -> None:
    path = write(between((0, 0, 12), (0, 1, 12)), tmp_path / "trips.parquet")
    area = tmp_path / "area.txt"
    area.write_text(" ".join(places()[:2]))
    done = odkanon("anonymize", path, "-o", tmp_path / "release", "--within", area)
    assert done.returncode == 0, output(done)
    told = read_published(tmp_path / "release")
    assert disclosed_area(told) is not None
    area.write_text(" ".join(places()[:3]))
    assert disclosed_area(told) is None
    area.unlink()
    assert disclosed_area(told) is None


def test_areas_that_are_the_same_count_once_and_large_ones_are_not_listed() -> None:
    shapely = pytest.importorskip("shapely")
    known = ZonePlaces(connect(), [], None)
    children, small = sorted(h3.cell_to_children(places()[0], 12)), read_area(places()[0])
    for number, area in enumerate((small, read_area(" ".join(children)), None, read_area(places()[1]))):
        known.add_area(number, area, 12)
    assert known.areas_of(range(4)) == {0: {0, 1}, 3: {3}}
    assert known.areas[0] == [places()[0]]
    large = Area(shape=shapely.Point(2.35, 48.85).buffer(1))
    known.add_area(4, large, 12, exact=False)
    assert known.areas_of([0, 4]) == {0: {0}}
    known.add_area(5, large, 12)
    assert known.areas_of([0, 5]) is None
    known.add_area(6, large, 4)
    assert known.areas_of([6]) == {6: {6}}


def read_published(folder: Path) -> PublishedRelease:
    return open_releases([folder]).releases[0]


def test_trips_are_counted_in_the_cells_of_the_release(tmp_path: Path) -> None:
    """A cell does not contain its children exactly: by parents of finer cells, other trips are inside."""
    path = tmp_path / "survey.parquet"
    pyarrow.parquet.write_table(make_survey().slice(0, 6_000), path)
    for resolution in (7, 8):
        done = odkanon("anonymize", path, "-o", tmp_path / f"at{resolution}", "--resolution", resolution)
        assert done.returncode == 0, output(done)
    assert not findings(audit_releases([tmp_path / "at8"], trips=path), "recount")
    assert findings(audit_releases([tmp_path / "at8"], trips=TripsSource(path, resolution=10)), "recount")
    with pytest.raises(InputError, match="resolution 7 and 8"):
        audit_releases([tmp_path / "at7", tmp_path / "at8"], trips=path)


def test_trips_without_the_column_of_a_filter_are_not_those_of_the_release(tmp_path: Path) -> None:
    path = write(busy() + busy("Man"), tmp_path / "trips.parquet")
    anonymize(matrix(path, "sex == 'Woman'"), RULE).save(tmp_path / "women")
    release(path, tmp_path / "everyone", RULE)
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(path).drop_columns(["sex"]), tmp_path / "other.parquet")
    report = audit_with_trips(tmp_path / "other.parquet", tmp_path / "women", tmp_path / "everyone")
    (found,) = findings(report, "recount")
    assert found.releases == ("women",)
    assert "they have no column 'sex'" in found.message


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (None, "give the lookup table of their zones"),
        ("leaf,district\nx1,X\n", "give the lookup table of their zones"),
        ("leaf,district\na1,A\na2,A\nb1,B\n", "= 2 trips of somebody else"),
    ],
)
def test_codes_of_two_levels_are_compared_by_their_lookup_table(tmp_path: Path, table: str | None, said: str) -> None:
    """From a1 and a2, 8 and 6 trips; from A, 12 of women."""
    places, path = tmp_path / "places.csv", tmp_path / "trips.csv"
    places.write_text("leaf,district\na1,A\na2,A\nb1,B\n")
    path.write_text("origin,destination,sex\n" + "a1,b1,W\n" * 7 + "a2,b1,W\n" * 5 + "a1,b1,M\na2,b1,M\n")
    tree = read_hierarchy(pyarrow.csv.read_csv(places))
    anonymize(read_matrix(path, hierarchy=tree, engine="memory"), Rule(trips=5), method="oigh", at_level="leaf").save(
        tmp_path / "everyone"
    )
    women = read_matrix(path, hierarchy=tree, where="sex == 'W'", engine="memory")
    anonymize(women, Rule(trips=5), method="oigh", at_level="district", budget=0.0).save(tmp_path / "women")
    if table is not None:
        places.write_text(table)
    given = None if table is None else read_hierarchy(pyarrow.csv.read_csv(places))
    report = audit_releases([tmp_path / "everyone", tmp_path / "women"], hierarchy=given)
    assert any(said in each.message for each in findings(report))


@pytest.mark.parametrize("named", ["in memory", "in two files", "in one file"])
def test_codes_of_two_tables_of_one_name_cannot_be_compared(tmp_path: Path, named: str) -> None:
    """A and Z are one district, by tables that nobody can tell apart; of its 14 trips, 12 are of women."""
    path = tmp_path / "trips.csv"
    path.write_text("origin,destination,sex\n" + "a1,b1,W\n" * 12 + "a1,b1,M\n" * 2)
    folders = []
    for name, district, where in (("everyone", "A", None), ("women", "Z", "sex == 'W'")):
        places = tmp_path / ("" if named == "in one file" else name) / "places.csv"
        places.parent.mkdir(exist_ok=True)
        places.write_text(f"leaf,district\na1,{district}\nb1,B\n")
        folders.append(tmp_path / f"of {name}")
        if named == "in memory":
            tree = read_hierarchy(pyarrow.csv.read_csv(places))
            made = anonymize(
                read_matrix(path, hierarchy=tree, where=where, engine="memory"),
                Rule(trips=5),
                method="oigh",
                at_level="district",
            )
            made.save(folders[-1])
            continue
        more = [] if where is None else ["--where", where]
        done = odkanon(
            *("anonymize", path, "-o", folders[-1], "--hierarchy", places, "--at-level", "district", "--k", 5, *more)
        )
        assert done.returncode == 0, output(done)
    (found,) = findings(audit_releases(folders), "relation")
    assert "cannot be compared" in found.message
