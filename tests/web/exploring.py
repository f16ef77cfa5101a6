"""A running explorer, and how to talk to it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

from odkanon import read_recipe
from odkanon.explore import ExploreServer, Session, read_explorer_data
from odkanon.read.input_spec import InputSpec
from odkanon.sample.survey import CENTRAL_CELLS

WITHIN = ",".join(CENTRAL_CELLS)
WHO = {"page": "test", "number": 1}


@contextmanager
def serving(source: Path, folder: Path, **options: Any) -> Iterator[ExploreServer]:
    """Serve an input; what is saved goes to the folder."""
    data = read_explorer_data(InputSpec(source, **options))
    with ExploreServer(Session(data, folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def first(server: ExploreServer, **changes: Any) -> dict[str, Any]:
    return {**server.session.controls.first.for_page(), **WHO, **changes}


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


def assert_same_release(one: Path, two: Path) -> None:
    for name in ("classes.csv", "classes.parquet", "zones.geojson"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert (one / "release.json").read_bytes() == (two / "release.json").read_bytes()
    recipes = [read_recipe(folder) or {} for folder in (one, two)]
    # The page and the package say the name of the folder, so that their digests differ.
    same = {"seconds": 0, "files": {}}
    assert recipes[0]["about"] | same == recipes[1]["about"] | same
