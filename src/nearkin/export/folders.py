"""Exports that are folders replace an earlier export of their kind and nothing else."""

from pathlib import Path

from nearkin._storage import check_target, read_config


def check_own_folder(out: Path, kind: str) -> None:
    """ValueError if `out` holds anything but an earlier export of `kind` (above all the index itself)."""
    check_target(out)
    if (out / "config.json").is_file() and (found := read_config(out)["kind"]) != kind:
        raise ValueError(f"{out} holds the kind {found!r}, which an export does not replace; give another --out")
