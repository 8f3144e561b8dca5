"""Surveys of a test, closed when it ends, also where it fails or is skipped."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from nearkin.web.ask import Plan, Survey
from nearkin.web.ask.questions import Items, named_items
from tests.processes import FORKSERVER

NAMES = [f"item {number}" for number in range(8)]
PASSIVE = Plan(active=False, repeat_share=0.0)
OpenSurvey = Callable[..., Survey]


@pytest.fixture(autouse=True)
def one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of a model comes from the server of all tests; one by "spawn" imports for five seconds."""
    monkeypatch.setattr("nearkin.web.ask.model.get_context", lambda _: FORKSERVER)


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
