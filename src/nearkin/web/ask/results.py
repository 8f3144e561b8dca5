"""The experimenter's figures: the map so far, the error on held-out answers, the raters, and where answers disagree."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from nearkin._types import Record
from nearkin.metrics.ordinal import satisfied
from nearkin.plots import new_axes, plot_error, plot_map
from nearkin.plots.style import FAINT, to_png
from nearkin.records import Comparisons
from nearkin.web.ask.questions import Form, Question, Shown
from nearkin.web.ask.survey import Rater, Survey

Votes = Mapping[Shown, Mapping[str, Question]]
"""For each question that was answered, each rater's last answer: one vote a rater."""

_ROWS = 10  # of a table
_FEWEST = 4  # answers about a pair before its share is shown


def state(survey: Survey) -> Record:
    """What the page shows: counts, the error on answers held out, raters, and where answers disagree."""
    votes, fitted, names = votes_by_question(survey.form, survey.comparing()), survey.fitted, survey.items.ids
    weights = fitted.weights if fitted else {}
    return {
        "answers": len(survey.answered()),
        "items": len(survey.items),
        "error": survey.curve[-1][1] if survey.curve else None,
        "learned": fitted.n_answers if fitted else 0,
        "failure": survey.learner.failure,
        "raters": [
            _rater_row(survey, rater, votes) | {"weight": weights.get(number)}
            for number, rater in enumerate(survey.raters.values())
            if rater.answered
        ],
        "questions": split_questions(survey.form, votes, names),
        "pairs": pairs_against_map(survey.form, votes, fitted.embedding, names) if fitted else [],
    }


def votes_by_question(form: Form, answered: Sequence[Question]) -> Votes:
    """The votes in answers, given in the order in which they were asked."""
    votes: dict[Shown, dict[str, Question]] = defaultdict(dict)
    for question in answered:
        votes[form.key(question.shown)][question.rater] = question
    return votes


def split_questions(form: Form, votes: Votes, names: Sequence[str]) -> list[Record]:
    """The questions on which raters differ most: the items, and how many chose what."""
    rows: list[tuple[int, float, Shown, list[tuple[Shown, int]]]] = []
    for key, given in votes.items():
        counts = Counter(map(form.answer, given.values())).most_common()
        against = len(given) - counts[0][1]
        if against:
            rows.append((-against, -against / len(given), key, counts))
    return [
        {
            "items": [names[item] for item in key],
            "chosen": [[" and ".join(names[item] for item in chosen), n] for chosen, n in counts],
        }
        for _, _, key, counts in sorted(rows)[:_ROWS]
    ]


def pairs_against_map(form: Form, votes: Votes, embedding: np.ndarray, names: Sequence[str]) -> list[Record]:
    """The pairs of items about which most votes contradict the map (n, p), beyond the share of all that do.

    A vote d(i, j) < d(l, k) is about the pairs (i, j) and (l, k).
    """
    rows = form.all_comparisons(question for given in votes.values() for question in given.values())
    if not len(rows):
        return []
    wrong = ~satisfied(embedding, Comparisons(rows, np.arange(len(embedding))))
    found, number = np.unique(np.sort(rows.reshape(-1, 2), axis=1), axis=0, return_inverse=True)
    total = np.bincount(number.reshape(-1))
    against = np.bincount(number.reshape(-1), np.repeat(wrong, 2))
    excess = np.where(total >= _FEWEST, against - wrong.mean() * total, 0.0)
    return [
        {
            "items": [names[item] for item in found[pair]],
            "answers": int(total[pair]),
            "against": float(against[pair] / total[pair]),
        }
        for pair in np.argsort(-excess, kind="stable")[:_ROWS]
        if excess[pair] > 0
    ]


def _rater_row(survey: Survey, rater: Rater, votes: Votes) -> Record:
    """Counts of a rater. consistent: the share of repeated questions answered the same; catch: of catch questions
    answered right; agree: of other raters' votes on the same questions that are the same."""
    form, answers = survey.form, [survey.questions[number] for number in rater.answered]
    given = [q for q in answers if q.choice != -1]
    repeats = [(q, survey.questions[q.of]) for q in given if q.of is not None]
    others = [(q, vote) for q in given for key, vote in votes[form.key(q.shown)].items() if key != rater.key]
    return {
        "name": rater.name,
        "answers": len(answers),
        "cannot_say": _share([q.choice == -1 for q in answers]),
        "seconds": median(q.seconds for q in answers),
        "consistent": _share([form.answer(q) == form.answer(old) for q, old in repeats]),
        "catch": _share([form.line(q.shown, q.choice or 0) in survey.plan.catch for q in given if q.reason == "catch"]),
        "agree": _share([form.answer(q) == form.answer(vote) for q, vote in others]),
    }


def _share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def map_png(survey: Survey, dark: bool = False) -> bytes:
    """The items where the model has them now."""
    if survey.fitted is None:
        return _empty(4.8, "the map appears after the first answers", dark)
    return to_png(
        plot_map(survey.fitted.embedding, [name[:24] for name in survey.items.ids], ax=new_axes(6.4, 4.8)), dark
    )


def curve_png(survey: Survey, dark: bool = False) -> bytes:
    """The share of held-out answers (drawn at random, never learned from) that the model gets wrong."""
    if not survey.curve:
        return _empty(3.2, "the error appears with the first random questions", dark)
    curve, label = {"error": {float(n): error for n, error in survey.curve}}, "error on held-out answers"
    return to_png(plot_error(curve, "answers learned from", new_axes(6.4, 3.2), ylabel=label), dark)


def _empty(height: float, text: str, dark: bool) -> bytes:
    ax = new_axes(6.4, height)
    ax.text(0.5, 0.5, text, ha="center", color=FAINT)
    ax.set_axis_off()
    return to_png(ax, dark)
