"""Misspelt names are rejected when they run, and by type checkers before that.

mypy reports an ignored error that is not there, so each ``type: ignore`` below states that mypy rejects its line.
"""

from __future__ import annotations

import pytest

from odkanon.errors import InputError
from odkanon.model.rule import Rule
from odkanon.pipeline.one_call import anonymize
from odkanon.sample.survey import make_survey


def test_misspelt_names_are_rejected() -> None:
    survey = make_survey().slice(0, 100)
    with pytest.raises(AttributeError, match="tripz"):
        _ = Rule(trips=10).tripz  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="trps"):
        Rule(trps=10)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="did you mean 'odkanon'"):
        anonymize(survey, method="odkanno")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="timezon"):
        anonymize(survey, timezon="Europe/Paris")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="the budget must be a share"):
        anonymize(survey, budget="10%")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="the threshold on trips must be a whole number"):
        Rule(trips="10")  # type: ignore[arg-type]
