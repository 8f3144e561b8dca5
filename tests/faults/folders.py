"""Damaged saved folders of every kind: the same answer or one clean error; a re-signed folder may answer otherwise.

A *re-signed* folder has a manifest that fits its damaged files, as somebody who makes one on purpose would write it:
nothing can tell that it is not ours, but it must not end the process, hang, or raise anything but a clean error.
"""

import json
import os
import random
import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import nearkin as nk
from nearkin._storage.manifest import write_manifest
from nearkin.data import comparisons_from_names as named
from nearkin.quantization import AxisQuantizer, ProductResidualQuantizer, ResidualQuantizer, ScalarQuantizer
from nearkin.quantization.best import HASHERS
from tests.faults.child import CLEAN, Fault
from tests.faults.mutate import damaged
from tests.faults.readers import digest

Files = dict[str, bytes]
_rng = np.random.default_rng(0)
X = _rng.normal(size=(60, 8)).astype(np.float32)


class Kind(NamedTuple):
    """A kind of folder: what is saved, of a seed, and what it answers once it is loaded again."""

    name: str
    cls: Any
    make: Callable[[int], Any]
    answers: Callable[[Any], list[Any]]

    def answer(self, path: Path) -> str:
        return digest(
            [np.array(repr(one)) if isinstance(one, tuple) else one for one in self.answers(self.cls.load(path))]
        )


def prepare(folder: Path) -> None:
    """Make the whole folders."""
    originals(str(folder / f"folders-{os.getpid()}"))


def case(number: int, seed: int, folder: Path, signed: bool = False) -> str:
    """Damage one folder, load it and ask it."""
    rng = random.Random(seed * 1_000_003 + number)
    home = folder / f"folders-{os.getpid()}"
    kind, (whole, other), expected = originals(str(home))[rng.randrange(len(kinds()))]
    path = home / kind.name
    while (files := damage(whole, other, rng)) == other:  # not damage: the other folder
        continue
    _put(path, whole, files)
    try:
        if signed:
            _sign(path)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore" if signed else "error", RuntimeWarning)  # of huge numbers
            answer = kind.answer(path)
            if signed and kind.name.startswith("index-"):
                _use(path)
        if answer != expected and not signed:
            raise Fault(f"{kind.name} answers otherwise after {_difference(whole, files)}")
        return "same" if answer == expected else "other"
    except Exception as error:
        if type(error) in (*CLEAN, Fault):
            raise
        raise Fault(f"{kind.name} after {_difference(whole, files)}: {type(error).__name__}: {error}") from error
    finally:
        shutil.rmtree(path)
        _put(path, {}, whole)


def signed(number: int, seed: int, folder: Path) -> str:
    """Damage one folder under a manifest that fits it."""
    return case(number, seed, folder, signed=True)


def damage(whole: Files, other: Files, rng: random.Random) -> Files:
    """The files after one damage: bytes, a file of another folder, one missing or too many, an edit of JSON, ids."""
    files = dict(whole)
    name = rng.choice(sorted(files))
    way = rng.randrange(10)
    if way < 4:
        files[name] = damaged(files[name], list(whole.values()), rng)
    elif way == 4:
        swapped = rng.sample(sorted(files), rng.randint(1, len(files)))
        files |= {name: other[name] for name in swapped if name in other}
    elif way == 5:
        files[name] = rng.choice(sorted(other.items()))[1]
    elif way == 6:
        del files[name]
    elif way == 7:
        place = os.path.dirname(rng.choice(sorted(files)))
        files[os.path.join(place, rng.choice(_EXTRA))] = rng.choice(sorted(other.items()))[1]
    else:
        name = rng.choice(sorted(name for name in files if name.endswith(".json")))
        files[name] = _edited(files[name], rng)
    return files


_EXTRA = ("vectors.npy", "notes.txt", "loss.safetensors", "quantizer/config.json", "arrays.safetensors", "index.faiss")
_VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 3, 10**7, 2**31, 2**63, 10**400, 1.5, 1e308, float("nan"), float("inf"), "", "l2", "x"),
    *("../..", "a" * 300, [], [1], [[1], [2, 3]], {}, {"a": 1}, {"class": "x"}),
)


def _edited(data: bytes, rng: random.Random) -> bytes:
    """JSON with one to three values replaced, keys renamed or removed, anywhere in it."""
    record = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places: list[tuple[Any, Any]] = []
        _walk(record, places)
        if not places:
            break
        holder, key = rng.choice(places)
        way = rng.randrange(5)
        source, found = rng.choice(places)
        copied = deepcopy(source[found])
        if way == 0:
            del holder[key]
        elif way == 1 and isinstance(holder, dict):
            holder[f"{key}x"] = holder.pop(key)
        else:
            holder[key] = copied if way == 2 else deepcopy(rng.choice(_VALUES))
    return json.dumps(record).encode()


def _walk(value: Any, places: list[tuple[Any, Any]]) -> None:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        places.append((value, key))
        _walk(inner, places)


def _put(path: Path, before: Files, files: Files) -> None:
    """Make the folder hold `files` where it held `before`; a file is replaced, not written over: it may be mapped."""
    for name in before.keys() - files.keys():
        (path / name).unlink()
    for name, data in files.items():
        if before.get(name) != data:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).unlink(missing_ok=True)
            (path / name).write_bytes(data)


def _sign(path: Path) -> None:
    """New manifests for the folder and those in it; a config.json that names no kind is of the kind "index"."""
    for place in sorted({file.parent for file in path.rglob("*") if file.is_file()}, reverse=True):
        try:
            kind = json.loads((place / "config.json").read_text())["kind"]
        except (OSError, ValueError, KeyError, TypeError):
            kind = "index"
        write_manifest(place, kind)


def _difference(whole: Files, files: Files) -> str:
    return ", ".join(sorted(name for name in whole.keys() | files.keys() if whole.get(name) != files.get(name)))


@cache
def originals(home: str) -> list[tuple[Kind, tuple[Files, Files], str]]:
    """Each kind, the files of two such folders, and the answer of the first, which lies under `home`."""
    found = []
    for kind in kinds():
        pair = []
        for seed, path in ((1, Path(home) / "other"), (0, Path(home) / kind.name)):
            kind.make(seed).save(path)
            pair.append({file.relative_to(path).as_posix(): file.read_bytes() for file in _files(path)})
            expected = kind.answer(path)
            if seed:
                shutil.rmtree(path)
        found.append((kind, (pair[1], pair[0]), expected))
    return found


def _files(path: Path) -> list[Path]:
    return [file for file in sorted(path.rglob("*")) if file.is_file()]


@cache
def kinds() -> list[Kind]:
    """Every kind of folder that nearkin saves."""
    quick = {"rotation": None, "max_iter": 1}
    quantizers: dict[str, Callable[[int], Any]] = {
        "product": lambda seed: nk.ProductQuantizer(2, 8, **quick, random_state=seed),
        "residual": lambda seed: ResidualQuantizer(2, 8, random_state=seed),
        "product-residual": lambda seed: ProductResidualQuantizer(2, 2, 8, random_state=seed),
        "scalar": lambda seed: ScalarQuantizer(8),
        "axis": lambda seed: AxisQuantizer(3),
    }
    indexes: dict[str, Callable[[int], nk.Index]] = {
        "exact": lambda seed: nk.Index.build(X[seed:], metric=("l2", "ip")[seed]),
        "coded": lambda seed: nk.Index.build(X, quantizers["product"](seed), ids=_text_ids(seed), keep_vectors=True),
        "cosine": lambda seed: nk.Index.build(X, quantizers["scalar"](seed), metric="cosine", ids=_numbers(seed)),
        "lists": lambda seed: nk.Index.build(X, quantizers["product"](seed).set_params(n_lists=3), ids=_numbers(seed)),
        "norms": lambda seed: nk.Index.build(X, quantizers["product"](seed), norms=True),
        "bits": lambda seed: nk.Index.build(X, nk.RandomHyperplanes(16, random_state=seed), metric="hamming"),
    }
    found = [Kind(f"index-{name}", nk.Index, make, _of_index) for name, make in indexes.items()]
    quantizers |= {name: _hasher(name) for name in HASHERS.values()}
    found += [Kind(name, type(make(0)), _fitted(make), _of_codec) for name, make in quantizers.items()]
    return [
        *found,
        Kind("bridge", nk.Bridge, lambda seed: nk.Bridge(random_state=0).fit(_moved(seed), X), _of_bridge),
        Kind("ids", nk.SemanticIds, lambda seed: nk.SemanticIds(2, 8, random_state=seed).fit(X), _of_ids),
        Kind("ordinal", nk.OrdinalEmbedding, _ordinal, _of_ordinal),
        Kind("towers", nk.TwoTower, _towers, _of_towers),
    ]


def _fitted(make: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda seed: make(seed).fit(_moved(seed))


def _of_codec(model: Any) -> list[Any]:
    return [model.encode(X[:20]), (model.get_params(),)]


def _of_bridge(bridge: nk.Bridge) -> list[Any]:
    return [bridge.transform(X[20:40])]


def _of_ids(made: nk.SemanticIds) -> list[Any]:
    return [made.transform(X[:20]), made.item_of(made.transform(X[:20])), made.ids_]


def _moved(seed: int) -> np.ndarray:
    return (X + np.float32(seed)) * np.float32(1 + seed)


def _hasher(name: str) -> Callable[[int], Any]:
    cls = getattr(nk, name)
    return lambda seed: cls(4, **({"random_state": seed} if "random_state" in cls().get_params() else {}))


def _text_ids(seed: int) -> list[str]:
    return [f"row {seed} {i}" for i in range(len(X))]


def _numbers(seed: int) -> np.ndarray:
    return np.arange(len(X)) * 3 + seed


def _of_index(index: nk.Index) -> list[Any]:
    return [*index.search(X[:5], 3), *index.search(X[5:7], 4), (index.metric, len(index))]


def _use(path: Path) -> None:
    """Change a loaded index in every way: each change works or is refused, and nothing ends the process."""
    index, other = nk.Index.load(path), nk.Index.load(path)
    new = None if index.ids is None else [f"new {i}" for i in range(5)] if index.ids.dtype.kind == "U" else range(-5, 0)
    first = np.arange(3) if index.ids is None else index.ids[:3]
    changes: tuple[Callable[[], Any], ...] = (
        lambda: index.merge(other),
        lambda: index.add(X[:5], new),
        lambda: index.update(first, X[:3]),
        lambda: index.remove(first),
        lambda: index.search(X[:5], len(index)),
    )
    for change in changes:
        with suppress(*CLEAN):
            change()


def _ordinal(seed: int) -> Any:
    rows = np.random.default_rng(seed).permuted(np.tile(np.arange(7), (40, 1)), axis=1)[:, :3]
    return nk.OrdinalEmbedding(2, max_iter=2, n_init=1, random_state=seed).fit(named(np.array(list("abcdefg"))[rows]))


def _of_ordinal(model: nk.OrdinalEmbedding) -> list[Any]:
    arrays = [model.embedding_, model.objects_, model.comparisons_.indices]
    return [*arrays, (model.get_params(), model.objective_, model.n_iter_, model.status_)]


def _towers(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 9, 40), rng.integers(0, 7, 40)
    pairs = nk.Interactions.from_pairs([f"u{i}" for i in left], [f"i{j}" for j in right])
    return nk.TwoTower(2, random_state=seed).fit(pairs)


def _of_towers(model: nk.TwoTower) -> list[Any]:
    arrays = [model.left_embeddings_, model.right_embeddings_, model.left_ids_, model.right_ids_, model.seen_.weights]
    found = model.recommend(model.left_ids_[:3], 2)
    return [*arrays, *found, (model.solver_, model.regularization_, model.omega_)]
