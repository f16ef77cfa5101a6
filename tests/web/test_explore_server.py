"""What the explorer answers, and everything that it must refuse."""

from __future__ import annotations

import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from typer.testing import CliRunner

from odkanon import read_recipe
from odkanon.cli import app
from odkanon.explore import ExploreServer
from web import made
from web.exploring import WITHIN, ask, assert_same_release, first, serving, talk
from worlds.columns import unpacked


def test_a_table_of_zones_without_coordinates_can_be_explored(page_built: Path, tmp_path: Path) -> None:
    source, hierarchy = tmp_path / "flows.csv", tmp_path / "zones.csv"
    source.write_text("origin,destination,trips\na1,b1,30\na2,b1,3\na1,b2,9\n")
    hierarchy.write_text("leaf,parent\na1,a\na2,a\nb1,b\nb2,b\n")
    with serving(source, tmp_path, hierarchy=hierarchy) as server:
        controls = server.session.controls
        assert not {"mondrian", "freezones"} & set(controls.methods)
        status, answer = ask(server, "anonymize", first(server, base=True))
        assert status == 200
        (level,) = answer["levels"]
        assert level["level"] == "zones"
        assert level["shape"] == [-1] * len(level["id"])
        assert level["tables"][0][""]["total"]["trips"] == answer["releases"][0]["about"]["published"]["trips"]
        assert ask(server, "anonymize", first(server, split=True))[0] == 400
        server.session.close()
        status, answer = ask(server, "more", first(server))
        assert (status, answer) == (409, {"error": "the explorer was stopped"})


def test_two_methods_stand_side_by_side(server: ExploreServer) -> None:
    status, model = ask(server, "anonymize", first(server, versus="oigh"))
    assert status == 200
    assert [release["name"] for release in model["releases"]] == ["ODkAnon", "OIGH"]
    assert ask(server, "anonymize", first(server, versus="magic"))[0] == 400
    assert ask(server, "anonymize", first(server, versus="oigh", split=True))[0] == 400


def test_a_table_between_cells_can_be_made_coarser(page_built: Path, tmp_path: Path) -> None:
    source = tmp_path / "flows.csv"
    cells = made.disk(9, 2)
    flows = [f"{cells[number]},{cells[-number - 1]},{10 + number}" for number in range(9)]
    source.write_text("\n".join(["origin,destination,trips", *flows]) + "\n")
    with serving(source, tmp_path) as server:
        for number, resolution in enumerate((9, 8, 7), start=1):
            question = first(server, resolution=resolution, number=number)
            status, answer = ask(server, "anonymize", question)
            assert status == 200
            assert max(int(level["level"]) for level in answer["levels"]) <= resolution


def test_the_command_prints_its_address_and_ends_quietly(survey: Path, page_built: Path) -> None:
    command = [sys.executable, "-m", "odkanon", "explore", str(survey), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        with urllib.request.urlopen(url, timeout=60) as page:
            assert page.status == 200
            assert b"connect-src 'self'" in page.read()
        process.send_signal(signal.SIGINT)
        _, problems = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in problems


# -- the answers


@pytest.mark.parametrize(
    "changes",
    [
        {"resolution": 8, "k": 5},
        {"method": "oigh"},
        {"method": "cascade", "by": ["age", "sex"]},
        *(
            pytest.param({"method": method}, marks=pytest.mark.slow)
            for method in ("atg-soft", "mondrian", "treecut", "freezones")
        ),
    ],
    ids=str,
)
def test_a_state_is_what_the_command_line_gives(
    server: ExploreServer, survey: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    name = "".join(letter for letter in str(changes) if letter.isalnum())
    status, answer = ask(server, "save", first(server, **changes) | {"name": f"state {name}"})
    assert (status, answer) == (200, {"saved": [f"state {name}"]})
    asked = {"method": "odkanon", "protect": "participants"} | changes
    several = {key: value if isinstance(value, list) else [value] for key, value in asked.items()}
    options = [part for key, values in several.items() for value in values for part in (f"--{key}", str(value))]
    command = ["anonymize", str(survey), "-o", str(tmp_path / "release"), "--within", WITHIN, *options]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert_same_release(server.session.folder / f"state {name}", tmp_path / "release")


def test_a_segment_keeps_the_mean_weight_of_everyone_and_accounts_for_every_row(server: ExploreServer) -> None:
    segment = next(name for name in server.session.controls.segments if name.startswith("sex"))
    everyone = ask(server, "anonymize", first(server, targets=["weight"]))[1]["releases"][0]["about"]
    some = ask(server, "anonymize", first(server, targets=["weight"], segment=segment))[1]["releases"][0]["about"]
    assert some["rule"]["weight"] == everyone["rule"]["weight"]
    assert some["published"]["trips"] < everyone["published"]["trips"]
    assert some["input"]["rows"] == everyone["input"]["rows"]
    rejected = sum(part["trips"] for part in some["input"]["rejected"].values())
    assert some["published"]["trips"] + some["suppressed"]["trips"] + rejected == some["input"]["rows"]


def test_a_saved_segment_knows_which_it_is(server: ExploreServer) -> None:
    segment = next(name for name in server.session.controls.segments if name.startswith("sex"))
    assert ask(server, "save", first(server, segment=segment) | {"name": "some"})[0] == 200
    recipe = read_recipe(server.session.folder / "some")
    assert recipe is not None
    assert recipe["about"]["parameters"]["segment"] == {"sex": segment.removeprefix("sex: ")}


def test_nothing_below_the_rule_is_ever_sent(server: ExploreServer) -> None:
    for k in (2, 3, 5, 50, 100):
        status, answer = ask(server, "anonymize", first(server, k=k, targets=["trips", "persons"]))
        assert status == 200
        flows = answer["releases"][0]["flows"]
        assert min(unpacked(flows["trips"])) >= k
        assert min(unpacked(flows["persons"])) >= k


def test_a_question_that_was_overtaken_is_dropped(server: ExploreServer) -> None:
    status, shown = ask(server, "anonymize", first(server, k=3) | {"page": "overtaken", "number": 7})
    assert status == 200
    assert ask(server, "anonymize", first(server, k=2) | {"page": "overtaken", "number": 6})[0] == 409
    assert ask(server, "more", first(server, k=2) | {"page": "overtaken", "number": 6})[0] == 409
    status, answer = ask(server, "more", first(server, k=3) | {"page": "overtaken", "number": 7})
    assert status == 200
    shares = [square["cpc"] for square in answer["more"][0]["usefulness"]["trips"]["squares"]]
    # At rest the numbers are those of the saved page, not rows spread evenly.
    assert answer["model"]["levels"][0]["tables"][0][""]["total"] == shown["levels"][0]["tables"][0][""]["total"]
    assert len(shares) == 4
    assert shares == sorted(shares)


@pytest.mark.parametrize("method", ["odkanon", "cascade"])
def test_the_server_takes_little_of_the_200_milliseconds(
    server: ExploreServer, record_property: Any, method: str
) -> None:
    controls, used = server.session.controls, []
    for number, k in enumerate(range(41, 62), start=100):
        request = controls.check(first(server, k=k, method=method))
        start = time.process_time()
        server.session.model(request, f"speed of {method}", number)
        used.append(time.process_time() - start)
    record_property("median_cpu_milliseconds_of_the_server", round(1000 * statistics.median(used)))
    print(f"server, {method}: median {1000 * statistics.median(used):.0f} ms of processor time for a new k")
    assert min(used) < 0.2


# -- what is refused


def test_a_wrong_token_is_refused(server: ExploreServer) -> None:
    for path in ("/", "/wrong/", f"/{server.token[:-1]}/", f"/{server.token}x/", f"/{server.token}"):
        with talk(server, "GET", path) as response:
            assert response.status == 403
            assert server.token not in response.read().decode()
    assert ask(server, "anonymize", first(server), **{"X-Odkanon-Token": "wrong"})[0] == 403
    assert ask(server, "anonymize", first(server), **{"X-Odkanon-Token": ""})[0] == 403


def test_other_origins_and_hosts_are_refused(server: ExploreServer) -> None:
    page = f"/{server.token}/"
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://localhost:{server.server_port}"},
        {"Host": "evil.example"},
        {"Host": f"evil.example:{server.server_port}"},
        {"Host": "127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    ):
        with talk(server, "GET", page, headers=headers) as response:
            assert response.status == 403, headers
        assert ask(server, "anonymize", first(server), **headers)[0] == 403, headers
    with talk(server, "GET", page, headers={"Origin": f"http://{server.authority}"}) as response:
        assert response.status == 200
        assert "Access-Control-Allow-Origin" not in response.headers
    contribution = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    with talk(server, "GET", page, headers=contribution) as response:
        assert response.status == 200  # a page that knows the token and leads here, as the one that opens it does
    with talk(server, "GET", "/wrong/", headers=contribution) as response:
        assert response.status == 403
    assert ask(server, "anonymize", first(server), **contribution)[0] == 403


def test_only_known_paths_exist(server: ExploreServer) -> None:
    for residual in ("x", "../", "..%2f..%2fetc/passwd", "../../etc/passwd", "./", "?x", "anonymize", "%00"):
        with talk(server, "GET", f"/{server.token}/{residual}") as response:
            assert response.status == 404, residual
    assert ask(server, "../anonymize", first(server))[0] == 404
    assert ask(server, "upload", first(server))[0] == 404
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "HEAD"):
        with talk(server, method, f"/{server.token}/") as response:
            assert response.status == 501


def test_oversized_and_malformed_bodies_are_refused(server: ExploreServer) -> None:
    assert ask(server, "anonymize", b"x" * 10_000)[0] == 413
    assert ask(server, "anonymize", b"", **{"Content-Length": "99999999999999"})[0] == 413
    assert ask(server, "anonymize", b"", **{"Content-Length": "-1"})[0] == 411
    assert ask(server, "anonymize", b"", **{"Content-Length": "0", "Transfer-Encoding": "chunked"})[0] == 411
    assert ask(server, "anonymize", b"{", **{"Content-Type": "text/plain"})[0] == 415
    for body in (b"{", b"[]", b"[" * 8000, b"\xff\xfe"):
        assert ask(server, "anonymize", body)[0] == 400


@pytest.mark.parametrize(
    "change",
    [
        {"k": 1}, {"k": 0}, {"k": -5}, {"k": 10.5}, {"k": True}, {"k": "10"}, {"k": None}, {"k": 10**9},
        {"budget": 0.31}, {"budget": -0.1}, {"budget": "0.1"}, {"budget": None}, {"targets": []}, {"targets": "trips"},
        {"targets": [["trips"]]}, {"method": "none"}, {"method": ["odkanon"]}, {"resolution": 15}, {"segment": "../x"},
        {"suppress": "never"}, {"split": "yes"}, {"by": "sex"}, {"by": ["mode"], "method": "cascade"}, {"by": ["sex"]},
        {"by": ["sex"], "method": "cascade", "versus": "oigh"}, {"page": 7}, {"page": ""}, {"number": "1"},
    ],
)  # fmt: skip
def test_only_what_was_offered_can_be_asked(server: ExploreServer, change: dict[str, Any]) -> None:
    status, answer = ask(server, "anonymize", first(server, **change))
    assert status == 400
    assert list(answer) == ["error"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "/tmp/x",
        "a/b",
        "a\\b",
        ".hidden",
        "x" * 65,
        "a\nb",
        "nul",
        "x ",
        " x",
        "é",
        7,
        None,
        "a.b",
    ],
)
def test_names_that_are_paths_are_refused(server: ExploreServer, name: Any) -> None:
    before = sorted(server.session.folder.parent.rglob("*"))
    assert ask(server, "save", first(server) | {"name": name})[0] == 400
    assert sorted(server.session.folder.parent.rglob("*")) == before


def test_a_saved_release_is_never_replaced(server: ExploreServer) -> None:
    assert ask(server, "save", first(server) | {"name": "once"})[0] == 200
    status, answer = ask(server, "save", first(server, k=20) | {"name": "once"})
    assert status == 400
    assert "exists already" in answer["error"]


def test_of_two_that_save_under_one_name_one_is_told(server: ExploreServer) -> None:
    asked = [first(server, k=k) | {"name": "both"} for k in (12, 13)]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda body: ask(server, "save", body), asked))
    assert sorted(status for status, _ in answers) == [200, 400]
    kept = next(body["k"] for body, (status, _) in zip(asked, answers, strict=True) if status == 200)
    assert f'"trips": {kept}' in (server.session.folder / "both" / "release.json").read_text(encoding="utf-8")


def test_no_page_can_hold_up_saving(server: ExploreServer) -> None:
    ask(server, "anonymize", first(server) | {"page": "", "number": 10**6})
    assert ask(server, "save", first(server, k=14) | {"name": "saved all the same"})[0] == 200


def test_connections_wait_where_the_server_is_busy(server: ExploreServer) -> None:
    with ExploreServer(server.session) as busy, ExitStack() as opened:
        for _ in range(40):
            opened.enter_context(socket.create_connection(("127.0.0.1", busy.server_port), timeout=2))
