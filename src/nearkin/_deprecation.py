"""Old spellings: they work for one release, with a DeprecationWarning that says what to type."""

import warnings

REMOVED_IN = "0.3"


def renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that `old` is now spelled `new`; both are shown as the user would type them."""
    warnings.warn(
        f"{old} is deprecated and will be removed in nearkin {REMOVED_IN}; type {new}",
        DeprecationWarning,
        stacklevel=stacklevel,
    )
