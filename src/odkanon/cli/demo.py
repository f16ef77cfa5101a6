"""``odkanon demo``: a tour on the built-in survey."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from odkanon.cli.common_options import command

if TYPE_CHECKING:
    from odkanon.model.release import Release


@command(
    """
    --output -o DIR  Folder for the releases; each run replaces it.
    """
)
def demo(
    output: Path = Path("odkanon-demo"),
) -> None:
    """Protect the sample survey as the paper does, then as a cascade, and name the page to look at."""
    import numpy as np
    import pyarrow as pa

    from odkanon.cli.console import console, stages
    from odkanon.cli.summaries import show_input, show_privacy, show_published, show_utility, summarize_accuracy
    from odkanon.methods import anonymize
    from odkanon.model.rule import Rule
    from odkanon.pipeline.cautions import cautions
    from odkanon.publish.save import save_release
    from odkanon.read.area import Area
    from odkanon.read.od_matrix import build_od
    from odkanon.read.trips import read_trips
    from odkanon.release_format.public_rule import short_promise
    from odkanon.sample.survey import CENTRAL_CELLS, make_survey
    from odkanon.zoning.cells import str_to_cell

    with stages() as stage:
        stage("generating the sample survey")
        trips = read_trips(make_survey())
        centre = Area(cells=np.unique(str_to_cell(pa.array(CENTRAL_CELLS))))
        od = build_od(trips, resolution=10, within=centre)
        rules = {
            "participants": Rule.protect("participants", k=10, of=od),
            "population": Rule.protect("population", k=10, of=od),
        }
        releases = []
        for target, rule in rules.items():
            for when in ("before", "after"):
                stage(f"protecting the {target}, suppressing {when} generalising")
                release = anonymize(od, rule, method="odkanon", suppress=when)
                save_release(release, output / f"{target}-{when}", force=True)
                releases.append((f"{target}, {when}", release))
        stage("protecting participants and persons with a cascade")
        both = Rule.protect("participants", "persons", k=10, of=od)
        cascade = anonymize(od, both, method="cascade")
        save_release(cascade, output / "cascade", force=True)

    console.rule("The sample survey")
    show_input(od)
    console.paragraph(
        "These trips are synthetic. They resemble the survey of the paper; as in its experiment, only trips inside "
        "five cells of central Paris are used."
    )
    console.rule("The paper's result: ODkAnon")
    show_privacy(releases)
    console.paragraph(
        "Protecting the participants (at least 10 trips) leaves flows that represent too few people of the population, "
        "and vice versa: choose whom to protect, or protect both."
    )
    show_utility(releases)
    console.paragraph(
        "Every budget is 10 %. Spent after generalising, on the flows that remain too small, it gives "
        f"{_zones(releases[1][1])} zones when protecting the participants; spent before, as in the paper, "
        f"{_zones(releases[0][1])}. With sparser data the difference is larger: see docs/differences.md."
    )
    for text in cautions(releases[1][1]):
        console.caution(text)
    console.rule("The default: a cascade that also protects persons")
    console.paragraph(short_promise(cascade), "bold")
    show_published(cascade)
    summarize_accuracy([releases[0], releases[1], ("cascade", cascade)])
    console.add_result(releases=sorted(path for path in output.iterdir() if path.is_dir()))
    command = command_name()
    console.paragraph(
        f"Wrote five releases to {output}. To protect your own trips: {command} anonymize FILE -o release"
    )
    console.paragraph(f"Look at one page, in a browser: {output / 'cascade' / 'report.html'}", "bold")


def command_name() -> str:
    """Return the command that starts this program; inside a virtual environment it may not be on the PATH."""
    if shutil.which("odkanon"):
        return "odkanon"
    beside = Path(sys.executable).with_name("odkanon.exe" if os.name == "nt" else "odkanon")
    if not beside.is_file():
        return f"{sys.executable} -m odkanon"
    return str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)


def _zones(release: Release) -> str:
    return f"{len(release.origins)} x {len(release.destinations)}"
