"""Misspelt names are rejected when they run, and by type checkers before that.

mypy reports an ignored error that is not there, so each ``type: ignore`` below states that mypy rejects its line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from odkanon.errors import InputError
from odkanon.methods import method_registry
from odkanon.model.release import Release
from odkanon.model.rule import Rule
from odkanon.pipeline.one_call import anonymize
from odkanon.quality.accuracy.accuracy import accuracy
from odkanon.quality.lower_bound import lower_bound
from odkanon.quality.privacy import privacy
from odkanon.quality.utility import utility
from odkanon.read.od_matrix import build_od
from odkanon.release_format.folder import open_release
from odkanon.sample.survey import make_survey
from worlds.matrices import golden_od


def test_misspelt_names_are_rejected() -> None:
    survey = make_survey().slice(0, 100)
    with pytest.raises(AttributeError, match="tripz"):
        _ = Rule(trips=10).tripz  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="trps"):
        Rule(trps=10)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="did you mean 'odkanon'"):
        anonymize(survey, method="odkanno")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"anonymize\(\) got .* 'timezon' \(did you mean 'timezone'\?\)"):
        anonymize(survey, timezon="Europe/Paris")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="the budget must be a share"):
        anonymize(survey, budget="10%")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="the threshold on trips must be a whole number"):
        Rule(trips="10")  # type: ignore[arg-type]


made: Any = anonymize
rule: Any = Rule
"""The same without types, which would reject the calls below."""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda od, table: rule(trips=True), "the threshold on trips must be a whole number of at least 1, not True"),
        (lambda od, table: rule(trips=5, max_share="1"), "max_share must be a share"),
        (lambda od, table: rule(trips=5, min_destinations=True), "min_destinations must be a whole number"),
        (lambda od, table: made(od, method="treecut", iterations="3"), "iterations must be a whole number"),
        (lambda od, table: made(od, method="freezones", compactness="1"), "compactness must be a number"),
        (lambda od, table: made(od, method="atg-soft", target="x"), "origin zone must be a positive number"),
        (lambda od, table: made(od, suppress="before", max_levels="3"), "levels must be a whole number"),
        (lambda od, table: made(table, engine="x"), "unknown engine 'x'"),
        (lambda od, table: made(table, by=3), "by must be a text or a list of texts, not 3"),
        (lambda od, table: made(table, segment="age", age_bands=3), "age_bands must be a list of ages"),
        (lambda od, table: made(None), "an object of type NoneType cannot be read as a table; give a path"),
        (lambda od, table: method_registry.anonymize(table, Rule(trips=5)), "the input must be a result of read_m"),
        (lambda od, table: Release.from_labels(table, Rule(trips=5), [], []), "the input must be a result of read_m"),
        (lambda od, table: lower_bound(table, Rule(trips=5)), "the input must be a result of read_matrix or build_od"),
        (lambda od, table: utility(od, table), "the release must be a result of anonymize, not a DataFrame"),
        (lambda od, table: privacy(table), "the release must be a result of anonymize, not a DataFrame"),
        (lambda od, table: accuracy(table), "the release must be a result of anonymize, not a DataFrame"),
        (lambda od, table: build_od(table), "trips must be the result of read_trips, not a DataFrame"),
        (lambda od, table: open_release(table), "the release must be the path of a saved one, not a DataFrame"),
    ],
)
def test_wrong_types_get_a_sentence(call: Callable[[Any, Any], Any], message: str) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(make_survey().slice(0, 50).to_pylist())
    with pytest.raises(InputError, match=message):
        call(golden_od("tiny"), table)
