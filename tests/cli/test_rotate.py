"""`nearkin rotate`: what it prints is words."""

import pytest

from nearkin.cli.export import in_words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", "no rotation"),
        ("learned from none", "learned from no rotation"),
        ("pca", "principal axes"),
    ],
)
def test_the_name_of_a_rotation_is_said_in_words(name: str, words: str) -> None:
    assert in_words(name) == words
