"""The explorer: a real server, a real browser, and everything that must be refused."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from playwright.sync_api import Browser
from typer.testing import CliRunner

from odkanon.cli import app
from odkanon.cli.reading import InputOptions
from odkanon.explore import ExploreServer, Session, data_of_input
from odkanon.sample import CENTRAL_CELLS, make_survey
from web import made
from web.driver import Opened

WITHIN = ",".join(CENTRAL_CELLS)
WHO = {"page": "test", "number": 1}


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("survey") / "survey.parquet"
    pyarrow.parquet.write_table(make_survey(), path)
    return path


@pytest.fixture(scope="module")
def server(survey: Path, page_built: Path) -> Iterator[ExploreServer]:
    data = data_of_input(InputOptions(survey, within=WITHIN).open, survey.stem, None)
    folder = survey.parent / "started here"
    folder.mkdir()
    with ExploreServer(Session(data, folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def live(browser: Browser, server: ExploreServer) -> Iterator[Opened]:
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    opened = Opened(context.new_page())
    opened.page.on("console", opened.note)
    opened.page.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.page.on("request", opened.request)
    opened.page.goto(server.url)
    opened.page.wait_for_selector(".maps[data-drawn]", timeout=60_000)
    yield opened
    context.close()


def first(server: ExploreServer, **changes: Any) -> dict[str, Any]:
    return {**server.session.offer.first.for_page(), **WHO, **changes}


def ask(server: ExploreServer, question: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", "X-Odkanon-Token": server.token, **headers}
    with talk(server, "POST", f"/{server.token}/{question}", content, sent) as response:
        return response.status, json.loads(response.read())


@contextmanager
def talk(
    server: ExploreServer, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> Iterator[HTTPResponse]:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    connection.putrequest(method, path, skip_host="Host" in (headers or {}))
    for name, value in (headers or {}).items():
        connection.putheader(name, value)
    if body is not None and "Content-Length" not in (headers or {}):
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    with closing(connection), connection.getresponse() as response:
        yield response


def drag(opened: Opened, k: int) -> None:
    opened.page.get_by_role("slider", name="k", exact=True).fill(str(k))


def wait_for(opened: Opened, **wanted: Any) -> None:
    for name, value in wanted.items():
        opened.until(f"odkanon.shown()?.request[{json.dumps(name)}] === {json.dumps(value)}", 60)


def numbers(opened: Opened) -> dict[str, str]:
    tiles = opened.page.locator(".tile").all()
    return {tile.locator("h3").inner_text(): tile.locator(".big").inner_text() for tile in tiles}


# -- the page


def test_moving_k_changes_zones_and_numbers(live: Opened, server: ExploreServer) -> None:
    live.settle(60)
    before, colours = numbers(live), live.colours()
    drag(live, 40)
    wait_for(live, k=40)
    live.settle(60)
    assert numbers(live)["Zones"] != before["Zones"]
    assert numbers(live)["Coarseness (G)"] != before["Coarseness (G)"]
    assert live.colours() != colours
    assert "at least 40 trips" in live.text(".statement")
    live.until("document.querySelectorAll('.curve polyline').length === 1", 60)
    live.until("document.querySelector('.tiles').textContent.includes('at best')", 60)
    assert live.problems == []
    assert {url.rsplit("/", 1)[0] for url in live.requests if not url.startswith("data:")} == {server.url.rstrip("/")}


def test_fifty_quick_drags_leave_no_stale_result(live: Opened, server: ExploreServer) -> None:
    slider = live.page.get_by_role("slider", name="k", exact=True)
    slider.evaluate(
        """(slider) => {
          for (let k = 51; k <= 100; k++) {
            slider.value = k === 100 ? 17 : k;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
          }
        }"""
    )
    wait_for(live, k=17)
    live.page.wait_for_timeout(1500)
    assert live.page.evaluate("odkanon.shown().request.k") == 17
    assert "at least 17 trips" in live.text(".statement")
    _, answer = ask(server, "anonymize", first(server, k=17))
    published = answer["releases"][0]["about"]["published"]
    assert numbers(live)["Zones"].replace(" ", "") == f"{published['origins']}×{published['destinations']}"
    assert live.problems == []


def test_participants_beside_population(live: Opened) -> None:
    live.page.get_by_role("checkbox", name="Participants | population").check()
    wait_for(live, split=True)
    assert live.text("h1") == "participants · population"
    assert live.page.locator(".differences").is_visible()
    assert live.page.locator('input[name="shade"][value="difference"]').is_checked()
    live.page.get_by_role("checkbox", name="Participants | population").uncheck()
    wait_for(live, split=False)
    assert live.page.locator('input[name="shade"][value="difference"]').count() == 0
    assert live.problems == []


def test_a_slow_method_can_be_stopped(live: Opened) -> None:
    live.page.get_by_role("combobox", name="Method").select_option("freezones")
    stop = live.page.get_by_role("button", name="Stop")
    stop.wait_for(state="visible")
    stop.click()
    wait_for(live, method="odkanon")
    assert live.page.get_by_role("combobox", name="Method").input_value() == "odkanon"
    stop.wait_for(state="hidden")
    assert live.text("header p") == "Origin–destination matrix protected with ODkAnon"


def test_a_state_is_saved_as_the_command_line_would_save_it(
    live: Opened, server: ExploreServer, survey: Path, tmp_path: Path
) -> None:
    drag(live, 12)
    live.page.get_by_role("radio", name="before merging").check()
    live.page.get_by_role("checkbox", name="Weighted trips").check()
    wait_for(live, k=12, suppress="before")
    live.until("odkanon.shown()?.request.targets.length === 2", 60)
    live.page.get_by_role("textbox", name="Name of the folder").fill("by hand")
    live.page.get_by_role("button", name="Save this release").click()
    live.page.get_by_text("Saved as by hand").wait_for(timeout=60_000)
    asked = ["--k", "12", "--protect", "participants", "--protect", "population", "--suppress", "before"]
    command = ["anonymize", str(survey), "-o", str(tmp_path / "by hand"), "--within", WITHIN, *asked]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert_same_release(server.session.folder / "by hand", tmp_path / "by hand")


def test_how_long_the_map_takes_to_follow(live: Opened, record_property: Any) -> None:
    live.settle(60)
    times = live.page.evaluate(
        """async () => {
          const slider = document.querySelector('input[aria-label="k"]'), maps = document.querySelector(".maps");
          const times = [], pause = (ms) => new Promise((go) => setTimeout(go, ms));
          for (let k = 20; k < 41; k++) {
            await pause(600);
            const start = performance.now();
            slider.value = k;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            while (odkanon.shown()?.request.k !== k || Number(maps.dataset.drawn) < odkanon.shown().at) await pause(4);
            times.push(Number(maps.dataset.drawn) - start);
          }
          return times;
        }"""
    )
    median = statistics.median(times)
    record_property("median_milliseconds_from_slider_to_map", round(median))
    print(f"slider to map: median {median:.0f} ms, fastest {min(times):.0f} ms, slowest {max(times):.0f} ms")
    assert len(times) == 21


@contextmanager
def serving(source: Path, **options: Any) -> Iterator[ExploreServer]:
    data = data_of_input(InputOptions(source, **options).open, source.stem, None)
    with ExploreServer(Session(data, source.parent)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_where_nothing_can_be_published_nothing_is_shown(browser: Browser, page_built: Path, tmp_path: Path) -> None:
    source = tmp_path / "few.csv"
    row = "{},2024-01-01 0{}:00,48.85,2.35,48.86,2.36"
    rows = [row.format(person, hour) for person in "abc" for hour in range(8)]
    source.write_text("\n".join(["person,start_time,start_lat,start_lon,end_lat,end_lon", *rows]) + "\n")
    with serving(source) as server:
        assert ask(server, "anonymize", first(server, targets=["persons"]))[0] == 422
        opened = Opened(browser.new_context().new_page())
        opened.page.goto(server.url)
        opened.page.wait_for_selector(".maps[data-drawn]", timeout=60_000)
        drag(opened, 11)
        opened.page.get_by_role("checkbox", name="Different persons").check()
        opened.page.get_by_text("Nothing can be published").wait_for(timeout=60_000)
        assert opened.page.locator(".tiles").is_hidden()
        assert opened.page.locator(".mapline").is_hidden()
        opened.page.get_by_role("checkbox", name="Different persons").uncheck()
        opened.page.locator(".tiles").wait_for(state="visible", timeout=60_000)
        opened.page.context.close()


def test_a_table_of_zones_without_coordinates_can_be_explored(page_built: Path, tmp_path: Path) -> None:
    source, hierarchy = tmp_path / "flows.csv", tmp_path / "zones.csv"
    source.write_text("origin,destination,trips\na1,b1,30\na2,b1,3\na1,b2,9\n")
    hierarchy.write_text("leaf,parent\na1,a\na2,a\nb1,b\nb2,b\n")
    with serving(source, hierarchy=hierarchy) as server:
        offer = server.session.offer
        assert not {"mondrian", "freezones"} & set(offer.methods)
        status, answer = ask(server, "anonymize", first(server, base=True))
        assert status == 200
        assert answer["releases"][0]["origin"]["shape"] == [-1] * len(answer["releases"][0]["origin"]["id"])
        assert ask(server, "anonymize", first(server, split=True))[0] == 400


def test_a_table_between_cells_can_be_made_coarser(page_built: Path, tmp_path: Path) -> None:
    source = tmp_path / "flows.csv"
    cells = made.disk(9, 2)
    flows = [f"{cells[number]},{cells[-number - 1]},{10 + number}" for number in range(9)]
    source.write_text("\n".join(["origin,destination,trips", *flows]) + "\n")
    with serving(source) as server:
        for number, resolution in enumerate((9, 8, 7), start=1):
            question = first(server, resolution=resolution, number=number)
            status, answer = ask(server, "anonymize", question)
            assert status == 200
            assert max(answer["releases"][0]["origin"]["level"]) <= resolution


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


def assert_same_release(one: Path, two: Path) -> None:
    for name in ("classes.csv", "classes.parquet", "zones.geojson"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    about = [json.loads((folder / "release.json").read_text()) for folder in (one, two)]
    assert about[0] | {"seconds": 0} == about[1] | {"seconds": 0}


@pytest.mark.parametrize(
    "changes",
    [
        {"resolution": 8, "k": 5},
        *({"method": method} for method in ("oigh", "atg-soft", "mondrian", "treecut", "freezones")),
    ],
    ids=str,
)
def test_a_state_is_what_the_command_line_gives(
    server: ExploreServer, survey: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    name = "-".join(str(value) for value in changes.values())
    status, answer = ask(server, "save", first(server, **changes) | {"name": f"state {name}"})
    assert (status, answer) == (200, {"saved": [f"state {name}"]})
    options = [part for key, value in changes.items() for part in (f"--{key}", str(value))]
    command = ["anonymize", str(survey), "-o", str(tmp_path / "release"), "--within", WITHIN, *options]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert_same_release(server.session.folder / f"state {name}", tmp_path / "release")


def test_a_segment_keeps_the_mean_weight_of_everyone_and_accounts_for_every_row(server: ExploreServer) -> None:
    segment = next(name for name in server.session.offer.segments if name.startswith("sex"))
    everyone = ask(server, "anonymize", first(server, targets=["weight"]))[1]["releases"][0]["about"]
    some = ask(server, "anonymize", first(server, targets=["weight"], segment=segment))[1]["releases"][0]["about"]
    assert some["rule"]["weight"] == everyone["rule"]["weight"]
    assert some["published"]["trips"] < everyone["published"]["trips"]
    assert some["input"]["rows"] == everyone["input"]["rows"]
    rejected = sum(part["trips"] for part in some["input"]["rejected"].values())
    assert some["published"]["trips"] + some["suppressed"]["trips"] + rejected == some["input"]["rows"]


def test_nothing_below_the_rule_is_ever_sent(server: ExploreServer) -> None:
    for k in (2, 3, 5, 50, 100):
        status, answer = ask(server, "anonymize", first(server, k=k, targets=["trips", "persons"]))
        assert status == 200
        flows = answer["releases"][0]["flows"]
        assert min(flows["trips"]) >= k
        assert min(flows["persons"]) >= k


def test_a_question_that_was_overtaken_is_dropped(server: ExploreServer) -> None:
    assert ask(server, "anonymize", first(server, k=3) | {"page": "overtaken", "number": 7})[0] == 200
    assert ask(server, "anonymize", first(server, k=2) | {"page": "overtaken", "number": 6})[0] == 409
    assert ask(server, "limits", first(server, k=2) | {"page": "overtaken", "number": 6})[0] == 409
    assert ask(server, "limits", first(server, k=3) | {"page": "overtaken", "number": 7})[0] == 200


def test_the_server_takes_little_of_the_200_milliseconds(server: ExploreServer, record_property: Any) -> None:
    offer, used = server.session.offer, []
    for number, k in enumerate(range(41, 62), start=100):
        request = offer.check(first(server, k=k))
        start = time.process_time()
        server.session.model(request, "speed", number)
        used.append(time.process_time() - start)
    record_property("median_cpu_milliseconds_of_the_server", round(1000 * statistics.median(used)))
    print(f"server: median {1000 * statistics.median(used):.0f} ms of processor time for a new k")


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
    ):
        with talk(server, "GET", page, headers=headers) as response:
            assert response.status == 403, headers
        assert ask(server, "anonymize", first(server), **headers)[0] == 403, headers
    with talk(server, "GET", page, headers={"Origin": f"http://{server.authority}"}) as response:
        assert response.status == 200
        assert "Access-Control-Allow-Origin" not in response.headers


def test_only_known_paths_exist(server: ExploreServer) -> None:
    for rest in ("x", "../", "..%2f..%2fetc/passwd", "../../etc/passwd", "./", "?x", "anonymize", "%00"):
        with talk(server, "GET", f"/{server.token}/{rest}") as response:
            assert response.status == 404, rest
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
        {"suppress": "never"}, {"split": "yes"}, {"page": 7}, {"number": "1"},
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
