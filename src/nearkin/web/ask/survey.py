"""A survey: who has been asked what, what they said, and what to ask next. Every change is in the journal first."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nearkin._check import check_choice, check_integer, check_real
from nearkin._types import Fields, Record
from nearkin.web.ask.items import Items
from nearkin.web.ask.journal import Journal
from nearkin.web.ask.model import Fitted, Job, Learner
from nearkin.web.ask.questions import FORMS, Form, Question, Shown, answers_of
from nearkin.web.ask.raters import Rater
from nearkin.web.ask.table import AnswerTable
from nearkin.web.serving import new_token

_SHARED = 0.25  # of the random questions: those that somebody else was asked too
_RECENT = 1000  # questions among which one to share is looked for
_KEPT_QUESTIONS = 400  # that the model chooses at once: as many as may be answered until its next fit


def journal_path(out: Path) -> Path:
    """The journal of a table of answers."""
    return out.with_name(out.name + ".journal")


@dataclass(frozen=True)
class Plan:
    """How questions are chosen.

    form: "triplet", "odd-one-out" or "pairs". random_share: questions drawn at random and kept out of the model, so
    that its error is measured honestly. repeat_share: questions that a rater has answered before, for consistency.
    catch: (c, 3) numbers of items (anchor, near, far) whose answer is known, and catch_share how often they are asked.
    active: whether the model chooses the others; without it all are random.
    """

    form: str = "triplet"
    random_share: float = 0.2
    repeat_share: float = 0.05
    catch: tuple[tuple[int, int, int], ...] = ()
    catch_share: float = 0.03
    active: bool = True
    n_components: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self.form, "form", FORMS)
        for name in ("random_share", "repeat_share", "catch_share"):
            check_real(getattr(self, name), name, low=0, high=1)
        if self.random_share + self.repeat_share + self.catch_share > 1:
            raise ValueError("random_share, repeat_share and catch_share add up to more than 1")
        if self.catch and self.form != "triplet":
            raise ValueError(f"catch questions are triplets, and the form is {self.form!r}; leave them out")
        check_integer(self.n_components, "n_components", low=1)


@dataclass
class Survey:
    """Questions and answers about `items`, kept in `journal`; safe for several threads.

    ValueError if the journal belongs to other items or another form, is damaged, or is in use by another process.
    FileNotFoundError if `out` is there and its journal is not.
    """

    items: Items
    plan: Plan
    out: Path
    raters: dict[str, Rater] = field(default_factory=dict)  # by key, the secret of a rater's address
    questions: list[Question] = field(default_factory=list)
    fitted: Fitted | None = None
    curve: list[tuple[int, float]] = field(default_factory=list)  # answers learned from, error on those held out
    tokens: tuple[str, str] = (
        "",
        "",
    )  # of the raters' link and of the experimenter's; kept in the journal

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._rng = np.random.default_rng(self.plan.seed)
        self._learner, self._pool, self._n_learnable = Learner(), deque[Shown](), 0
        self._number_of = {name: number for number, name in enumerate(self.items.ids)}
        self.form: Form = FORMS[self.plan.form]
        self.table, self._table_is_whole = AnswerTable(self.out, self.items, self.form), False
        path = journal_path(self.out)
        if self.out.exists() and not (path.exists() and path.stat().st_size):
            raise FileNotFoundError(
                f"{path} is missing or empty, and {self.out} would be replaced; put the journal back, or give another "
                "--out"
            )
        self.journal = Journal(path)
        try:
            self._replay()
            if not self.tokens[0]:
                self._note({"event": "links", "raters": new_token(), "results": new_token()})
            self.table.rewrite(self.answered())
        except BaseException:
            self.journal.close()
            raise
        self._table_is_whole = True

    # ---- raters ----------------------------------------------------------------------------------------------------

    def join(self, name: str = "") -> Rater:
        """A new rater under a name (or an anonymous number), or the one of that name."""
        name = " ".join(name.split())[:60]
        with self._lock:
            known = next((rater for rater in self.raters.values() if rater.name == name), None) if name else None
            if known is not None:
                return known
            rater = Rater(new_token(), name or f"rater {len(self.raters) + 1}")
            self._note({"event": "join", "key": rater.key, "name": rater.name})
            return rater

    def rater(self, key: str) -> Rater:
        """The rater of an address; ValueError for an unknown one."""
        if key not in self.raters:
            raise ValueError("this link is not known here; open the survey's own link again")
        return self.raters[key]

    @property
    def failure(self) -> str | None:
        """Why the model's last fit failed; None if it did not."""
        return self._learner.failure

    # ---- asking ----------------------------------------------------------------------------------------------------

    def ask(self, key: str) -> Question:
        """The open question of a rater: the one that waits for an answer, or a new one."""
        with self._lock:
            rater = self.rater(key)
            if rater.open is not None:
                return self.questions[rater.open]
            self._look_at_model()
            reason, shown, of = self._choose(rater)
            event = {
                "event": "asked", "question": len(self.questions), "rater": key, "reason": reason,
                "shown": [self.items.ids[item] for item in self.form.shuffled(shown, self._rng)], "of": of,
            }  # fmt: skip
            self._note(event, durable=False)  # a question that a power cut takes away is asked again
            return self.questions[-1]

    def answer(self, key: str, number: int, choice: int, seconds: float = 0.0) -> None:
        """Keep a rater's answer, on disk when this returns; the same answer sent twice is one.

        `choice` counts the page's choices from 0; -1 is "can't say". ValueError for a question of another rater, one
        that was answered otherwise, or a choice that there is not.
        """
        with self._lock:
            question = self._of(key, number)
            if not isinstance(choice, int) or not -1 <= choice < self.form.n_choices:
                raise ValueError(f"choice is {choice!r:.20}; it must be -1 to {self.form.n_choices - 1}")
            if not isinstance(seconds, int | float) or seconds != seconds:
                raise ValueError("seconds must be a number")
            if question.choice == choice:
                return
            if question.choice is not None:
                raise ValueError("this question was answered already; undo that first")
            spent = float(min(max(seconds, 0), 86_400))
            self._note({"event": "answer", "question": number, "choice": choice, "time": time.time(), "seconds": spent})
            self._tabulate(lambda: self.table.append(question, self.raters[key].name))
            self._offer()

    def undo(self, key: str) -> Question | None:
        """Take the rater's last answer back and open its question again; None if there is none."""
        with self._lock:
            rater = self.rater(key)
            if not rater.answered:
                return None
            number = rater.answered[-1]
            self._note({"event": "undo", "question": number})
            self._tabulate(lambda: self.table.rewrite(self.answered()))
            return self.questions[number]

    def answered(self) -> list[tuple[Question, str]]:
        """All answers in force, those of "can't say" too, with the rater's name."""
        return [(q, self.raters[q.rater].name) for q in self.questions if q.choice is not None]

    def said(self) -> list[Question]:
        """The answered questions whose answer orders something: all but "can't say"."""
        return [q for q in self.questions if q.choice is not None and q.choice >= 0]

    def close(self) -> None:
        """End the model's process and close the files; OSError where the table cannot be completed."""
        self._learner.close()
        try:
            if not self._table_is_whole:
                self.table.rewrite(self.answered())
        finally:
            self.journal.close()

    # ---- inner parts -----------------------------------------------------------------------------------------------

    def _choose(self, rater: Rater) -> tuple[str, Shown, int | None]:
        """Reason and items of the next question, and the one that it repeats."""
        draw, plan = float(self._rng.random()), self.plan
        if draw < plan.repeat_share and (old := rater.to_repeat(self.questions)) is not None:
            return "repeat", self.questions[old].shown, old
        draw -= plan.repeat_share
        if 0 <= draw < plan.catch_share and plan.catch:
            return "catch", plan.catch[int(self._rng.integers(len(plan.catch)))], None
        draw -= plan.catch_share
        if draw >= plan.random_share and plan.active and self.form.name != "pairs":
            while self._pool:
                shown = self._pool.popleft()
                if not rater.has_seen(self.form.key(shown)):
                    return "active", shown, None
        if draw >= plan.random_share:
            return "start", self._drawn(rater), None
        shared = self._rng.random() < _SHARED and self._asked_of_others(rater)
        return "random", shared or self._drawn(rater), None

    def _drawn(self, rater: Rater) -> Shown:
        """A question at random, a new one to the rater if 20 draws find one."""
        for _ in range(20):
            shown = self.form.random(len(self.items), self._rng)
            if not rater.has_seen(self.form.key(shown)):
                break
        return shown

    def _asked_of_others(self, rater: Rater) -> Shown | None:
        """A random question that somebody else was asked lately and this rater was not, so that the two compare."""
        recent = (q for q in reversed(self.questions[-_RECENT:]) if q.reason == "random" and q.rater != rater.key)
        return next((q.shown for q in recent if not rater.has_seen(self.form.key(q.shown))), None)

    def _look_at_model(self) -> None:
        found = self._learner.take()
        if found is not None:
            self.fitted = found
            self._pool = deque(found.questions)
            if found.error is not None:
                self.curve.append((found.n_answers, found.error))

    def _offer(self) -> None:
        """Let the model learn again if there are enough new answers."""
        self._learner.offer(self._job, self._n_learnable)

    def _job(self) -> Job:
        judging = [q for q in self.said() if q.reason == "random"]
        learned = [q for q in self.questions if q.teaches]
        number_of = {key: number for number, key in enumerate(self.raters)}
        return Job(
            len(self.items), self._comparisons(learned), self._comparisons(judging), self.plan.n_components,
            _KEPT_QUESTIONS, self.plan.seed, 2 if self.form.name == "odd-one-out" else 1,
            np.array([number_of[q.rater] for q in learned], np.int64),
        )  # fmt: skip

    def _comparisons(self, questions: list[Question]) -> np.ndarray:
        return answers_of([row for q in questions for row in self.form.implied(q.shown, q.choice or 0)])

    def _of(self, key: str, number: int) -> Question:
        self.rater(key)
        if not isinstance(number, int) or not 0 <= number < len(self.questions) or self.questions[number].rater != key:
            raise ValueError("this question was asked of somebody else; reload the page")
        return self.questions[number]

    def _note(self, event: Record, *, durable: bool = True) -> None:
        self.journal.append(event, durable=durable)
        self._apply(event)

    def _tabulate(self, write: Callable[[], None]) -> None:
        """Bring the table up to date. Where that fails, the journal has the answer, and the next one tries again."""
        try:
            write() if self._table_is_whole else self.table.rewrite(self.answered())
            self._table_is_whole = True
        except OSError:
            self._table_is_whole = False

    def _replay(self) -> None:
        path, events = self.journal.path, self.journal.events
        head = {"event": "survey", "version": 1, "form": self.form.name, "items": list(self.items.ids)}
        if not events:
            self.journal.append(head)
            return
        if events[0] != head:
            raise ValueError(f"{path} belongs to other items or another form of question; give another --out")
        for line, event in enumerate(events[1:], start=2):
            try:
                self._check(event)
                self._apply(event)
            except (KeyError, TypeError, ValueError) as error:
                why = f"{error} is missing or unknown" if isinstance(error, KeyError) else error
                raise ValueError(
                    f"{path} is damaged at line {line} ({why}); move the file away, or correct that line"
                ) from error
        events.clear()

    def _check(self, event: Fields) -> None:
        """ValueError for an event of the journal that cannot follow those before it."""
        kind, number, n = event["event"], event.get("question"), len(self.questions)
        if kind in ("links", "join"):
            return
        if kind == "asked":
            if number != n:
                raise ValueError(f"question is {number!r}, the next one is {n}")
            if event["rater"] not in self.raters or len(event["shown"]) != self.form.n_items:
                raise ValueError(f"question {n} is of an unknown rater, or does not show {self.form.n_items} items")
            return
        if kind not in ("answer", "undo"):
            raise ValueError(f"event is {kind!r}")
        if not isinstance(number, int) or not 0 <= number < n:
            raise ValueError(f"question is {number!r}, and {n} have been asked")
        answered = self.questions[number].choice is not None
        if answered == (kind == "answer"):
            raise ValueError(f"question {number} {'is answered twice' if answered else 'has no answer to undo'}")
        if kind == "answer" and event["choice"] not in range(-1, self.form.n_choices):
            raise ValueError(f"choice is {event['choice']!r}")

    def _apply(self, event: Fields) -> None:
        """Change the state as an event says: while it happens, and again when a survey is taken up."""
        kind = event["event"]
        if kind == "links":
            self.tokens = event["raters"], event["results"]
            return
        if kind == "join":
            self.raters[event["key"]] = Rater(event["key"], event["name"])
            return
        if kind == "asked":
            shown = tuple(self._number_of[name] for name in event["shown"])
            self.questions.append(Question(event["question"], event["rater"], event["reason"], shown, of=event["of"]))
            self.raters[event["rater"]].asked(event["question"], self.form.key(shown))
            return
        question = self.questions[event["question"]]
        if kind == "answer":
            question.choice, question.time = event["choice"], float(event["time"])
            question.seconds = float(event["seconds"])
            self.raters[question.rater].closed(question.number)
            self._n_learnable += question.teaches
        else:
            self._n_learnable -= question.teaches
            question.choice = None
            self.raters[question.rater].reopened(question.number)
