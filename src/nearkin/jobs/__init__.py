"""Whole jobs, a module a command: files in, saved folders and reports out. Each module is loaded on first use."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.jobs import change as change
    from nearkin.jobs import compress as compress
    from nearkin.jobs import demo as demo
    from nearkin.jobs import embed_comparisons as embed_comparisons
    from nearkin.jobs import encode as encode
    from nearkin.jobs import evaluate as evaluate
    from nearkin.jobs import ids as ids
    from nearkin.jobs import inputs as inputs
    from nearkin.jobs import methods as methods
    from nearkin.jobs import outputs as outputs
    from nearkin.jobs import pages as pages
    from nearkin.jobs import pairs as pairs
    from nearkin.jobs import recommend as recommend
    from nearkin.jobs import rotate as rotate
    from nearkin.jobs import run as run
    from nearkin.jobs import sweep as sweep

lazily(__name__, __file__)
