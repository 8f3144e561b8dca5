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


class Command:
    """A command of the command line that writes its `--out`, over what the same command wrote from other data."""

    calls = ("rename", "replace", "fsync", "mkdir", "rmdir", "unlink")
    words: tuple[str, ...]

    def __init__(self, base: Path) -> None:
        import numpy as np

        rng = np.random.default_rng(0)
        self.base = base
        for name in ("old", "new"):
            np.save(base / f"{name}.npy", rng.normal(size=(60, 8)).astype(np.float32))
            users, items = rng.integers(0, 9, 40), rng.integers(0, 7, 40)
            rows = "".join(f"u{u},i{i}\n" for u, i in zip(users, items, strict=True))
            (base / f"{name}.csv").write_text("user,item\n" + rows)
        self.known: dict[str, dict[str, bytes]] = {}

    def prepare(self, path: Path) -> None:
        self._run(path, "old")

    def work(self, path: Path) -> None:
        self._run(path, "new")

    def _run(self, path: Path, name: str) -> None:
        from typer.testing import CliRunner

        from nearkin.cli.app import app

        places = {"NPY": self.base / f"{name}.npy", "CSV": self.base / f"{name}.csv", "OUT": path}
        words = [str(places.get(word, word)) for word in self.words]
        result = CliRunner().invoke(app, words, prog_name="nearkin")
        if result.exit_code:
            raise RuntimeError(result.output)
        self.known[name] = self._contents(path)

    def state(self, path: Path) -> str:
        recover(path)
        if not path.exists():
            return "missing"
        found = self._contents(path)
        return next((name for name, files in self.known.items() if files == found), "mixed")

    def _contents(self, path: Path) -> dict[str, bytes]:
        """What answers are made from: records hold the times of a run."""
        wanted = (".faiss", ".safetensors", ".npy", ".csv", ".parquet")
        files = [path] if path.is_file() else [file for file in sorted(path.rglob("*")) if file.suffix in wanted]
        return {str(file.relative_to(path)): file.read_bytes() for file in files}


class Compress(Command):
    words = (
        "compress",
        "NPY",
        "--out",
        "OUT",
        "--bytes",
        "2",
        "--centroids",
        "16",
        "--method",
        "none",
        "--keep-vectors",
    )


class Embed(Command):
    words = ("embed", "CSV", "--left", "user", "--right", "item", "--out", "OUT", "--dim", "2")


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
    job = {"save": Save, "encode": Encode, "compress": Compress, "embed": Embed}[name](base)
    states, beside = [], []
    for n, after in ((n, after) for n in range(1000) for after in (False, True)):
        home = base / f"{n}{after}"
        home.mkdir(exist_ok=True)
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
