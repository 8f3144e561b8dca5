"""The texts of the raters' page: five languages of equal keys, and a file that changes some of them."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from nearkin.web.ask import Plan, read_study
from nearkin.web.ask.plan import LANGUAGES, shipped
from nearkin.web.ask.questions import FORMS
from tests.covering import each


def test_all_languages_have_the_same_keys_and_placeholders() -> None:
    found = {path.name.removesuffix(".toml") for path in files("nearkin.web").joinpath("texts").iterdir()}
    assert found == set(LANGUAGES)
    english = shipped("en")
    assert set(FORMS) <= english.keys()
    for language in LANGUAGES:
        words = shipped(language)
        assert words["lang"] == language
        assert list(words) == list(english)
        assert all(words.values())
        for name, text in words.items():
            assert sorted(re.findall(r"{\w+}", text)) == sorted(re.findall(r"{\w+}", english[name])), (language, name)
    ours = [tuple(shipped(language).values()) for language in LANGUAGES]
    assert all(len(set(texts)) == len(LANGUAGES) for texts in zip(*ours, strict=True))


def test_the_page_asks_for_no_text_that_is_not_there() -> None:
    static = files("nearkin.web").joinpath("static")
    script, page = (static.joinpath(name).read_text(encoding="utf-8") for name in ("ask.js", "ask.html"))
    used = {*re.findall(r'say\("(\w+)"', script), *re.findall(r'data-text="(\w+)"', page)}
    assert len(used) > 12
    assert used <= shipped("en").keys()


def test_people_read_what_is_asked_how_long_and_what_is_stored_before_the_first_question() -> None:
    """Introduction and consent were empty: a survey began with its first question unless its author wrote them."""
    for words in map(shipped, LANGUAGES):
        assert {"{question}", "{skip}", "{length}"} == set(re.findall(r"{\w+}", words["instructions"]))
        assert {"{goal}", "{minutes}"} == set(re.findall(r"{\w+}", words["length_goal"]))
    consent = shipped("en")["consent"]
    assert all(part in consent for part in ("stores your choices", "voluntary", "stop at any time"))


def test_a_file_changes_some_texts_and_its_language_gives_the_others(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'lang = "de"\nconsent = "Ich stimme zu, dass …"\n[[fields]]\nname = "age"\nnumber = true\n'
        "[rules]\nbreak_every = 20\nactive = false\nrandom_share = 0.3\n",
        encoding="utf-8",
    )
    plan = read_study(str(path), goal=7)
    assert (plan.goal, plan.break_every, plan.active, plan.random_share) == (7, 20, False, 0.3)
    assert plan.words == shipped("de") | {"consent": "Ich stimme zu, dass …"}
    assert plan.fields == [{"name": "age", "number": True}]
    own = "\n".join(f'{name} = "x"' for name in shipped("en"))
    path.write_text(own, encoding="utf-8")  # another language: all of its texts
    assert set(read_study(str(path)).words.values()) == {"x"}


@each(
    ("text", "said"),
    [
        ('instrctions = "x"', "has instrctions = 'x'; it may have texts called lang, title"),
        ("undo = 3", "has undo = 3; it may have texts called"),
        ('lang = "nl"', "is in 'nl', of which nothing is shipped; it lacks address"),
        ("undo = ", "is no TOML in UTF-8"),
        ("[[fields]]\nlabel = 'age'", "each has a name"),
        ("[[fields]]\nname = 'age'\nkind = 'x'", "each has a name"),
        ("fields = 3", "each has a name"),
        ("rules = 3", "has wrong [rules]; it may have practice"),
        ("[rules]\nseed = 3", "has wrong [rules]"),
        ("fields = [3]", "each has a name"),
    ],
)
def test_a_file_that_cannot_be_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(said)):
        read_study(str(path))


def test_bytes_that_are_no_text_and_a_missing_file_are_named(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(b'undo = "\xff"')
    with pytest.raises(ValueError, match="is no TOML in UTF-8"):
        read_study(str(path))
    with pytest.raises(FileNotFoundError, match="or one of de, en, es, fr, zh"):
        read_study("nl")


def test_a_completion_code_needs_a_goal() -> None:
    with pytest.raises(ValueError, match="goal is None; give goal too"):
        Plan(finish="C0DE")
