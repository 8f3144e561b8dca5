"""The work folder of a long job: its finished parts, from which the same command goes on after an interruption.

Each part is a saved folder with its own manifest, written by any process; a part that is missing, damaged or of another
source is made again. The folder's added.json lists the parts.
"""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

from nearkin import _storage
from nearkin._distributed import Group
from nearkin._fields import Fields, Record, StrPath

KIND = "unfinished job"


class WorkFolder:
    """A work folder, open for one job; `config` is that of the run which began it."""

    def __init__(self, path: Path, group: Group) -> None:
        self.path: Path = path
        self.group: Group = group
        self.config: Record = _storage.read_config(path, KIND)

    def missing(self, names: Collection[str]) -> list[str]:
        """Those of the parts `names` that are still to make, in every process the same."""
        found = list[str]()
        if self.group.rank == 0:
            _storage.list_added(self.path, *names)
            found = [name for name in names if not self._is_whole(name)]
        return self.group.exchange(found)[0]

    def _is_whole(self, name: str) -> bool:
        try:
            _storage.read_config(self.path / name)
            manifest = _storage.read_manifest(self.path / name)
            for file in manifest.files if manifest else ():
                cast(_storage.Manifest, manifest).verify(file)
        except (FileNotFoundError, ValueError):
            return False
        return True


@contextmanager
def working(
    path: StrPath, job: Fields, group: Group, plan: Fields, *, overwrite: bool = False, keep: bool = True
) -> Iterator[WorkFolder]:
    """The work folder of `job`, new or of an interrupted run, for this block alone; removed at the end. Without
    `keep` it is always new, and removed after an error too. `plan` is added to the config of a new one.

    ValueError if another process works there, and if it is of another job, without `overwrite`. Rank 0 makes and
    removes it, so it must lie on a file system that all ranks share.
    """
    path, done = Path(path), False
    with ExitStack() as locks:
        if group.rank == 0:
            _start(path, job, plan, locks, overwrite=overwrite, resume=keep)
        group.barrier()
        if not path.exists():
            raise ValueError(
                f"rank {group.rank} does not see {path}, which rank 0 has made; it must lie on a file system that all "
                "ranks share"
            )
        try:
            yield WorkFolder(path, group)
            done = True
        finally:
            if group.rank == 0 and (done or not keep) and not _storage.strangers(path):
                _storage.discard(path)


def work_place(out: StrPath) -> Path:
    """The work folder of a job that was given none, next to what it writes."""
    path = Path(out).absolute()
    return path.with_name(f".{path.name}.parts")


def _start(path: Path, job: Fields, plan: Fields, locks: ExitStack, *, overwrite: bool, resume: bool) -> None:
    """Make the folder, or check that it is of this job, and lock it."""
    _storage.recover(path)
    if path.is_dir() and any(path.iterdir()):
        locks.enter_context(_storage.changing(path, wait=False))
        found = _storage.read_config(path, KIND)["job"]
        if found == job and resume:
            _storage.sweep(path)
            return
        if not overwrite:
            key = next(key for key in job if found.get(key) != job[key])
            raise ValueError(
                f"{path} is of another run ({key} was {found.get(key)}, is {job[key]}); give another folder, or "
                "overwrite=True to start again"
            )
    with _storage.saving_folder(path, KIND, {"job": job, **plan}, overwrite):
        pass
    locks.close()
    locks.enter_context(_storage.changing(path, wait=False))
