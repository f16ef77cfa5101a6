"""A stand-in for a Google store with one file: ``python google_store.py FILE`` prints its port and answers readers."""

from __future__ import annotations

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

FILE = Path(sys.argv[-1])


class Store(BaseHTTPRequestHandler):
    """Tells of the file, and gives parts of it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url, content = urlsplit(self.path), FILE.read_bytes()
        if not url.path.endswith(f"/{FILE.name}"):
            self.answer(200 if url.path.endswith("/o") else 404, json.dumps({"kind": "storage#objects"}).encode())
        elif parse_qs(url.query).get("alt") != ["media"]:
            about = {"name": FILE.name, "bucket": "trips", "size": str(len(content)), "generation": "1"}
            self.answer(200, json.dumps({"kind": "storage#object", **about}).encode())
        elif asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
            self.answer(206, content[first : last + 1], **{"Content-Range": f"bytes {first}-{last}/{len(content)}"})
        else:
            self.answer(200, content)

    def answer(self, code: int, body: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), "x-goog-generation": "1", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        print(server.server_port, flush=True)
        server.serve_forever()
