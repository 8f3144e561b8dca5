"""Steps are timed and watched."""

from contextlib import contextmanager

from nearkin.pipeline import Steps


def test_steps_time_themselves_and_tell_who_watches() -> None:
    heard = []

    @contextmanager
    def watch(name: str):
        yield lambda step, record: heard.append((name, step, record["total"]))

    steps = Steps(watch)
    with steps.step("a") as callback:
        callback(1, {"total": 2})
    with steps.step("a"):
        pass
    assert heard == [("a", 1, 2)]
    assert list(steps.seconds) == ["a"]


def test_nobody_needs_to_watch() -> None:
    with Steps().step("a") as callback:
        callback(1, {})
