"""Every option of ``odkanon anonymize`` has its argument in Python, and the other way round."""

from __future__ import annotations

from inspect import signature

from odkanon.cli.commands import every_command
from odkanon.pipeline.one_call import anonymize

SPELT_OTHERWISE = {
    "column": "columns",
    "read_as": "kind",
    "boundaries": "outlines",
    "id": "zone_id",
    "parent": "zone_parents",
}
"""Options whose argument has another name: a table of columns, the content of a table, outlines of any kind, and
names that are too general without ``--zoning`` beside them."""

ONLY_ON_THE_TERMINAL = {"output", "force", "config", "json", "quiet", "help", "help_all", "metrics"}
ABOUT_THE_FOLDER = {"matrix", "matrix_id", "title", "source", "period", "licence", "language", "names", "name_column"}
"""What is about the folder is an argument of `odkanon.Release.save`."""
ONLY_IN_PYTHON = {"source", "rule", "parameters"}
"""The input is an argument of the command, too; a complete rule and parameters of foreign methods are objects."""


def options() -> set[str]:
    names = {
        option.removeprefix("--").replace("-", "_")
        for parameter in every_command()["anonymize"].params
        if parameter.param_type_name == "option" and not getattr(parameter, "hidden", False)
        for option in parameter.opts[:1]
    }
    return {SPELT_OTHERWISE.get(name, name) for name in names - ONLY_ON_THE_TERMINAL - ABOUT_THE_FOLDER}


def test_options_and_arguments_are_the_same() -> None:
    assert options() == set(signature(anonymize).parameters) - ONLY_IN_PYTHON
