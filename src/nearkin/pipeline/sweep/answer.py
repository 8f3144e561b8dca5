"""The answers of a sweep in words, each with what to type."""

import shlex
from dataclasses import dataclass
from typing import NamedTuple

from nearkin._words import counted
from nearkin.pipeline.methods import SCALARS
from nearkin.pipeline.sweep.choose import Choice

_FASTER = 1.2  # times the cheapest choice's speed, from which the fastest is worth a line


class Answer(NamedTuple):
    """What is said, and the commands that make it true."""

    said: str
    commands: list[str]


@dataclass(frozen=True)
class Typed:
    """What the commands name beside the code: the file, the queries if they are a file, and the settings."""

    vectors: str
    queries: str | None
    k: int
    metric: str
    random_state: int

    def commands(self, choice: Choice) -> list[str]:
        """What to type to make the index of a choice, and to judge it by the same queries."""
        made = [self.compress(choice)]
        if self.queries is not None:
            how = self._how(choice)
            files = f"{shlex.quote(self.queries)} --base {shlex.quote(self.vectors)}"
            made.append(f"nearkin evaluate idx {files} -k {self.k}{how}")
        return made

    def compress(self, choice: Choice) -> str:
        """What to type to make the index."""
        code = choice.trial.code
        size = "" if code.method in SCALARS else f" --bytes {code.n_bytes}"
        lists = f" --coarse {code.n_lists}" if code.n_lists else ""
        metric = "" if self.metric == "l2" else f" --metric {self.metric}"
        kept = " --keep-vectors" if choice.oversample > 1 else ""
        seed = f" --seed {self.random_state}" if self.random_state else ""
        return (
            f"nearkin compress {shlex.quote(self.vectors)} --method {code.method}{size}{lists}{metric}{kept}{seed} "
            "--out idx"
        )

    @staticmethod
    def _how(choice: Choice) -> str:
        """The options of a search."""
        oversample = f" --oversample {choice.oversample}" if choice.oversample > 1 else ""
        return oversample + (f" --n-probe {choice.trial.n_probe}" if choice.trial.n_probe else "")

    def said(self, which: str, choice: Choice, megabytes: float) -> Answer:
        """A choice in a sentence, with its commands; `megabytes` are those of the kept vectors."""
        trial, o = choice.trial, choice.oversample
        size = f"{counted(trial.n_bytes, 'byte')} a vector" + (f" + {megabytes:,.1f} MB of vectors" if o > 1 else "")
        lists = f" in {trial.code.n_lists:,} lists (8 bytes more a row)" if trial.code.n_lists else ""
        how = self._how(choice)
        return Answer(
            f"{which}: {size}{lists}, {trial.method}{', searched with' if how else ''}{how}; "
            f"recall {trial.mean(o):.4f} (at least {trial.low(o):.4f} with 97.5 % confidence), "
            f"{choice.rate:,.0f} queries a second",
            self.commands(choice),
        )


def worth_saying(cheapest: Choice | None, fastest: Choice | None) -> bool:
    """Whether the fastest choice is another one than the cheapest, and clearly faster."""
    return fastest is not None and (cheapest is None or fastest.rate > _FASTER * cheapest.rate)
