"""The web server of the explorer: bound to this machine, behind a secret address, with a fixed set of endpoints.

Every request must carry the token in its path (a POST also in a header), name this server as its host, and come from
the same origin: a page elsewhere that guesses the port, or resolves its own host name to 127.0.0.1, is refused. No path
leads to a file.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from odkanon._version import __version__
from odkanon.errors import OdkanonError, RefusedError, unexpected
from odkanon.explore.session import NO_PAGE, Session
from odkanon.explore.worker_process import StoppedError
from odkanon.publish.report.page_model import FORMAT
from odkanon.publish.report.report_page import fill_template

HOST = "127.0.0.1"
MAX_BYTES = 8_192
"""The maximum length of a request."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class _HttpError(Exception):
    """A refused request, with its HTTP status."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class ExploreServer(ThreadingHTTPServer):
    """Serves one session on a local port.

    * ``session``: the session.
    * ``port``: the port; 0 for any free one.
    """

    daemon_threads = True
    # On Windows, another program could otherwise listen on the same port.
    allow_reuse_address = os.name != "nt"
    allow_reuse_port = False
    # A moving slider opens connections faster than they are accepted; the default of 5 would refuse some.
    request_queue_size = 128

    def __init__(self, session: Session, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.session, self.closed = session, False
        self.token = secrets.token_urlsafe(24)
        controls = session.controls.for_page(self.token)
        empty = {"format": FORMAT, "shapes": [], "releases": [], "live": controls}
        self.page = fill_template(empty, connect="'self'").encode()

    @property
    def authority(self) -> str:
        """Host and port."""
        return f"{HOST}:{self.server_port}"

    @property
    def url(self) -> str:
        """The secret address of the page."""
        return f"http://{self.authority}/{self.token}/"

    def server_close(self) -> None:
        """Stop listening and all running tasks; open connections get no response."""
        self.closed = True
        self.session.close()
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error, but not that a browser hung up, which it does whenever a slider moves."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError | TimeoutError):
            print(f"error: {unexpected(error)}", file=sys.stderr)


class _Handler(BaseHTTPRequestHandler):
    server: ExploreServer
    protocol_version = "HTTP/1.1"
    server_version = f"ODkAnon/{__version__}"
    sys_version = ""
    timeout = 30
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._respond(self._get_page)

    def do_POST(self) -> None:
        self._respond(self._call_endpoint)

    def _respond(self, make: Callable[[], tuple[str, bytes]]) -> None:
        if self.server.closed:
            self.close_connection = True
            return
        try:
            kind, body = make()
            self._send(HTTPStatus.OK, kind, body)
        except _HttpError as error:
            self.close_connection = True  # part of a refused body may still arrive
            self._send_error(error.status, str(error))
        except StoppedError as error:
            self._send_error(HTTPStatus.CONFLICT, str(error))
        except RefusedError as error:
            self._send_error(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except OdkanonError as error:
            self._send_error(HTTPStatus.BAD_REQUEST, str(error))
        except OSError as error:
            if isinstance(error, ConnectionError | TimeoutError):
                raise
            self._send_error(HTTPStatus.INTERNAL_SERVER_ERROR, error.strerror or "the files cannot be written")
        except Exception as error:
            self._send_error(HTTPStatus.INTERNAL_SERVER_ERROR, unexpected(error))

    def _get_page(self) -> tuple[str, bytes]:
        if self._path() != "":
            raise _HttpError(HTTPStatus.NOT_FOUND, "not found")
        return "text/html; charset=utf-8", self.server.page

    def _call_endpoint(self) -> tuple[str, bytes]:
        path = self._path()
        if not _equal(self.headers.get("X-Odkanon-Token", ""), self.server.token):
            raise _HttpError(HTTPStatus.FORBIDDEN, "the token is missing or wrong")
        if path not in ENDPOINTS:
            raise _HttpError(HTTPStatus.NOT_FOUND, "not found")
        answer = _answer(self.server.session, path, self._body())
        return "application/json", json.dumps(answer, allow_nan=False, separators=(",", ":")).encode()

    def _path(self) -> str:
        """Return the path after the token, once the headers have been checked."""
        if self.headers.get_all("Host", []) != [self.server.authority]:
            raise _HttpError(HTTPStatus.FORBIDDEN, "the Host header names another server")
        if any(origin != f"http://{self.server.authority}" for origin in self.headers.get_all("Origin", [])):
            raise _HttpError(HTTPStatus.FORBIDDEN, "requests from other pages are refused")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not self._is_navigation():
            raise _HttpError(HTTPStatus.FORBIDDEN, "requests from other pages are refused")
        token, slash, endpoint = self.path.removeprefix("/").partition("/")
        if not slash or not _equal(token, self.server.token):
            raise _HttpError(HTTPStatus.FORBIDDEN, "the token is missing or wrong; use the address from the terminal")
        return endpoint

    def _is_navigation(self) -> bool:
        """Return whether a browser opens the page, which is allowed from anywhere: a local file redirects to it."""
        mode = self.headers.get("Sec-Fetch-Mode"), self.headers.get("Sec-Fetch-Dest")
        return self.command == "GET" and mode == ("navigate", "document")

    def _body(self) -> dict[str, Any]:
        if self.headers.get_content_type() != "application/json":
            raise _HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must be JSON")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            raise _HttpError(HTTPStatus.LENGTH_REQUIRED, "the Content-Length header is missing")
        if len(length) > 9 or int(length) > MAX_BYTES:
            raise _HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body exceeds {MAX_BYTES:,} bytes")
        try:
            content = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise _HttpError(HTTPStatus.BAD_REQUEST, "the body is not valid JSON") from None
        if not isinstance(content, dict):
            raise _HttpError(HTTPStatus.BAD_REQUEST, "the body must be a JSON object")
        return content

    def _send_error(self, status: HTTPStatus, message: str) -> None:
        self._send(status, "application/json", json.dumps({"error": message}).encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal quiet, and the token out of it."""


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())


def _sender(received: dict[str, Any]) -> tuple[str, int]:
    page, number = received.get("page"), received.get("number")
    if not isinstance(page, str) or page == NO_PAGE or len(page) > 64 or type(number) is not int:
        raise _HttpError(HTTPStatus.BAD_REQUEST, "the body must have a page and a number")
    return page, number


ENDPOINTS = ("anonymize", "more", "curve", "save", "stop")


def _answer(session: Session, endpoint: str, received: dict[str, Any]) -> dict[str, Any]:
    """Return what one of the `ENDPOINTS` answers."""
    if endpoint == "stop":
        session.stop(_sender(received)[0])
        return {"stopped": True}
    request = session.controls.check(received)
    if endpoint == "save":
        return session.save(request, received.get("name"))
    if endpoint == "anonymize":
        return session.model(request, *_sender(received), base=received.get("base") is True)
    return (session.details if endpoint == "more" else session.curve)(request, *_sender(received))


_REDIRECT = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>ODkAnon</title>
<p><a href="{url}">Open the explorer</a></p>
"""


@contextmanager
def open_in_browser(url: str) -> Iterator[None]:
    """Open a secret address in a browser for the duration of a block.

    The command line of the browser is visible to every user of the machine. It therefore names a file that only this
    user can read, and the file redirects to the address.
    """
    with TemporaryDirectory(prefix="odkanon-") as folder:
        page = Path(folder) / "open.html"
        with os.fdopen(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(_REDIRECT.format(url=escape(url)))
        webbrowser.open(page.as_uri())
        yield
