"""The methods of `nearkin compress`: the codecs by name, and `best`, which compares them."""

from nearkin._check import check_choice
from nearkin.quantization.codecs import ALIASES, CODECS
from nearkin.quantization.codecs import SCALARS as SCALARS
from nearkin.quantization.codecs import Size as Size

BEST = "best"
BYTES = 16  # of a code, by default


def find_method(name: str) -> str:
    """A method by its name or one of `ALIASES`; ValueError that lists all for an unknown one."""
    return ALIASES.get(name) or check_choice(name, "method", (BEST, *ALIASES, *CODECS))


def metrics_of(method: str) -> tuple[str, ...]:
    """The metrics that codes of a method can be searched by, the default first."""
    return ("l2", "ip", "cosine") if method == BEST else CODECS[method].metrics


def choose_metric(method: str, metric: str | None) -> str:
    """The metric given, or the method's default; ValueError for one that its codes cannot be searched by."""
    return check_choice(metric or metrics_of(method)[0], f"metric for {method}", metrics_of(method))
