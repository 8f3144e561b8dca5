"""Run as a program: do a job that replaces a folder, once for each moment at which the process is killed.

Every call that changes names or waits for the disk is counted; run number n ends itself by SIGKILL right before call
n, or right after it. Prints, as JSON, what stood at the path after each kill, and what lay there once the job was run
again. `python kill_points.py FOLDER JOB exchange|renames`.
"""

import itertools
import json
import os
import signal
import sys
from pathlib import Path

from nearkin._storage import exchange, read_config, recover, saving_folder


class Save:
    """A folder saved over an old one."""

    calls = ("rename", "replace", "fsync", "mkdir", "rmdir", "unlink")

    def __init__(self, base: Path) -> None:
        pass

    def prepare(self, path: Path) -> None:
        self._save(path, "old")

    def work(self, path: Path) -> None:
        self._save(path, "new")

    def _save(self, path: Path, text: str) -> None:
        with saving_folder(path, "index", {"text": text}) as folder:
            (folder / "data").write_text(text)

    def state(self, path: Path) -> str:
        text = read_config(path, "index")["text"]
        return text if (path / "data").read_text() == text else "mixed"


class Encode:
    """`nearkin encode --replace` over the codes of another model."""

    calls = ("rename", "replace")

    def __init__(self, base: Path) -> None:
        import numpy as np

        import nearkin as nk

        X = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
        self.parts, self.models, self.codes = [], {}, {}
        for i, rows in enumerate(np.split(X, 2)):
            self.parts.append(str(base / f"part-{i}.npy"))
            np.save(self.parts[-1], rows)
        for seed, name in enumerate(("old", "new")):
            hasher = nk.RandomHyperplanes(8, random_state=seed).fit(X)
            self.models[name] = base / name
            hasher.save(self.models[name])
            self.codes[name] = [hasher.encode(np.load(part)) for part in self.parts]

    def prepare(self, path: Path) -> None:
        self._encode(path, "old")

    def work(self, path: Path) -> None:
        self._encode(path, "new")

    def _encode(self, path: Path, name: str) -> None:
        from nearkin.pipeline import encode_shards

        encode_shards(self.parts, self.models[name], path, workers=0, replace=True)

    def state(self, path: Path) -> str:
        import numpy as np

        recover(path)
        found = [np.load(path / Path(part).name) for part in self.parts]
        names = json.loads((path / "manifest.json").read_text())["shards"].keys()
        same = [name for name, codes in self.codes.items() if all(map(np.array_equal, found, codes))]
        return same[0] if same and set(names) == set(self.parts) else "mixed"


def killing(calls: tuple[str, ...], n: int, after: bool) -> None:
    """Make call number n of `calls`, and of the exchange, this process's last."""
    count = itertools.count()

    def watched(call):
        def run(*args, **options):
            now = next(count) == n
            if now and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return call(*args, **options)
            finally:
                if now:
                    os.kill(os.getpid(), signal.SIGKILL)

        return run

    for name in calls:
        setattr(os, name, watched(getattr(os, name)))
    exchange.exchange = watched(exchange.exchange)


def main(base: Path, name: str, way: str) -> None:
    if way == "renames":
        exchange.exchange = lambda one, other: False
    job = {"save": Save, "encode": Encode}[name](base)
    states, beside = [], []
    for n, after in ((n, after) for n in range(1000) for after in (False, True)):
        home = base / f"{n}{after}"
        path = home / "out"
        job.prepare(path)
        child = os.fork()
        if not child:
            killing(job.calls, n, after)
            job.work(path)
            os._exit(0)
        killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        try:
            states.append(job.state(path))
        except (OSError, ValueError) as error:
            states.append(str(error))
        job.work(path)
        beside.append([job.state(path), *sorted(entry.name for entry in home.iterdir())])
        if not killed:
            break
    print(json.dumps({"states": states, "beside": beside}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
