"""One person who answers: what is open, what was answered, and how consistent the answers are."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from nearkin.web.ask.questions import Question

_REPEAT_AFTER = 10  # questions between a question and its repetition


@dataclass
class Rater:
    """A rater's address and name, the open question, the answered ones in order, and the keys of all that was asked."""

    key: str
    name: str
    open: int | None = None
    answered: list[int] = field(default_factory=list)
    _seen: set[tuple[int, ...]] = field(default_factory=set)

    def asked(self, number: int, key: tuple[int, ...]) -> None:
        self.open = number
        self._seen.add(key)

    def closed(self, number: int) -> None:
        self.answered.append(number)
        self.open = None if self.open == number else self.open

    def reopened(self, number: int) -> None:
        """After an undo; a question that waited is dropped, and asked again some other time."""
        self.answered.remove(number)
        self.open = number

    def has_seen(self, key: tuple[int, ...]) -> bool:
        return key in self._seen

    def to_repeat(self, questions: Sequence[Question]) -> int | None:
        """The oldest answered question that was not repeated yet, none of the last ten; None if there is none."""
        repeated = {questions[number].of for number in self.answered}
        for number in self.answered[:-_REPEAT_AFTER]:
            question = questions[number]
            if number not in repeated and question.of is None and question.choice != -1:
                return number
        return None
