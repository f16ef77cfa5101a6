"""``odkanon catalogue``: releases as entries of a data catalogue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from odkanon.cli.console import say


def catalogue(
    releases: Annotated[list[Path], typer.Argument(metavar="RELEASE...", help="Saved releases.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to, such as catalogue.jsonld.")],
    publisher: Annotated[str, typer.Option("--publisher", metavar="NAME", help="Who publishes the releases.")],
    homepage: Annotated[
        str, typer.Option("--homepage", metavar="URL", help="Address of the catalogue; a release is at URL/NAME.")
    ],
    licence: Annotated[str, typer.Option("--licence", metavar="URL", help="Address of the licence of the data.")],
    country: Annotated[str, typer.Option("--country", metavar="CODE", help="Three letters, such as FRA.")],
    day: Annotated[str, typer.Option("--date", metavar="DAY", help="Day of the entries, such as 2026-11-15.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier FILE.")] = False,
) -> None:
    """Describe releases for a data portal: mobilityDCAT-AP, as JSON-LD.

    Only what the folders of the releases say goes in, and what you say here.

    Examples
    --------
    `odkanon catalogue january february -o catalogue.jsonld --publisher "City of X" --homepage https://data.x.org
    --licence https://creativecommons.org/licenses/by/4.0/ --country FRA --date 2026-11-15`
    """
    from odkanon.core.atomic_write import check_new, write_whole
    from odkanon.publish.dcat import Publisher, describe_catalogue

    check_new(output, force=force)
    made = describe_catalogue(releases, Publisher(publisher, homepage, licence, country, day))
    write_whole(output, json.dumps(made, indent=2, ensure_ascii=False) + "\n")
    say(f"Wrote {output}: {len(releases)} {'entry' if len(releases) == 1 else 'entries'}.")
