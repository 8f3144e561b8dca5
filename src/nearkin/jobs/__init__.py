"""Whole jobs: a verb is one function in one file; files in, saved folders and records out. Loaded on first use."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.jobs.add import add as add
    from nearkin.jobs.bridge import bridge as bridge
    from nearkin.jobs.check import check as check
    from nearkin.jobs.compress import compress as compress
    from nearkin.jobs.demo import demo as demo
    from nearkin.jobs.embed import embed as embed
    from nearkin.jobs.evaluate import evaluate as evaluate
    from nearkin.jobs.export import export as export
    from nearkin.jobs.ids import ids as ids
    from nearkin.jobs.recommend import recommend as recommend
    from nearkin.jobs.remove import remove as remove
    from nearkin.jobs.report import report as report
    from nearkin.jobs.rotate import rotate as rotate
    from nearkin.jobs.run import watched as watched
    from nearkin.jobs.search import search as search
    from nearkin.jobs.similar import similar as similar
    from nearkin.jobs.sweep import sweep as sweep
    from nearkin.jobs.train import train as train
    from nearkin.jobs.update import update as update
    from nearkin.jobs.watch import watch as watch


class _Jobs(ModuleType):
    """A package of functions that have the names of their modules: an import of a module does not hide its function."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in self.__all__):
            super().__setattr__(name, value)


lazily(__name__, __file__)
sys.modules[__name__].__class__ = _Jobs
