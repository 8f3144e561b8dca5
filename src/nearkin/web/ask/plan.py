"""What a study decides: how questions are chosen, whose answers count, and the texts of the raters' page."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from nearkin._check import check_choice, check_integer, check_real
from nearkin._fields import Fields, Record
from nearkin._storage import regular_file
from nearkin.web.ask.questions import FORMS

LANGUAGES = ("de", "en", "es", "fr", "zh")
_FIELD: dict[str, type] = {"name": str, "label": str, "number": bool, "options": list, "required": bool}
_RULES = (  # of `Plan`, in a study's file
    *("practice", "min_seconds", "max_answers", "n_catch", "max_wrong", "random_share", "active", "break_every"),
)
_LEAST = {
    **dict.fromkeys(("max_raters", "max_answers", "n_catch", "goal", "break_every"), 1),
    **dict.fromkeys(("max_wrong", "practice"), 0),
}


def shipped(language: str) -> dict[str, str]:
    """The texts in one of `LANGUAGES`."""
    return tomllib.loads(files("nearkin.web").joinpath("texts", f"{language}.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Plan:
    """The plan of a study.

    form: "triplet", "odd-one-out" or "pairs". random_share: questions drawn at random and kept out of the model, so
    that its error is measured on answers it has not seen. repeat_share: questions that a rater has answered before, for
    consistency. catch: (c, 3) numbers of items (anchor, near, far) whose answer is known; n_catch: how many of them
    each rater is asked, at random places among `goal` questions, the answers of each rater, or 50 without a goal.
    active: whether the model chooses the others; without it all are random. max_raters, max_answers: people
    and answers that are wanted; nobody else may begin then. max_wrong: a rater who answers more catch questions wrong
    is left out. practice: a rater's first questions, which do not count. min_seconds: the least time for an answer.
    break_every: answers between two breaks. finish: a completion code, or an address, shown only after `goal` answers;
    in an address, {name} is replaced by a parameter of the rater. words: texts of the raters' page, by their keys in
    web/texts/en.toml. fields: what raters fill in before they begin.
    """

    form: str = "triplet"
    random_share: float = 0.2
    repeat_share: float = 0.05
    catch: tuple[tuple[int, int, int], ...] = ()
    n_catch: int = 3
    goal: int | None = None
    active: bool = True
    max_raters: int | None = None
    max_answers: int | None = None
    max_wrong: int | None = None
    practice: int = 0
    min_seconds: float = 0.0
    break_every: int | None = None
    finish: str = ""
    seed: int = 0
    words: Mapping[str, str] = field(default_factory=lambda: shipped("en"))
    fields: Sequence[Record] = ()

    def __post_init__(self) -> None:
        check_choice(self.form, "form", FORMS)
        check_real(self.random_share, "random_share", low=0, high=1)
        check_real(self.repeat_share, "repeat_share", low=0, high=1 - self.random_share)
        check_real(self.min_seconds, "min_seconds", low=0, high=60)
        for name, low in _LEAST.items():
            if getattr(self, name) is not None:
                check_integer(getattr(self, name), name, low=low)
        if self.catch and self.form != "triplet":
            raise ValueError(f"catch questions are triplets, and the form is {self.form!r}; leave them out")
        if self.max_wrong is not None and not self.catch:
            raise ValueError(f"max_wrong is {self.max_wrong}, and there are no catch questions; give catch too")
        if self.finish and self.goal is None:
            raise ValueError("finish is given after the rater's last answer, and goal is None; give goal too")

    def finish_of(self, parameters: Mapping[str, str]) -> str:
        """The completion code or address of a rater with these parameters."""
        text = self.finish
        for name, value in parameters.items():
            text = text.replace(f"{{{name}}}", quote(value, safe=""))
        return text


def read_study(source: str = "en", **settings: Any) -> Plan:
    """The plan of a study in a language (de, en, es, fr, zh), or of a TOML file, with the other settings of `Plan`.

    The language `lang` gives the texts that the file lacks; for a language that is not shipped it must have all. Its
    tables [[fields]] are what raters fill in, its table [rules] has some of `_RULES`. ValueError for unknown keys, and
    for what is no text.
    """
    if source in LANGUAGES:
        return Plan(words=shipped(source), **settings)
    try:
        words = tomllib.loads(regular_file(source).read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}; study is a TOML file, or one of {', '.join(LANGUAGES)}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"{source} is no TOML in UTF-8 ({error})") from error
    lang, english = words.setdefault("lang", "en"), shipped("en")
    fields, rules = words.pop("fields", []), words.pop("rules", {})
    if not isinstance(fields, list) or not all(map(_is_field, fields)):
        raise ValueError(f"{source} has wrong [[fields]]; each has a name, and may have {', '.join(_FIELD)}")
    if not isinstance(rules, dict) or not rules.keys() <= {*_RULES}:
        raise ValueError(f"{source} has wrong [rules]; it may have {', '.join(_RULES)}")
    if wrong := [name for name, text in words.items() if name not in english or not isinstance(text, str)]:
        raise ValueError(
            f"{source} has {wrong[0]} = {words[wrong[0]]!r}; it may have texts called {', '.join(english)}, and fields "
            "and rules"
        )
    words = (shipped(lang) if lang in LANGUAGES else {}) | words
    if lacking := english.keys() - words.keys():
        raise ValueError(f"{source} is in {lang!r}, of which nothing is shipped; it lacks {', '.join(sorted(lacking))}")
    return Plan(words=words, fields=fields, **rules, **settings)


def _is_field(one: Fields) -> bool:
    return isinstance(one, dict) and "name" in one and all(isinstance(v, _FIELD.get(k, ())) for k, v in one.items())
