"""Pages for people: `ask` collects comparisons, `explore` shows an index. Needs pip install 'nearkin[web]'."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.web import ask as ask
    from nearkin.web import explore as explore


def load(page: str) -> ModuleType:
    """The package of a page ("ask", "explore"); ImportError with what to install."""
    try:
        return import_module(f"nearkin.web.{page}")
    except ImportError as error:
        raise ImportError(f"pages need the extra web ({error}): pip install 'nearkin[web]'") from error


lazily(__name__, __file__, "load")
