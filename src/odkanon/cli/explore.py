"""``odkanon explore``: choose k by eye, in a browser on this machine."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.console import console, say
from odkanon.cli.engine_options import Input
from odkanon.cli.input_options import InputOptions, reads


@reads
def explore(
    source: Input,
    how: InputOptions,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0 takes a free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser; only print the address.")] = False,
) -> None:
    """Try k, methods and budgets on a map that follows at once; save the release you like.

    The page is served to this machine only, at an address nobody can guess, and is sent releases that meet the
    rule, never trips.

    Examples
    --------
    `odkanon explore trips.csv`
    """
    from odkanon.cli.stages import stages
    from odkanon.explore import ExploreServer, Session, open_in_browser, read_explorer_data

    reading = how(source)
    with stages() as stage:
        stage(f"reading {reading.name}")
        session = Session(read_explorer_data(reading), Path.cwd())
    with ExploreServer(session, port) as server, suppress(KeyboardInterrupt):
        console.tell(url=server.url)
        say(f"Exploring {reading.name} at {server.url}")
        say("Whoever has this address can see the page while this runs. Stop with Ctrl+C.")
        console.finish()  # whoever reads the document wants the address now
        with nullcontext() if no_open else open_in_browser(server.url):
            server.serve_forever(poll_interval=0.2)
