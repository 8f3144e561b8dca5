"""What the experimenter sees: the map so far, the error on answers held out, and how the raters do."""

from statistics import median

import numpy as np
from matplotlib.axes import Axes

from nearkin._types import Record
from nearkin.plots.style import FAINT, INK, SERIES, new_axes
from nearkin.web.ask.questions import Question
from nearkin.web.ask.raters import Rater
from nearkin.web.ask.survey import Survey
from nearkin.web.drawing import png

_LABELS = 40  # items of a map that are named


def rater_rows(survey: Survey) -> list[Record]:
    """For each rater: answers, share of "can't say", seconds, and how often the same is said again, the known is said,
    and what others say is said."""
    votes = _votes(survey)
    return [_row(survey, rater, votes) for rater in survey.raters.values() if rater.answered]


def _row(survey: Survey, rater: Rater, votes: dict[tuple[int, ...], list[tuple[str, tuple[int, ...]]]]) -> dict:
    answers = [survey.questions[number] for number in rater.answered]
    said = [q for q in answers if q.choice is not None and q.choice >= 0]
    same_again = [_line(survey, q) == _line(survey, survey.questions[q.of]) for q in said if q.of is not None]
    known = [_line(survey, q) in survey.plan.catch for q in said if q.reason == "catch"]
    others = [
        line == _line(survey, q)
        for q in said
        for who, line in votes.get(survey.form.key(q.shown), [])
        if who != rater.key
    ]
    return {
        "name": rater.name,
        "answers": len(answers),
        "cannot_say": _share([q.choice == -1 for q in answers]),
        "seconds": median(q.seconds for q in answers),
        "consistent": _share(same_again),
        "catch": _share(known),
        "agree": _share(others),
    }


def _line(survey: Survey, question: Question) -> tuple[int, ...]:
    """What an answer says, whichever side its items were on."""
    line = survey.form.line(question.shown, question.choice or 0)
    if survey.form.name == "odd-one-out":
        return line[-1:]
    return line if survey.form.name == "triplet" else (*sorted(line[:2]), *sorted(line[2:]))


def _votes(survey: Survey) -> dict[tuple[int, ...], list[tuple[str, tuple[int, ...]]]]:
    """For each question that was answered, who said what."""
    found: dict[tuple[int, ...], list[tuple[str, tuple[int, ...]]]] = {}
    for question, _ in survey.answered():
        if question.choice is not None and question.choice >= 0:
            found.setdefault(survey.form.key(question.shown), []).append((question.rater, _line(survey, question)))
    return found


def _share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def map_png(survey: Survey, dark: bool = False) -> bytes:
    """The items where the model has them now."""
    ax = new_axes(6.4, 4.8)
    fitted = survey.fitted
    if fitted is None:
        return png(_empty(ax, "the map appears after the first answers"), dark)
    X = fitted.embedding if fitted.embedding.shape[1] > 1 else np.c_[fitted.embedding, np.zeros(len(fitted.embedding))]
    ax.scatter(X[:, 0], X[:, 1], s=12, color=SERIES[0])
    for number in range(0, len(X), max(1, len(X) // _LABELS)):
        ax.annotate(survey.items.ids[number].replace("$", r"\$")[:24], (X[number, 0], X[number, 1]), xytext=(3, 3),
                    textcoords="offset points", fontsize=8, color=INK)  # fmt: skip
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    return png(ax, dark)


def curve_png(survey: Survey, dark: bool = False) -> bytes:
    """The share of held-out answers (drawn at random, never learned from) that the model gets wrong."""
    ax = new_axes(6.4, 3.2)
    if not survey.curve:
        return png(_empty(ax, "the error appears with the first random questions"), dark)
    ax.plot(*zip(*survey.curve, strict=True), "o-", color=SERIES[0], linewidth=1.6, markersize=3)
    ax.set_xlabel("answers learned from")
    ax.set_ylabel("error on held-out answers")
    ax.set_ylim(0, None)
    return png(ax, dark)


def _empty(ax: Axes, text: str) -> Axes:
    ax.text(0.5, 0.5, text, ha="center", color=FAINT)
    ax.set_axis_off()
    return ax
