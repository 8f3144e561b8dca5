"""Whole jobs, a module a command: files in, saved folders and reports out. Each module is loaded on first use."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.pipeline import change as change
    from nearkin.pipeline import compress as compress
    from nearkin.pipeline import demo as demo
    from nearkin.pipeline import embed_comparisons as embed_comparisons
    from nearkin.pipeline import encode as encode
    from nearkin.pipeline import evaluate as evaluate
    from nearkin.pipeline import ids as ids
    from nearkin.pipeline import inputs as inputs
    from nearkin.pipeline import methods as methods
    from nearkin.pipeline import outputs as outputs
    from nearkin.pipeline import pages as pages
    from nearkin.pipeline import pairs as pairs
    from nearkin.pipeline import recommend as recommend
    from nearkin.pipeline import rotate as rotate
    from nearkin.pipeline import run as run
    from nearkin.pipeline import sweep as sweep

lazily(__name__, __file__)
