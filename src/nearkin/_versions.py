"""What nearkin runs on, for reports of faults."""

import os
import platform
from importlib import metadata

_NEEDED = ("numpy", "scipy", "scikit-learn", "numba", "faiss-cpu", "torch", "matplotlib", "pyarrow")
_EXTRAS = ("h5py", "openpyxl", "starlette", "pylance", "pgvector", "langchain-core", "llama-index-core", "haystack-ai")


def show_versions() -> None:
    """Print the versions of nearkin, of Python and of the packages that nearkin uses: add them to a report of a fault.

    Examples
    --------
    >>> nk.show_versions()  # doctest: +ELLIPSIS
    nearkin ...
    """
    found = {"nearkin": metadata.version("nearkin"), "python": platform.python_version()}
    found |= {"platform": platform.platform(), "cores": str(os.cpu_count())}
    for name in (*_NEEDED, *_EXTRAS):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing" if name in _NEEDED else "not installed, an extra"
    print("\n".join(f"{name} {version}" for name, version in found.items()))  # noqa: T201  (what it is for)
