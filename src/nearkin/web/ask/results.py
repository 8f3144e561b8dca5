"""What the experimenter sees: the map so far, the error on answers held out, how the raters do, where they differ."""

from statistics import median

import numpy as np
from matplotlib.axes import Axes

from nearkin._types import Record
from nearkin.plots.labels import label_points
from nearkin.plots.style import FAINT, SERIES, new_axes
from nearkin.web.ask.disagreement import Votes, pairs_against_map, said, split_questions, votes_by_question
from nearkin.web.ask.raters import Rater
from nearkin.web.ask.survey import Survey
from nearkin.web.drawing import png


def state(survey: Survey) -> Record:
    """What the page tells: counts, the error on answers held out, raters, and where answers disagree."""
    answered = survey.said()
    votes = votes_by_question(survey.form, answered)
    fitted, names = survey.fitted, survey.items.ids
    return {
        "answers": len(survey.answered()),
        "items": len(survey.items),
        "error": survey.curve[-1][1] if survey.curve else None,
        "learned": fitted.n_answers if fitted else 0,
        "failure": survey.failure,
        "raters": _rater_rows(survey, votes),
        "questions": split_questions(survey.form, votes, names),
        "pairs": pairs_against_map(survey.form, answered, fitted.embedding, names) if fitted else [],
    }


def _rater_rows(survey: Survey, votes: Votes) -> list[Record]:
    """For each rater: answers, share of "can't say", seconds, how often the same is said again, the known is said, and
    what others say is said, and the weight of the answers in the model (None before it has one)."""
    weights = survey.fitted.weights if survey.fitted else {}
    return [
        {**_row(survey, rater, votes), "weight": weights.get(number)}
        for number, rater in enumerate(survey.raters.values())
        if rater.answered
    ]


def _row(survey: Survey, rater: Rater, votes: Votes) -> Record:
    form, answers = survey.form, [survey.questions[number] for number in rater.answered]
    given = [q for q in answers if q.choice is not None and q.choice >= 0]
    same_again = [said(form, q) == said(form, survey.questions[q.of]) for q in given if q.of is not None]
    known = [said(form, q) in survey.plan.catch for q in given if q.reason == "catch"]
    agree = [line == said(form, q) for q in given for who, line in votes[form.key(q.shown)].items() if who != rater.key]
    return {
        "name": rater.name,
        "answers": len(answers),
        "cannot_say": _share([q.choice == -1 for q in answers]),
        "seconds": median(q.seconds for q in answers),
        "consistent": _share(same_again),
        "catch": _share(known),
        "agree": _share(agree),
    }


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
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines["bottom"].set_visible(False)
    label_points(ax, X, [name[:24] for name in survey.items.ids])
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
