"""Where answers disagree: raters over one question, and answers with the map over a pair of items."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from nearkin._types import Record
from nearkin.metrics.ordinal import satisfied
from nearkin.records import Comparisons
from nearkin.web.ask.questions import Form, Question, answers_of

Said = tuple[int, ...]  # what an answer says, whichever side its items were on
Votes = Mapping[Said, Mapping[str, Said]]  # for each question: the key of each rater who answered, the last answer
_SHOWN = 10  # rows of a table
_FEWEST = 4  # answers about a pair before its share is shown


def said(form: Form, question: Question) -> Said:
    """What the answer to a question says: the odd one, or the nearer items before the farther ones."""
    line = form.line(question.shown, question.choice or 0)
    if form.name == "odd-one-out":
        return line[-1:]
    return line if form.name == "triplet" else (*sorted(line[:2]), *sorted(line[2:]))


def votes_by_question(form: Form, answered: Sequence[Question]) -> Votes:
    """For each question that was answered, each rater's last answer: one vote a rater."""
    votes: dict[Said, dict[str, Said]] = defaultdict(dict)
    for question in answered:
        votes[form.key(question.shown)][question.rater] = said(form, question)
    return votes


def split_questions(form: Form, votes: Votes, names: Sequence[str]) -> list[Record]:
    """The questions on which people differ most: the items, and how many answers say what."""
    rows = []
    for key, given in votes.items():
        counts = Counter(given.values()).most_common()
        against = len(given) - counts[0][1]
        if against:
            rows.append((against, against / len(given), key, counts))
    rows.sort(key=lambda row: (-row[0], -row[1], row[2]))
    return [
        {"items": [names[item] for item in key], "said": [[form.in_words(line, names), n] for line, n in counts]}
        for _, _, key, counts in rows[:_SHOWN]
    ]


def pairs_against_map(
    form: Form, answered: Sequence[Question], places: np.ndarray, names: Sequence[str]
) -> list[Record]:
    """The pairs of items about which the most answers contradict the map (n, p), beyond the share of all that do.

    An answer d(i, j) < d(l, k) is about the pairs (i, j) and (l, k). Each rater has one vote on a question.
    """
    last = {(form.key(question.shown), question.rater): question for question in answered}.values()
    rows = answers_of([row for question in last for row in form.implied(question.shown, question.choice or 0)])
    if not len(rows):
        return []
    wrong = ~satisfied(places, Comparisons(rows, np.arange(len(places))))
    pairs = np.sort(np.concatenate([rows[:, :2], rows[:, 2:]]), axis=1)
    found, number = np.unique(pairs, axis=0, return_inverse=True)
    total = np.bincount(number.reshape(-1))
    against = np.bincount(number.reshape(-1), np.concatenate([wrong, wrong]))
    excess = np.where(total >= _FEWEST, against - wrong.mean() * total, 0.0)
    worst = [pair for pair in np.argsort(-excess, kind="stable")[:_SHOWN] if excess[pair] > 0]
    return [
        {
            "items": [names[item] for item in found[pair]],
            "answers": int(total[pair]),
            "against": float(against[pair] / total[pair]),
        }
        for pair in worst
    ]
