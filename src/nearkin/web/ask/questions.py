"""Questions of one form: which items they show, what answers they have, and what an answer says of distances."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Shown = tuple[int, ...]  # numbers of the items, in the order on the page


@dataclass(frozen=True)
class Form:
    """A kind of question.

    title: what the page asks. n_items: shown at once. n_choices: answers beside "can't say". columns: of an answer's
    line in the table. `implied` maps an answer to what `nearkin embed` reads.
    """

    name: str
    title: str
    n_items: int
    n_choices: int
    columns: tuple[str, ...]

    def line(self, shown: Shown, choice: int) -> Shown:
        """The items of an answer in the order of `columns`."""
        if self.name == "odd-one-out":
            return (*(item for place, item in enumerate(shown) if place != choice), shown[choice])
        if self.name == "triplet":
            anchor, *sides = shown
            return anchor, sides[choice], sides[1 - choice]
        pairs = shown[:2], shown[2:]
        return (*pairs[choice], *pairs[1 - choice])

    def implied(self, shown: Shown, choice: int) -> list[Shown]:
        """Comparisons (i, j, l, k), d(i, j) < d(l, k), that an answer says; the odd one out says two."""
        line = self.line(shown, choice)
        if self.name == "odd-one-out":
            a, b, odd = line
            return [(a, b, a, odd), (b, a, b, odd)]
        if self.name == "triplet":
            return [(line[0], line[1], line[0], line[2])]
        return [line]

    def key(self, shown: Shown) -> tuple[int, ...]:
        """Equal for the same question, whichever side its items are on."""
        if self.name == "odd-one-out":
            return tuple(sorted(shown))
        if self.name == "triplet":
            return shown[0], *sorted(shown[1:])
        first, second = sorted([tuple(sorted(shown[:2])), tuple(sorted(shown[2:]))])
        return *first, *second

    def in_words(self, said: Shown, names: Sequence[str]) -> str:
        """An answer as a person reads it: the odd one, the nearer of two, or the pair that is more alike."""
        chosen = {"odd-one-out": said[:1], "triplet": said[1:2]}.get(self.name, said[:2])
        return " and ".join(names[item] for item in chosen)

    def random(self, n: int, rng: np.random.Generator) -> Shown:
        """A question of any of n items."""
        if self.name == "pairs" and n < 4:  # two pairs of three items share one
            i, j, k = rng.permutation(n)[:3].tolist()
            return i, j, i, k
        return tuple(rng.choice(n, self.n_items, replace=False).tolist())

    def shuffled(self, shown: Shown, rng: np.random.Generator) -> Shown:
        """The same question with its sides in a random order."""
        if self.name == "odd-one-out":
            return tuple(np.asarray(shown)[rng.permutation(3)].tolist())
        if rng.random() < 0.5:
            return shown
        return (shown[0], shown[2], shown[1]) if self.name == "triplet" else (*shown[2:], *shown[:2])


FORMS = {
    form.name: form
    for form in (
        Form("triplet", "Which of these two is more like this one?", 3, 2, ("anchor", "near", "far")),
        Form("odd-one-out", "Which of these three is least like the others?", 3, 3, ("one", "other", "odd")),
        Form("pairs", "Which two are more alike?", 4, 2, ("near_1", "near_2", "far_1", "far_2")),
    )
}


@dataclass
class Question:
    """One question to one rater, and its answer once there is one (None; a choice; or -1 for "can't say")."""

    number: int
    rater: str
    reason: str  # random, active, repeat, catch
    shown: Shown
    choice: int | None = None
    time: float = 0.0
    seconds: float = 0.0
    of: int | None = None  # the question that a repeat repeats

    @property
    def teaches(self) -> bool:
        """Whether the model learns from its answer; of the others it is judged by those drawn at random."""
        return self.reason in ("active", "start") and self.choice is not None and self.choice >= 0


def answers_of(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Comparisons (m, 4) uint32, also of none."""
    return np.asarray(rows, np.uint32).reshape(-1, 4)
