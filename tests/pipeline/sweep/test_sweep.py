"""A sweep answers with the shortest code that keeps enough, as the same command's index then does."""

from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.pipeline.sweep import choose, diagnose, sweep, sweep_page
from nearkin.pipeline.sweep.choose import frontier
from nearkin.pipeline.sweep.page import html_line
from nearkin.pipeline.sweep.trial import Trial, kept, lower_bound


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(1500, 6)) @ rng.normal(size=(6, 16)) + 0.1 * rng.normal(size=(1500, 16))).astype(np.float32)
    path = tmp_path_factory.mktemp("sweep") / "X.npy"
    np.save(path, X[:1200])
    return path, X[1200:]


@pytest.fixture(scope="module")
def found(data):
    return sweep(nk.data.open_vectors(data[0]), data[1], target=0.6, methods=("procrustes",), random_state=0)


def test_the_choice_is_the_shortest_of_the_trials_that_keep_enough(found) -> None:
    assert found.choice is not None
    assert found.choice.trial.low() >= 0.6
    shorter = [trial for trial in found.trials if trial.n_bytes < found.choice.trial.n_bytes]
    assert all(trial.low() < 0.6 for trial in shorter)
    assert found.with_vectors is not None
    assert found.with_vectors.trial.n_bytes <= found.choice.trial.n_bytes


def test_the_printed_recall_is_that_of_the_index_that_the_printed_command_makes(found, data, tmp_path: Path) -> None:
    path, Q = data
    size = nk.pipeline.CodeSize(found.choice.trial.n_bytes)
    nk.pipeline.compress_file(
        nk.data.open_vectors(path),
        nk.pipeline.find_method("procrustes").make(size, 0),
        tmp_path / "idx",
        random_state=0,
    )
    record = nk.pipeline.evaluate_folder(tmp_path / "idx", Q, base=nk.data.open_vectors(path), k=10)
    assert record["10-recall@10"] == pytest.approx(found.choice.trial.mean(), abs=1e-12)
    assert f"--bytes {found.choice.trial.n_bytes}" in found.command(found.choice, str(path))


def test_oversampled_recall_is_that_of_kept_vectors(found, data) -> None:
    path, Q = data
    trial = found.trials[0]
    X = np.load(path)
    quantizer = nk.pipeline.find_method("procrustes").make(nk.pipeline.CodeSize(trial.n_bytes), 0)
    index = nk.Index.build(X, quantizer, keep_vectors=True)
    truth = nk.Index.build(X).search(Q, 10)[1]
    recall = nk.metrics.recall_k_at_k(index.search(Q, 10, oversample=4)[1], truth, 10)
    assert trial.mean(4) == pytest.approx(recall, abs=1e-3)


def test_without_queries_rows_are_held_out_and_that_is_said(data) -> None:
    made = sweep(nk.data.open_vectors(data[0]), target=0.5, methods=("procrustes",), k=5)
    assert made.queries_are_rows
    assert made.diagnosis.rows + made.n_queries == 1200
    assert "rows held out of the file" in made.judged_by()


def test_time_over_is_said(data) -> None:
    made = sweep(nk.data.open_vectors(data[0]), data[1], target=0.99, methods=("procrustes",), seconds=1e-9)
    assert made.trials == []
    assert made.out_of_time
    assert "No code that was tried keeps 0.99" in made.answers("X.npy")[0]


def test_the_page_holds_answers_and_table(found) -> None:
    text = sweep_page(found, "X <b>.npy").html()
    assert "<span>nearkin</span> <span>compress</span>" in text
    assert "X <b>" not in text
    assert f"{found.choice.trial.n_bytes}" in text


def test_no_word_of_a_command_breaks() -> None:
    """A browser breaks a line behind each hyphen: "--bytes 4" was read as "- -bytes 4"."""
    line = html_line("Cheapest: 4 bytes: nearkin compress 'my file.npy' --bytes 4")
    assert line.endswith("<span>--bytes</span> <span>4</span></code>")
    assert html_line("Time < over.") == "Time &lt; over."


@pytest.mark.parametrize(
    ("name", "value"), [("target", 1.5), ("k", 0), ("metric", "hamming"), ("methods", ("none", "x"))]
)
def test_bad_questions_are_refused_before_any_work(data, name: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"target|k |metric|method"):
        sweep(nk.data.open_vectors(data[0]), data[1], **{name: value})  # pyright: ignore[reportArgumentType]


def test_kept_counts_the_neighbours_within_each_depth() -> None:
    found = np.array([[5, 1, 9, 2]])
    shares = kept(found, np.array([[1, 2]]), [1, 2])
    assert shares == {1: np.array([0.5]), 2: np.array([1.0])}


def test_the_lower_bound_holds_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    below = [lower_bound(rng.binomial(10, 0.8, 200) / 10) <= 0.8 for _ in range(2000)]
    assert 0.96 < np.mean(below) < 0.99, np.mean(below)
    assert 0.97 < lower_bound(np.ones(200)) < 1
    assert lower_bound(np.zeros(3)) == 0


def test_the_frontier_holds_what_nothing_shorter_beats() -> None:
    trials = [Trial("a", size, {1: np.full(5, recall)}, 0.0, 1.0) for size, recall in ((4, 0.5), (8, 0.4), (16, 0.9))]
    assert [trial.n_bytes for trial in frontier(trials)] == [4, 16]
    assert choose(trials, 0.95) is None


def test_a_diagnosis_says_what_the_data_are_like() -> None:
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(400, 3)), np.full(400, 2.0)].astype(np.float32)
    found = diagnose(X, X + np.array([5, 0, 0, 0], np.float32))
    assert found.constant_columns == 1
    assert found.effective_dimension == pytest.approx(3, abs=0.2)
    assert found.query_shift > 0.1
    assert any("another kind" in text for text in found.sentences())
