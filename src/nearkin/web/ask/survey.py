"""A survey: raters, questions, answers, and the model that chooses questions. The journal has each change first."""

import csv
import io
import math
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from nearkin import Comparisons
from nearkin._fields import MISSING, Fields, Record, counted
from nearkin._storage import replacing
from nearkin.web.ask.journal import Journal, journal_path
from nearkin.web.ask.model import Fitted, Learner
from nearkin.web.ask.plan import Plan
from nearkin.web.ask.questions import FORMS, Form, Items, Question, Shown
from nearkin.web.serving import new_token

_SHARED = 0.25  # share of the random questions that another rater was asked too
_RECENT = 1000  # questions among which one to share is looked for
_REPEAT_AFTER = 10  # questions between a question and its repetition
_ABOUT = ("rater", "time", "seconds", "reason", "question", "shown", "parameters", "hidden")  # columns after the items
_GOAL = 50  # questions among which `Plan.n_catch` are spread where a rater has no goal
_PARAMETERS, _LETTERS = 20, 200  # of an address, and of each of its values


def cleaned(text: str) -> str:
    """Text that a person typed, in one line: without control characters, which no table of answers may hold."""
    return " ".join("".join(c if c.isprintable() or c in _JOINERS else " " for c in text).split())


_JOINERS = "\u200c\u200d"  # between letters of Persian, and in emoji


def spreadsheet_cell(text: str) -> str:
    """The text, of people, for a CSV file: one that a spreadsheet would run as a formula, or that means a missing cell,
    gets a \' in front. Names of items are ids, which stay unchanged."""
    text = cleaned(text)
    is_formula = text[:1] in ("=", "+", "-", "@") and not text[1:].isdecimal()
    return f"'{text}" if is_formula or (text and text in MISSING) else text


def as_csv(rows: Iterable[Iterable[object]]) -> str:
    """Lines of a CSV file."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


@dataclass
class Rater:
    """A person who answers: the open question, the answered ones in order, and the keys of all that was asked.

    `parameters` are those of the address by which a platform of paid raters sent them, such as PROLIFIC_PID; `fields`
    is what they filled in when they began. An invited person has not `begun` before. `consent` and `consent_time` (ISO
    8601, UTC): the text that they agreed to, and when.
    """

    key: str  # the secret of the rater's address
    name: str
    parameters: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    begun: bool = False
    consent: str = ""
    consent_time: str = ""
    planned: tuple[str, Shown, int | None] | None = None  # what comes after the open question, for the page to load
    open: int | None = None
    answered: list[int] = field(default_factory=list)
    asked: set[Shown] = field(default_factory=set)

    def to_repeat(self, questions: Sequence[Question]) -> Question | None:
        """The oldest answered question that was not repeated yet, none of the last ten; None if there is none."""
        repeated = {questions[number].of for number in self.answered}
        old = (questions[number] for number in self.answered[:-_REPEAT_AFTER] if number not in repeated)
        return next((question for question in old if question.of is None and question.choice != -1), None)


class Survey:
    """Questions and answers about `items`, kept in the table `out` and its journal; safe for several threads.

    ValueError if the journal belongs to other items or another form, is damaged, or is in use by another process.
    FileNotFoundError if `out` is there and its journal is not.
    """

    def __init__(self, items: Items, plan: Plan, out: Path) -> None:
        self.items: Items = items
        self.plan: Plan = plan
        self.out: Path = out
        self.raters: dict[str, Rater] = {}  # by key
        self.questions: list[Question] = []
        self.fitted: Fitted | None = None
        self.curve: list[tuple[int, float, int]] = []  # comparisons trained on, error, held out ones
        self.tokens: tuple[str, str] = ("", "")  # of the raters' link and of the experimenter's; in the journal
        self.learner: Learner = Learner()
        self.form: Form = FORMS[plan.form]
        self._lock, self._rng = threading.RLock(), np.random.default_rng(plan.seed)
        self._chosen = deque[Shown]()
        self._tabled: set[int] | None = None  # numbers of the answers in the table, None if not known
        self._number_of = {name: number for number, name in enumerate(items.ids)}
        path = journal_path(out)
        if out.exists() and not (path.exists() and path.stat().st_size):
            raise FileNotFoundError(
                f"{path} is missing or empty, and {out} would be replaced; put the journal back, or give another name"
            )
        self.journal: Journal = Journal(path)
        try:
            head = {"event": "survey", "version": 1, "form": plan.form, "items": list(items.ids)}
            self.journal.replay(head, self._apply)
            if not self.tokens[0]:
                self._note({"event": "links", "raters": new_token(), "results": new_token()})
            self._tabulate()
        except BaseException:
            self.journal.close()
            raise

    def join(
        self,
        name: str = "",
        parameters: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        *,
        key: str = "",
        begun: bool = True,
        consent: str = "",
    ) -> Rater:
        """A rater who begins: that of `key`, or a new one, who agreed to the text of `consent`. A name that is taken
        gets a number ("maria 2"), so that nobody gets another person's key. ValueError for too long parameters."""
        texts = dict[str, dict[str, str]]()
        for what, typed in (("parameters", parameters), ("fields", fields)):
            texts[what] = {cleaned(column): cleaned(text) for column, text in (typed or {}).items()}
            if len(texts[what]) > _PARAMETERS or any(
                len(text) > _LETTERS for pair in texts[what].items() for text in pair
            ):
                raise ValueError(f"{what} are more than {_PARAMETERS}, or one is of over {_LETTERS} letters")
        with self._lock:
            name = self.rater(key).name if key else self._free(cleaned(name)[:60])
            key = key or new_token()
            agreed = {"consent": consent, "consent_time": _iso(time.time()) if consent else ""}
            self._note({"event": "join", "key": key, "name": name, "begun": begun, **texts, **agreed})
            return self.raters[key]

    def _free(self, name: str) -> str:
        """An unused name: `name`, or with a number; "rater" and a number for none."""
        taken = {"", *(rater.name for rater in self.raters.values())}
        numbered = (f"{name or 'rater'} {n}" for n in count(2 if name else 1))
        return next(free for free in chain([name], numbered) if free not in taken)

    def invited(self, name: str) -> Rater:
        """The rater of a name that the experimenter gave, a new one if there is none."""
        known = (rater for rater in self.raters.values() if rater.name == cleaned(name)[:60])
        return next(known, None) or self.join(name, begun=False)

    def rater(self, key: str) -> Rater:
        """The rater of an address; ValueError for an unknown one."""
        if key not in self.raters:
            raise ValueError("this link is not known here; open the survey's own link again")
        return self.raters[key]

    def learn(self) -> None:
        """Take up the fit that has finished, and begin the next one if there are enough new answers."""
        with self._lock:
            if (fitted := self.learner.take()) is not None:
                self.fitted, self._chosen = fitted, deque(fitted.questions)
                self.curve += [] if fitted.error is None else [(fitted.n_answers, fitted.error, fitted.held_out)]
            self.learner.offer(self._job, sum(question.is_learned for question in self.questions))

    def ask(self, key: str) -> Question:
        """The open question of a rater: the one that waits for an answer, or a new one."""
        with self._lock:
            rater = self.rater(key)
            if rater.open is not None:
                return self.questions[rater.open]
            self.learn()
            reason, shown, of = rater.planned or self._choose(rater)
            event = {
                "event": "asked", "question": len(self.questions), "rater": key, "reason": reason,
                "shown": [self.items.ids[item] for item in self.form.shuffled(shown, self._rng)], "of": of,
            }  # fmt: skip
            self._note(event, durable=False)  # a question lost in a power cut is asked again
            rater.planned = self._choose(rater)  # the page loads its pictures while this one is answered
            return self.questions[-1]

    def answer(self, key: str, number: int, choice: int, seconds: float = 0.0, hidden: float = 0.0) -> None:
        """Keep a rater's answer, on disk when this returns; the same answer sent twice is one.

        `choice` counts the page's choices from 0; -1 is "can't say". ValueError for a question of another rater, one
        that has another answer, an unknown choice, or one in less than `plan.min_seconds`.
        """
        with self._lock:
            known = isinstance(number, int) and 0 <= number < len(self.questions)
            if not known or self.questions[number].rater != key:
                raise ValueError("this question is not one of yours; reload the page")
            if any(not isinstance(time, int | float) or time != time for time in (seconds, hidden)):
                raise ValueError("seconds must be a number")
            if choice is not None and self.questions[number].choice == choice:
                return
            spent, unseen = (float(min(max(value, 0), 86_400)) for value in (seconds, hidden))
            event = {"event": "answer", "question": number, "choice": choice, "time": time.time(), "seconds": spent}
            self._question_of(event)
            if choice >= 0 and seconds < self.plan.min_seconds:
                raise ValueError(f"seconds is {seconds:.2f}; an answer needs at least {self.plan.min_seconds:g}")
            self._note(event | {"hidden": unseen})
            self.learn()

    def undo(self, key: str) -> Question | None:
        """Open the rater's last answered question again, without its answer; None if there is none."""
        with self._lock:
            rater = self.rater(key)
            if not rater.answered:
                return None
            number = rater.answered[-1]
            self._note({"event": "undo", "question": number})
            return self.questions[number]

    def answers_of(self, rater: Rater) -> list[Question]:
        """A rater's answered questions, without those of practice."""
        return [self.questions[number] for number in rater.answered if self.questions[number].reason != "practice"]

    def left_out(self, rater: Rater) -> bool:
        """Whether a rater's answers do not count: more than `plan.max_wrong` catch questions were answered wrong."""
        wrong = [not self.is_right(question) for question in self.answers_of(rater) if question.reason == "catch"]
        return self.plan.max_wrong is not None and sum(wrong) > self.plan.max_wrong

    def is_right(self, question: Question) -> bool:
        """Whether the answer to a catch question is not the wrong one; "can't say" is not."""
        choice = question.choice or 0
        return choice < 0 or self.form.line(question.shown, choice) in self.plan.catch

    def is_full(self) -> bool:
        """Whether the plan's number of raters or answers is reached."""
        given, most_raters, most_answers = self.answered(), self.plan.max_raters, self.plan.max_answers
        raters = {question.rater for question in given}
        return len(raters) >= (most_raters or math.inf) or len(given) >= (most_answers or math.inf)

    def answered(self, counted: bool = True) -> list[Question]:
        """The answers in force that count, those of "can't say" too; or those that do not: of practice and of raters
        left out."""
        out = {key for key, rater in list(self.raters.items()) if self.left_out(rater)}
        given = [q for q in self.questions if q.choice is not None]
        return [q for q in given if (q.reason != "practice" and q.rater not in out) == counted]

    def comparing(self) -> list[Question]:
        """The counted questions whose answer orders something: all but "can't say"."""
        return [q for q in self.answered() if (q.choice or 0) >= 0]

    def close(self) -> None:
        """End the model's process and close the files; OSError where the table cannot be completed."""
        self.learner.close()
        try:
            self._tabulate()
        finally:
            self.journal.close()

    def _choose(self, rater: Rater) -> tuple[str, Shown, int | None]:
        """Reason and items of the next question, and the one that it repeats."""
        # one draw, from which each share takes its part: together they are at most 1
        draw, plan = float(self._rng.random()), self.plan
        number = len(rater.answered) + (rater.open is not None) - plan.practice
        if number < 0:
            return "practice", self._drawn(rater), None
        if plan.catch and (known := self._catch(rater, number)) is not None:
            return "catch", known, None
        if draw < plan.repeat_share and (old := rater.to_repeat(self.questions)) is not None:
            return "repeat", old.shown, old.number
        draw -= plan.repeat_share
        if draw < plan.random_share:
            shared = None
            if self._rng.random() < _SHARED:  # one that another rater was asked, so that the two compare
                recent = (q.shown for q in reversed(self.questions[-_RECENT:]) if q.reason == "random")
                shared = next((some for some in recent if self.form.key(some) not in rater.asked), None)
            return "random", shared or self._drawn(rater, kept=True), None
        while self._chosen and plan.active and self.form.name != "pairs":
            shown = self._chosen.popleft()
            if self.form.key(shown) not in rater.asked and not self._is_kept(shown):
                return "active", shown, None
        return "start", self._drawn(rater, kept=False), None

    def _catch(self, rater: Rater, number: int) -> Shown | None:
        """The catch question that a rater's question of that number is, None for another one: `plan.n_catch` of every
        `plan.goal`. A rater's places and order are drawn once, and the same after a restart."""
        catch, goal = self.plan.catch, self.plan.goal or _GOAL
        part, place = divmod(number, goal)
        rng = np.random.default_rng([self.plan.seed, part, *rater.key.encode()])
        places, order = rng.permutation(goal)[: self.plan.n_catch].tolist(), rng.permutation(len(catch))
        return catch[order[places.index(place) % len(catch)]] if place in places else None

    def _drawn(self, rater: Rater, kept: bool | None = None) -> Shown:
        """A question at random, if 20 draws find one a new one to the rater, of those that are `kept` or not."""
        for _ in range(20):
            shown = self.form.random(len(self.items), self._rng)
            if self.form.key(shown) not in rater.asked and kept in (None, self._is_kept(shown)):
                break
        return shown

    def _is_kept(self, shown: Shown) -> bool:
        """Whether a question is kept out of the model for all raters: the `random_share` of all questions."""
        return np.random.default_rng([*self.form.key(shown), self.plan.seed]).random() < self.plan.random_share

    def _job(self) -> tuple[Comparisons, Comparisons, int]:
        """The arguments of `fit`: training answers and held-out answers."""
        given, number_of = self.comparing(), {key: n for n, key in enumerate(self.raters)}
        learned = [q for q in given if q.is_learned]
        trained = {self.form.key(q.shown) for q in learned}  # few items may have too few questions to keep some
        held_out = [q for q in given if q.reason == "random" and self.form.key(q.shown) not in trained]
        names, per = np.arange(len(self.items)), len(self.form.comparisons)
        rows = self.form.all_comparisons(learned)
        raters = np.repeat([number_of[q.rater] for q in learned], per)
        events = None if per == 1 else np.arange(len(rows)) // per
        answers = Comparisons(rows, names, annotators=raters, events=events)
        return answers, Comparisons(self.form.all_comparisons(held_out), names), self.plan.seed

    def table(self, answers: Iterable[Question]) -> str:
        """A table of answers, one line an answer, as `nearkin embed` reads it. "Can't say" has no line."""
        return as_csv([[*self.form.columns, *_ABOUT], *self._rows(answers)])

    def _rows(self, answers: Iterable[Question]) -> Iterator[list[object]]:
        for question in answers:
            if question.choice is None or question.choice < 0:
                continue
            rater = self.raters[question.rater]
            names = [self.items.ids[item] for item in self.form.line(question.shown, question.choice)]
            shown = " | ".join(self.items.ids[item] for item in question.shown)
            who, shown, parameters = map(spreadsheet_cell, (rater.name, shown, urlencode(rater.parameters)))
            about = [f"{question.seconds:.2f}", question.reason, question.number, shown, parameters]
            yield [*names, who, _iso(question.time), *about, f"{question.hidden:.2f}"]

    def _tabulate(self) -> None:
        """Bring the table to the answers that count: by one more line, else as a whole; OSError where that fails."""
        answers = self.answered()
        numbers = {question.number for question in answers}
        known, self._tabled = self._tabled, None  # unknown if this fails, and then written as a whole next time
        if known is not None and known < numbers and len(numbers) == len(known) + 1:
            self._append(as_csv(self._rows([self.questions[(numbers - known).pop()]])))
        elif numbers != known:
            with replacing(self.out) as fresh:
                fresh.write_text(self.table(answers), encoding="utf-8", newline="")
        self._tabled = numbers

    def _append(self, line: str) -> None:
        """Add a line to the table, on disk when this returns."""
        with self.out.open("a", newline="", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def _note(self, event: Record, *, durable: bool = True) -> None:
        self.journal.append(event, durable=durable)
        self._apply(event)
        if event["event"] in ("answer", "undo"):
            with suppress(OSError):  # the journal has the answer, and the next one brings it into the table
                self._tabulate()

    def _apply(self, event: Fields) -> None:
        """Change the state by an event, new or replayed; KeyError, TypeError or ValueError if it cannot follow."""
        kind = event["event"]
        if kind == "links":
            self.tokens = event["raters"], event["results"]
        elif kind == "join":
            rater = self.raters.setdefault(event["key"], Rater(event["key"], event["name"]))
            rater.parameters |= event["parameters"]
            rater.fields |= event["fields"]
            rater.begun, rater.consent, rater.consent_time = event["begun"], event["consent"], event["consent_time"]
        elif kind == "asked":
            shown, rater = tuple(self._number_of[name] for name in event["shown"]), self.raters[event["rater"]]
            number, n = event["question"], len(self.questions)
            if number != n or len(shown) != len(self.form.columns):
                raise ValueError(f"question is {number!r} of {counted(len(shown), 'item')}, the next one is {n}")
            self.questions.append(Question(n, rater.key, event["reason"], shown, of=event["of"]))
            rater.open = n
            rater.asked.add(self.form.key(shown))
        elif kind == "answer":
            question = self._question_of(event)
            question.time, question.seconds = float(event["time"]), float(event["seconds"])
            question.choice, question.hidden = event["choice"], float(event["hidden"])
            rater = self.raters[question.rater]
            rater.answered.append(question.number)
            rater.open = None if rater.open == question.number else rater.open
        elif kind == "undo":  # a question that waits is dropped, and asked again some other time
            question = self._question_of(event)
            rater = self.raters[question.rater]
            rater.answered.remove(question.number)
            question.choice, rater.open, rater.planned = None, question.number, None
        else:
            raise ValueError(f"event is {kind!r}")

    def _question_of(self, event: Fields) -> Question:
        """The question of an answer, or of one to undo; ValueError if it cannot follow."""
        number, choice = event["question"], event.get("choice")
        if not isinstance(number, int) or not 0 <= number < len(self.questions):
            raise ValueError(f"question is {number!r}, and {len(self.questions)} have been asked")
        question, n_choices = self.questions[number], len(self.form.lines)
        if event["event"] == "undo":
            if question.choice is None:
                raise ValueError(f"question {number} has no answer to undo")
            return question
        if not isinstance(choice, int) or not -1 <= choice < n_choices:
            raise ValueError(f"choice is {choice!r:.20}; it must be -1 to {n_choices - 1}")
        if question.choice is not None:
            raise ValueError(f"question {number} was answered already; undo that first")
        return question
