"""Every experiment of the papers runs from nothing but a folder of data; what is finished is kept."""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import harness, jobs
from benchmarks.jobs import Job, measure
from benchmarks.papers import esl_towers
from benchmarks.papers.experiments import OWN, experiment
from benchmarks.stored import read_json
from benchmarks.table import Results
from nearkin.embedding import AllPairs
from tests.covering import each

HEAVY = {"svrg_retrieval", "gcd_figure_3"}  # their jobs are in other tests; seconds here


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Toy files of the names and the arrays that the experiments read."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)

    def images(n: int) -> np.ndarray:
        return rng.integers(0, 255, (n, 784), dtype=np.uint8)

    labels = np.arange(1500) % 10
    np.savez(folder / "mnist.npz", X_train=images(1500), y_train=labels, X_test=images(100), y_test=labels[:100])
    np.savez(folder / "sift_bsds.npz", base=rng.integers(0, 200, (3000, 128), dtype=np.uint8))
    user, item = (rng.integers(0, n, 4000) for n in (60, 80))
    _, once = np.unique(user * 80 + item, return_index=True)
    user, item = user[once], item[once]
    rating, when = np.full(len(user), 5.0), np.arange(len(user))
    np.savez(folder / "ml100k.npz", user=user, item=item, rating=rating, timestamp=when)
    i, j, k = (rng.integers(0, 30, 2000) for _ in range(3))
    kept = (i != j) & (i != k) & (j != k)
    np.savez(folder / "music_triplets.npz", triplets=np.stack([i, j, k], axis=1)[kept])
    return folder


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(jobs, "RESULTS", tmp_path)
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    return tmp_path


def read(results: Path, name: str) -> list[dict]:
    return read_json(results / f"papers_{name}.json")["results"]


@pytest.mark.parametrize("name", sorted(OWN.keys() - HEAVY - {"eurodist"}))
def test_an_experiment_makes_its_first_row_from_the_data_folder_alone(name: str, data: Path, results: Path) -> None:
    made = experiment(name)
    first = list(islice(made.jobs(data, made.small), 1))
    measure(f"papers_{name}", first, data=data)
    assert first[0].names(read(results, name)[0])


@each("name", OWN)
def test_keys_tell_the_jobs_of_an_experiment_apart(name: str, data: Path) -> None:
    made = experiment(name)
    for size in (made.full, made.small):
        keys = [job.key for job in made.jobs(data, size)]
        assert len({json.dumps(key, sort_keys=True) for key in keys}) == len(keys) > 0
        strict = [(a, b) for a in keys for b in keys if a is not b and a.items() <= b.items()] if len(keys) < 70 else []
        assert not strict, f"one job's rows would count as another's: {strict[:1]}"


def test_finished_jobs_are_kept_and_others_follow(results: Path) -> None:
    done: list[int] = []

    def job(n: int) -> Job:
        return Job({"n": n}, lambda: [{"square": done.append(n) or n * n, "half": h} for h in (0, 1)])

    measure("papers_squares", [job(1), job(2)])
    measure("papers_squares", [job(2), job(3)])
    assert [(row["n"], row["square"], row["half"]) for row in read(results, "squares")] == [
        (2, 4, 0), (2, 4, 1), (3, 9, 0), (3, 9, 1)
    ], "the rows of a job that is gone go with the next save"  # fmt: skip
    measure("papers_squares", [job(2)], again=True)
    assert [row["n"] for row in read(results, "squares")] == [2, 2]
    assert done == [1, 1, 2, 2, 3, 3, 2, 2]
    measure("papers_squares", [job(4)], again=True, others=True)
    assert [row["n"] for row in read(results, "squares")] == [2, 2, 4, 4], "a subject keeps the rows of others"


def test_a_part_of_an_experiment_is_not_judged(results: Path) -> None:
    """The tables of a run that was ended early stopped at the first missing cell."""

    def fail() -> dict[str, int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure("papers_squares", [Job({"n": 1}, lambda: {"square": 1}), Job({"n": 2}, fail)])
    assert len(read(results, "squares")) == 1
    assert Results(results).read("papers_squares") is None
    measure("papers_squares", [Job({"n": n}, lambda n=n: {"square": n * n}) for n in (1, 2)])
    assert [row["square"] for row in Results(results).read("papers_squares")] == [1, 4]


def test_the_loss_of_all_pairs_is_the_librarys_and_sampled_zeros_are_its_mean(data: Path) -> None:
    """ESL's towers: the value against AllPairsLoss, and the mean of many estimates against the whole."""
    size = replace(esl_towers.SMALL, features=4)
    p = esl_towers.problem(data, size, 0)
    generator = torch.Generator().manual_seed(0)
    P, Q = (torch.randn(n, 3, generator=generator) for n in p.observed.shape)
    strength, weight = 0.01, len(p.parts.train.rows)
    loss = AllPairs(weighting="none").objective(p.parts.train).loss(strength)
    found = float(esl_towers.value(p, P, Q, strength, 0, generator))
    assert found == pytest.approx(float(loss.value(P, Q)) / weight, rel=1e-4)
    estimates = [float(esl_towers.unobserved(p, P, Q, 4, generator)) for _ in range(300)]
    whole = float(esl_towers.unobserved(p, P, Q, 0, generator))
    assert np.mean(estimates) == pytest.approx(whole, abs=4 * np.std(estimates) / 300**0.5)
    assert np.std(estimates) > 0
