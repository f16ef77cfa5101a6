"""The paper's figure: the zones of ODkAnon that protect the participants, beside those that protect the population."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from odkanon.methods import anonymize
from odkanon.publish.report.pictures import write_picture
from odkanon.study.experiment import Experiment


def draw_targets(experiment: Experiment, target: Path) -> str | None:
    """Draw the zones for the targets of an experiment on the whole input, or return why there is no picture."""
    whole = experiment.whole
    if find_spec("matplotlib") is None:
        return "pictures need matplotlib: pip install 'odkanon[plot]'"
    if whole.origins.resolution is None and not whole.origins.outlines:
        return "the outlines of the zones are not known"
    with TemporaryDirectory() as folder:
        saved = []
        for name, rule in experiment.rules().items():
            release = anonymize(whole, rule, method="odkanon", budget=experiment.budget)
            if release.refusal is None:
                saved.append(release.save(Path(folder) / name))
        if saved:
            write_picture(saved, target)
    return None if saved else "nothing can be published under the rules"
