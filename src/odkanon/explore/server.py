"""The local web server of the explorer: this machine only, one secret address, a handful of known questions.

Every request must carry the token in its path (and, where it asks for something, in a header too), name this very
server as its host, and come from no other origin: a page elsewhere that guesses the port, or points a name of its
own to 127.0.0.1, is refused. There are no files behind any path.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from odkanon._version import __version__
from odkanon.errors import OdkanonError, RefusedError, unexpected
from odkanon.explore.session import NO_PAGE, Session
from odkanon.explore.worker import StoppedError
from odkanon.publish.report.report_page import fill_template

HOST = "127.0.0.1"
MOST_BYTES = 8_192
"""No question is longer than this."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class _RefusedError(Exception):
    """A request that is not answered, with the status that says why."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class ExploreServer(ThreadingHTTPServer):
    """Serves one session on a port of this machine.

    Parameters
    ----------
    session : Session
        What is explored.
    port : int
        0 for any that is free.
    """

    daemon_threads = True
    # On Windows this would let another program listen on the same port.
    allow_reuse_address = os.name != "nt"
    allow_reuse_port = False
    # A slider that moves opens connections faster than they are taken up; the usual five would turn some away.
    request_queue_size = 128

    def __init__(self, session: Session, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.session, self.closed = session, False
        self.token = secrets.token_urlsafe(24)
        offer = session.offer.for_page(self.token)
        empty = {"format": 1, "shapes": [], "releases": [], "live": offer}
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
        """Stop listening, and whatever still runs; connections that are still open get no answer any more."""
        self.closed = True
        self.session.close()
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that hung up: it does so whenever a slider moves on."""
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
        self._answer(self._page)

    def do_POST(self) -> None:
        self._answer(self._question)

    def _answer(self, make: Callable[[], tuple[str, bytes]]) -> None:
        if self.server.closed:
            self.close_connection = True
            return
        try:
            kind, body = make()
            self._send(HTTPStatus.OK, kind, body)
        except _RefusedError as error:
            self.close_connection = True  # part of a refused body may still be on its way
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

    def _page(self) -> tuple[str, bytes]:
        if self._path() != "":
            raise _RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")
        return "text/html; charset=utf-8", self.server.page

    def _question(self) -> tuple[str, bytes]:
        path = self._path()
        if not _same(self.headers.get("X-Odkanon-Token", ""), self.server.token):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "the token is missing or wrong")
        if path not in QUESTIONS:
            raise _RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")
        answer = QUESTIONS[path](self.server.session, self._body())
        return "application/json", json.dumps(answer, allow_nan=False, separators=(",", ":")).encode()

    def _path(self) -> str:
        """Return what follows the token in the path, once everything about the request is in order."""
        if self.headers.get_all("Host", []) != [self.server.authority]:
            raise _RefusedError(HTTPStatus.FORBIDDEN, "this is not the server you asked for")
        if any(origin != f"http://{self.server.authority}" for origin in self.headers.get_all("Origin", [])):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "other pages may not ask")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not self._is_contribution():
            raise _RefusedError(HTTPStatus.FORBIDDEN, "other pages may not ask")
        token, slash, residual = self.path.removeprefix("/").partition("/")
        if not slash or not _same(token, self.server.token):
            raise _RefusedError(
                HTTPStatus.FORBIDDEN, "the token is missing or wrong; use the address from the terminal"
            )
        return residual

    def _is_contribution(self) -> bool:
        """Tell whether a browser goes to the page, which it may from anywhere: the file that opens it is elsewhere."""
        kind = self.headers.get("Sec-Fetch-Mode"), self.headers.get("Sec-Fetch-Dest")
        return self.command == "GET" and kind == ("navigate", "document")

    def _body(self) -> dict[str, Any]:
        if self.headers.get_content_type() != "application/json":
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "questions are JSON")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "the length is missing")
        if len(length) > 9 or int(length) > MOST_BYTES:
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"no question is longer than {MOST_BYTES:,} bytes")
        try:
            content = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "this is not JSON") from None
        if not isinstance(content, dict):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "a question is a JSON object")
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


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())


def _who(asked: dict[str, Any]) -> tuple[str, int]:
    page, number = asked.get("page"), asked.get("number")
    if not isinstance(page, str) or page == NO_PAGE or len(page) > 64 or type(number) is not int:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "a question has a page and a number")
    return page, number


def _model(session: Session, asked: dict[str, Any]) -> dict[str, Any]:
    return session.model(session.offer.check(asked), *_who(asked), base=asked.get("base") is True)


def _more(session: Session, asked: dict[str, Any]) -> dict[str, Any]:
    return session.more(session.offer.check(asked), *_who(asked))


def _curve(session: Session, asked: dict[str, Any]) -> dict[str, Any]:
    return session.curve(session.offer.check(asked), *_who(asked))


def _save(session: Session, asked: dict[str, Any]) -> dict[str, Any]:
    return session.save(session.offer.check(asked), asked.get("name"))


def _stop(session: Session, asked: dict[str, Any]) -> dict[str, Any]:
    session.stop(_who(asked)[0])
    return {"stopped": True}


QUESTIONS: dict[str, Callable[[Session, dict[str, Any]], dict[str, Any]]] = {
    "anonymize": _model,
    "more": _more,
    "curve": _curve,
    "save": _save,
    "stop": _stop,
}
