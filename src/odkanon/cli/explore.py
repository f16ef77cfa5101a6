"""``odkanon explore``: an interactive map for choosing k, in a browser on this machine."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.common_options import command
from odkanon.cli.console import console
from odkanon.cli.request_options import Input, InputOptions


@command(
    """
    --by NAME  Begin with one table by this attribute, as for anonymize. Repeatable.
    --port PORT  The port on this machine; 0 selects a free one.
    --no-open  Print the address without opening a browser.
    """
)
def explore(
    source: Input,
    how: InputOptions,
    by: list[str] = [],  # noqa: B006 - typer copies it
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    no_open: bool = False,
) -> None:
    """Try k, methods and budgets on a live map, and save the release that you prefer.

    The page is served to this machine only, at an address that cannot be guessed. It receives releases that meet the
    rule, never trips.

    Examples
    --------
    `odkanon explore trips.csv`
    """
    from odkanon.cli.console import stages
    from odkanon.explore import ExploreServer, Session, open_in_browser, read_explorer_data

    reading = how(source)
    with stages() as stage:
        stage(f"reading {reading.name}")
        session = Session(read_explorer_data(reading, by), Path.cwd())
    with ExploreServer(session, port) as server, suppress(KeyboardInterrupt):
        console.add_result(url=server.url)
        console.print(f"Exploring {reading.name} at {server.url}")
        console.print("Anyone with this address can see the page while this runs. Stop with Ctrl+C.")
        console.finish()  # the reader of the document needs the address now
        with nullcontext() if no_open else open_in_browser(server.url):
            server.serve_forever(poll_interval=0.2)
