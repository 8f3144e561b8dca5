"""Surveys of a test, closed when it ends, also where it fails or is skipped."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from nearkin.web.ask import Plan, Survey
from nearkin.web.ask.questions import Items, named_items

NAMES = [f"item {number}" for number in range(8)]
PASSIVE = Plan(active=False, repeat_share=0.0)
OpenSurvey = Callable[..., Survey]


@pytest.fixture
def open_survey(tmp_path: Path) -> Iterator[OpenSurvey]:
    """Open the survey of answers.csv, once more after it was closed; every one is closed at the end."""
    with ExitStack() as stack:

        def opened(plan: Plan = PASSIVE, names: list[str] = NAMES, items: Items | None = None) -> Survey:
            survey = Survey(items or named_items(names), plan, tmp_path / "answers.csv")
            stack.enter_context(closing(survey))
            return survey

        yield opened


@pytest.fixture
def survey(open_survey: OpenSurvey) -> Survey:
    return open_survey()
