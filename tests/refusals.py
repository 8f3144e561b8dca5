"""Bad calls by the dozen: each must end in its error, and a failure names the one that did not."""

import re
from collections.abc import Callable, Iterable


def each_refused(cases: Iterable[tuple[Callable[..., object], type[Exception], str]], *given: object) -> None:
    """`call(*given)` raises that error, with a text that matches, for all (call, error, match)."""
    for call, error, match in cases:
        text = None
        try:
            call(*given)
        except error as found:
            text = str(found)
        assert text is not None, f"no {error.__name__} {match!r}"
        assert re.search(match, text), f"{text!r} does not match {match!r}"
