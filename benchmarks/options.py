"""What every benchmark takes from the command line, where its results go, and where the peers are."""

import argparse
import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ELSEWHERE = os.environ.get("NEARKIN_RESULTS")  # a quick pass must not touch what README and docs quote
RESULTS = Path(_ELSEWHERE) if _ELSEWHERE else Path(__file__).parent / "results"
FIGURES = RESULTS / "figures" if _ELSEWHERE else ROOT / "docs" / "figures"


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark takes."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(options)
    options.add_argument("--quick", action="store_true", help="fewer sizes, rows and repetitions")
    options.add_argument("--threads", type=int, default=1)
    return options


def add_folders(options: argparse.ArgumentParser) -> None:
    """Add --data and --peers."""
    data = ROOT.parent / "shared" / "data"
    options.add_argument("--data", type=Path, default=data, help="folder of sift_bsds.npz, mnist.npz, ...")
    options.add_argument("--peers", type=Path, default=ROOT / ".peers", help="environment of peers.txt (make peers)")


def peer_python(peers: Path) -> Path | None:
    """The Python of the peers' environment, for peers that run in a process of their own; None if there is none."""
    python = peers / "bin" / "python"
    return python if python.exists() else None


def peer_packages(peers: Path) -> Path | None:
    """The site-packages of the peers' environment, for peers that can be imported here; None if there is none."""
    return next(iter(sorted(peers.glob("lib/python3*/site-packages"))), None)
