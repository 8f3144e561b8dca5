"""What one process and several must do alike: each job takes this process's rows and returns named arrays.

Run as a program: `python -m tests.distributed.jobs FOLDER`. It does all jobs alone, then forks two ranks and three,
which find its loops compiled. Its last line holds how each rank ended.
"""

import hashlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import nearkin as nk
from nearkin._distributed import current, join_processes, leave
from nearkin.data import comparisons_from_vectors, open_vectors, planted_interactions
from nearkin.embedding import ALS, Adam, AllPairs, GaussNewton
from nearkin.embedding.all_pairs import AllPairsLoss
from nearkin.jobs.compress import Choice, compress_file
from nearkin.jobs.run import watched
from nearkin.quantization import AxisQuantizer, ScalarQuantizer
from nearkin.quantization.best import CODECS, Size, fitted_codec
from nearkin.statistics import Shard
from tests.processes import free_port

Arrays = dict[str, np.ndarray]
PRODUCT = Choice("none", Size(4, random_state=0))
CUTS = {1: [0, 1000], 2: [0, 701, 1000], 3: [0, 0, 333, 1000]}  # uneven, and with three processes the first is empty


def own(X: np.ndarray) -> np.ndarray:
    group = current()
    first, stop = (len(X) * cut // 1000 for cut in CUTS[group.size][group.rank : group.rank + 2])
    return X[first:stop]


def whole_numbers() -> np.ndarray:
    """Rows whose sums are exact in any order and whose mean is zero."""
    rng = np.random.default_rng(1)
    half = (rng.integers(-3, 4, (20, 8)) * 8)[rng.integers(20, size=500)] + rng.integers(-4, 5, (500, 8))
    return np.concatenate([half, -half]).astype(np.float32)


def real_numbers() -> np.ndarray:
    rng = np.random.default_rng(2)
    return rng.normal(size=(1000, 12)) @ rng.normal(size=(12, 12)) + 3


def primitives() -> Arrays:
    """The group's operations against what they are by definition; nothing to compare with one process."""
    group = current()
    rank, size = group.rank, group.size
    total = np.full((2, 3), float(rank + 1))
    group.all_reduce(total)
    assert (total == size * (size + 1) / 2).all()
    sent = np.asfortranarray(np.full((2, 3), rank))
    group.broadcast(sent)
    assert (sent == 0).all()
    parts = group.gather(np.full((rank, 2), rank, np.int16))
    assert [part.shape for part in parts] == [(r, 2) for r in range(size)]
    assert all((part == r).all() for r, part in enumerate(parts))
    assert group.exchange({"rank": rank, "text": "ü" * rank}) == [{"rank": r, "text": "ü" * r} for r in range(size)]
    if size > 1:
        with pytest.raises(ValueError, match="rank 1 has the number 1, rank 0 has 0"):
            group.agree(rank, "the number")
        with pytest.raises(ValueError, match="rank 1 has rows of 3 columns, float64; rank 0 has 2 columns"):
            Shard.of(np.zeros((3, 2 + rank)), group)
        with pytest.raises(ValueError, match="n_samples=1000 vectors; n_bits=2000 needs at least 2001"):
            nk.ITQ(2000).fit(own(real_numbers()))
    return {}


def codes() -> Arrays:
    X = whole_numbers()
    found = {}
    for name, options in {
        "plain": {"rotation": None},
        "greedy": {"rotation": "givens-greedy"},
        "random": {"rotation": "givens-random", "init": "identity"},
        "procrustes": {"init": "random"},
        "coarse": {"n_lists": 5, "init": "pca"},
        "few": {"max_points_per_centroid": 20, "init": "identity"},
    }.items():
        pq = nk.ProductQuantizer(2, 16, max_iter=3, random_state=0, **options).fit(own(X))
        found |= {f"{name}.codes": pq.encode(X), f"{name}.rotation": pq.rotation_, f"{name}.books": pq.codebooks_}
    pq.partial_fit(own(X))
    found["stream.books"] = pq.codebooks_
    for made in (AxisQuantizer(3), ScalarQuantizer(4)):
        found[f"{made}.codes"] = made.fit(own(X)).encode(X)
    fitted, norms = fitted_codec(CODECS["product-norms"], Size(3, 16, random_state=0), own(X))
    found |= {"norms.codes": fitted.encode(X), "norms.levels": norms.levels}
    return found


def bits() -> Arrays:
    X = real_numbers()
    found = {}
    for hasher in (nk.ITQ(8, max_iter=10), nk.OnE(4), nk.OgE(4), nk.PCAHash(8), nk.RandomHyperplanes(8)):
        hasher.set_params(random_state=0).fit(own(X))
        found |= {f"{hasher}.codes": hasher.encode(X), f"{hasher}.projection": hasher.projection_}
    wide = np.tile(X[:40], (1, 5)) ** np.repeat([1, 2, 3, 4, 5], 12) / 100  # fewer rows than columns
    return found | {"wide": nk.PCAHash(4).fit(own(wide)).projection_}


def pairs() -> Arrays:
    """The all-pairs loss and its solvers; every process holds the table, the work is shared."""
    planted = planted_interactions(90, 70, random_state=0)
    table = planted.interactions
    rng = np.random.default_rng(0)
    P, Q = (torch.from_numpy(rng.normal(size=(n, 5))).requires_grad_() for n in table.shape)
    costs = {"a": rng.random(90), "b": rng.random(70), "prior": (rng.normal(size=(90, 2)), rng.normal(size=(70, 2)))}
    loss = AllPairsLoss(table, loss="logistic", omega=0.3, regularization=0.1, **costs)
    value = loss(P, Q)
    value.backward()
    found = {"value": value.detach().numpy(), "dP": P.grad.numpy(), "dQ": Q.grad.numpy()}
    features = table.with_features(left=rng.normal(size=(90, 6)).astype(np.float32))
    for name, options, data in (
        ("als", {"solver": ALS(max_iter=2)}, table),
        ("ials++", {"solver": ALS(block_size=16, max_iter=2), "loss": AllPairs(pair_loss="logistic")}, table),
        ("als-features", {"solver": ALS(max_iter=2)}, features),
        ("adam", {"solver": Adam(max_iter=2)}, features),
        ("gauss-newton", {"solver": GaussNewton(max_iter=1)}, table),
    ):
        model = nk.TwoTower(4, random_state=0, regularization=0.05, **options).fit(data)
        found[f"{name}.values"] = np.array([record["objective"] for record in model.history_])
        found[f"{name}.scores"] = model.left_embeddings_ @ model.right_embeddings_.T
    return found | auto_loss()


def auto_loss() -> Arrays:
    """All processes choose the same loss: 20 blocks of rights in 4 dimensions are for the softmax on cosines."""
    rows, rng = np.repeat(np.arange(200), 6), np.random.default_rng(0)
    rights = np.concatenate([10 * rng.integers(20) + rng.choice(10, 6, replace=False) for _ in range(200)])
    model = nk.TwoTower(4, random_state=0).fit(nk.Interactions.from_pairs(rows, rights))
    chosen = np.array([float("why" in trial) for trial in model.trials_])
    return {"auto.chosen": chosen, "auto.scores": model.left_embeddings_ @ model.right_embeddings_.T}


def comparisons() -> Arrays:
    answers = comparisons_from_vectors(np.random.default_rng(0).normal(size=(20, 2)), 600, random_state=0)
    options = {"max_iter": 4, "n_init": 1, "random_state": 0}
    models = [nk.OrdinalEmbedding(2, solver=solver, **options) for solver in ("l-bfgs", "auto")]
    return {model.solver: model.fit(answers).embedding_ for model in models}


def all_jobs() -> Arrays:
    """Of a table of pairs every rank has its part whatever their number is: two ranks leave it to three."""
    jobs = (primitives, codes, bits) if current().size == 2 else (primitives, codes, bits, pairs, comparisons)
    return {f"{job.__name__}.{name}": array for job in jobs for name, array in job().items()}


def compress(folder: Path, out: str, checkpoint: str | None = None) -> None:
    """The files of parts/ as one array, by a quantizer and by a hasher."""
    file = open_vectors(f"{folder}/parts/*.npy")
    work = None if checkpoint is None else folder / checkpoint
    compress_file(file, PRODUCT, folder / out, checkpoint=work)
    if checkpoint is None:
        compress_file(file, Choice("itq", Size(2, metric="hamming", random_state=0)), folder / f"{out}-itq")


class Interrupted(Exception):
    pass


def interrupt(folder: Path) -> None:
    """Leave the work of a run that was interrupted while it encoded."""

    def stop(step: int, record: dict) -> None:
        if step > 5000 and "distortion" not in record:
            raise Interrupted

    file = open_vectors(f"{folder}/parts/*.npy")
    with (
        watched(lambda name: nullcontext(stop if name == "encode" else lambda step, record: None)),
        pytest.raises(Interrupted),
    ):
        compress_file(file, PRODUCT, folder / "no", checkpoint=folder / "work")


def run(folder: Path) -> None:
    with join_processes() as group:
        found = all_jobs()
        digest = hashlib.sha256(b"".join(array.tobytes() for array in found.values())).hexdigest()
        group.agree(digest, "arrays with the digest")
        compress(folder, f"idx-{group.size}")
        if group.size == 3:
            compress(folder, "idx-resumed", checkpoint="work")
        if group.rank == 0:
            np.savez(folder / f"found-{group.size}.npz", **found)


def die() -> None:
    """Rank 1 is killed in the middle of a fit."""

    def kill(step: int, record: dict) -> None:
        if current().rank == 1 and step == 3:
            os.kill(os.getpid(), 9)

    with join_processes():
        nk.ProductQuantizer(2, 16, random_state=0).fit(own(whole_numbers()), callback=kill)


def ranks(folder: Path, size: int, action: Callable[[], None]) -> list[tuple[int, str]]:
    """Fork `size` processes with the variables of torchrun; how each ended, and what it wrote to stderr."""
    place = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    errors = [folder / f"stderr-{rank}.txt" for rank in range(size)]
    children = []
    for rank, path in enumerate(errors):
        child = os.fork()
        if not child:
            os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), 2)
            os.environ.update(place, RANK=str(rank))
            try:
                action()
                leave(0)
            except BaseException:
                traceback.print_exc()
                leave(1)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return list(zip(codes, map(Path.read_text, errors), strict=True))


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    interrupt(folder)
    begun = sorted(path.name for path in (folder / "work").glob("*"))
    run(folder)
    ended = {str(size): ranks(folder, size, partial(run, folder)) for size in (2, 3)}
    print(json.dumps({"begun": begun, **ended, "die": ranks(folder, 2, die)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
