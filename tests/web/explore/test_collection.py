"""A click shows what a search gives: by the codes, rescored, and in an index whose rows stand in another order."""

import json
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.web.explore import Collection, Columns, open_collection
from nearkin.web.explore.collection import OVERSAMPLES
from nearkin.web.explore.server import Explorer
from tests.cli.conftest import run_json
from tests.covering import each
from tests.web.explore.conftest import HOSTILE, N


@each("row", [0, 7, 119])
def test_a_click_equals_nearkin_search(explorer: Explorer, folder: Path, rows: np.ndarray, row: int) -> None:
    np.save(folder / "q.npy", rows[row : row + 1])
    answer = explorer.item(row)
    for depth, oversample in enumerate((None, *OVERSAMPLES)):
        options = [] if oversample is None else ["--oversample", oversample]
        (hit,) = run_json("search", folder / "idx", folder / "q.npy", "-k", 6, *options)["hits"]
        names, wanted = without(explorer.collection.about(row)["id"], hit)
        found = answer["found"][0][depth]
        assert [answer["about"][r]["id"] for r in found] == names
        scores = answer["coded"][0] if oversample is None else answer["true"]
        np.testing.assert_allclose([scores[r] for r in found], wanted, rtol=1e-5, atol=1e-4)
    (hit,) = run_json("search", folder / "finer", folder / "q.npy", "-k", 6)["hits"]
    names, wanted = without(explorer.collection.about(row)["id"], hit)
    found = answer["found"][1][0]
    assert [answer["about"][r]["id"] for r in found] == names
    np.testing.assert_allclose([answer["coded"][1][r] for r in found], wanted, rtol=1e-5, atol=1e-4)


def without(name: str, hit: dict) -> tuple[list[str], list[float]]:
    """The first five ids and scores of a hit list without an id."""
    kept = [pair for pair in zip(hit["ids"], hit["scores"], strict=True) if pair[0] != name][:5]
    return [one for one, _ in kept], [score for _, score in kept]


def test_exact_neighbours_and_distances_are_those_of_the_rows(explorer: Explorer, rows: np.ndarray) -> None:
    answer = explorer.item(3)
    far = ((rows - rows[3]) ** 2).sum(axis=1)
    assert answer["exact"] == np.argsort(far, kind="stable")[1:6].tolist()
    for row, score in answer["true"].items():
        assert score == pytest.approx(far[row], rel=1e-4, abs=1e-4)
    for row, score in answer["coded"][0].items():
        decoded = explorer.collection.views[0].decoded(np.array([row]))[0]
        assert score == pytest.approx(((decoded - rows[3]) ** 2).sum(), rel=1e-3, abs=1e-3)


def others(order: np.ndarray, row: int, k: int = 5) -> list[int]:
    """The first k of an order of vectors without one of them."""
    return [other for other in order.tolist() if other != row][:k]


@each(("metric", "norms"), [("ip", False), ("ip", True), ("cosine", False)])
def test_other_metrics(metric: str, norms: bool, rows: np.ndarray) -> None:
    quantizer = nk.ProductQuantizer(4, 32, random_state=0)
    index = nk.Index.build(rows, quantizer, metric=metric, keep_vectors=True, norms=norms)
    collection = Collection(index, k=5)
    (answer,) = collection.answers(np.array([4]))
    X = rows if metric == "ip" else rows / np.linalg.norm(rows, axis=1, keepdims=True)
    products = X @ X[4]
    assert answer.exact == others(np.argsort(-products, kind="stable"), 4)
    scores, found = index.search(rows[4:5], 6)
    assert answer.found[0][0] == others(found[0], 4)
    np.testing.assert_allclose([answer.coded[0][row] for row in found[0].tolist()], scores[0], rtol=1e-5)
    for row, score in answer.true.items():
        assert score == pytest.approx(products[row], rel=1e-4, abs=1e-5)
    decoded = collection.views[0].decoded(np.arange(N))
    for row, score in answer.coded[0].items():
        assert score == pytest.approx(decoded[row] @ X[4], rel=1e-4, abs=1e-4)


def test_bits_are_asked_with_the_vectors_given(rows: np.ndarray) -> None:
    index = nk.Index.build(rows, nk.ITQ(n_bits=8, random_state=0), metric="hamming")
    with pytest.raises(ValueError, match="keep_vectors=True"):
        Collection(index)
    (answer,) = Collection(index, rows, k=5).answers(np.array([4]))
    scores, found = index.search(rows[4:5], 6)
    assert answer.found[0][0] == others(found[0], 4)
    assert [answer.coded[0][row] for row in found[0].tolist()] == scores[0].tolist()


def test_without_exact_rows_the_codes_alone_are_shown(rows: np.ndarray) -> None:
    index = nk.Index.build(rows, nk.ProductQuantizer(2, 8, random_state=0))
    collection = Collection(index, k=5)
    (answer,) = collection.answers(np.array([4]))
    assert (answer.exact, answer.true) == (None, {})
    assert answer.found == [[others(index.search(collection.vectors(np.array([4])), 6)[1][0], 4)]]


def test_an_inverted_file_that_visits_one_list(rows: np.ndarray) -> None:
    index = nk.Index.build(rows, nk.ProductQuantizer(2, 8, n_lists=12, random_state=0), n_probe=1, keep_vectors=True)
    collection = Collection(index, k=50)
    (answer,) = collection.answers(np.array([0]))
    assert 0 < len(answer.found[0][0]) < 50  # the list holds no more, and what is missing is no row
    assert all(0 not in one and -1 not in one for one in answer.found[0])
    lists = collection.views[0].lists()
    assert lists is not None
    assert len(set(lists[answer.found[0][0]])) == 1
    assert lists.min() >= 0


@each("metric", ["l2", "ip", "cosine"])
def test_the_share_kept_counts_k_other_rows(metric: str, rows: np.ndarray) -> None:
    """The row itself was counted among its ten neighbours: 62.5 % were printed where 59.9 % were true."""
    index = nk.Index.build(rows, nk.quantization.ScalarQuantizer(4), metric=metric, keep_vectors=True)
    X = rows / np.linalg.norm(rows, axis=1, keepdims=True) if metric == "cosine" else rows

    def nearest(Y: np.ndarray) -> np.ndarray:  # the ten lines of NumPy: ten neighbours of X among other rows of Y
        far = ((X[:, None] - Y) ** 2).sum(axis=2) if metric == "l2" else -X @ Y.T
        np.fill_diagonal(far, np.inf)
        return np.argsort(far, axis=1)[:, :10]

    collection = Collection(index, k=10)
    exact, found = nearest(X), nearest(collection.views[0].decoded(np.arange(N)))
    share = np.mean([len(set(e) & set(f)) / 10 for e, f in zip(exact, found, strict=True)])
    columns = Columns(collection)
    columns.run()
    (shown,) = Explorer("idx", collection, columns).about()["indexes"]
    assert 0.5 < share < 0.95
    assert shown["recall"] == pytest.approx(share, abs=1.5 / (10 * N))
    answer = Explorer("idx", collection, columns).item(7)
    assert answer["exact"] == exact[7].tolist()
    assert 7 not in answer["found"][0][0]
    assert len(answer["found"][0][0]) == 10


def test_no_share_is_shown_where_a_search_returns_all_rows(rows: np.ndarray) -> None:
    """Of ten rows, ten neighbours were "100 % kept"."""
    index = nk.Index.build(rows[:10], nk.ProductQuantizer(2, 8, random_state=0), keep_vectors=True)
    for k in (9, 10, 20):
        collection = Collection(index, k=k)
        columns = Columns(collection)
        columns.run()
        (shown,) = Explorer("idx", collection, columns).about()["indexes"]
        assert shown["recall"] is None
        assert "lost0" not in columns.colours


def test_what_is_searched_is_found_first_by_id(explorer: Explorer, folder: Path) -> None:
    find = explorer.collection.find
    assert [explorer.collection.about(row)["id"] for row in find("item-11")][:2] == ["item-11", "item-110"]
    assert find("ONERROR") == [0]
    assert find("  ") == find("nothing like it") == []
    named = open_collection(folder / "idx", texts=f"{folder}/texts.csv", ids_column="id")
    assert named.find("said of 33") == [33]
    assert named.about(33)["text"] == "said of 33"
    assert named.about(0)["text"] == ""


def test_all_columns_of_a_table_are_read_and_searched(folder: Path, tmp_path: Path) -> None:
    """Of a table with several columns only the one called "text" could be seen; one with vectors was refused."""
    lines = [{"id": f"item-{n}", "name": f"film {n}", "price (EUR)": n / 4, "v": [n]} for n in range(N - 1, 1, -1)]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, lines)))
    collection = open_collection(folder / "idx", texts=f"{tmp_path}/items.jsonl", ids_column="id")
    assert collection.about(9)["more"] == {"name": "film 9", "price (EUR)": "2.25"}
    assert collection.about(1)["more"] == {"name": "", "price (EUR)": ""}  # a row that the table does not have
    assert collection.find("film 77") == collection.find("19.25") == [77]


def test_an_exact_index_and_a_map_show_their_own_rows(rows: np.ndarray, tmp_path: Path) -> None:
    (answer,) = Collection(nk.Index.build(rows), k=5).answers(np.array([4]))
    assert answer.exact == answer.found[0][0]
    assert all(answer.true[row] == pytest.approx(answer.coded[0][row], abs=1e-4) for row in answer.rows())
    comparisons = nk.data.comparisons_from_vectors(rows[:12, :2], 300, random_state=0)
    model = nk.OrdinalEmbedding(random_state=0).fit(comparisons)
    model.save(tmp_path / "map")
    collection = open_collection(tmp_path / "map", k=3)
    np.testing.assert_allclose(collection.vectors(np.arange(12)), model.embedding_, rtol=1e-6)


@each("metric", ["l2", "ip", "cosine"])
def test_a_copy_of_a_neighbour_is_not_a_neighbour_lost(metric: str) -> None:
    """Counted by row number, a code without any loss lost most of ten neighbours among equal rows."""
    X = np.repeat(np.eye(6, dtype=np.float32), 20, axis=0)[np.random.default_rng(0).permutation(120)]
    index = nk.Index.build(X, nk.quantization.ScalarQuantizer(16), metric=metric, keep_vectors=True)
    backwards = nk.Index.build(X[::-1].copy(), index.quantizer, np.arange(120)[::-1], metric)
    collection = Collection(index, other=backwards, k=10)
    assert collection.lost(np.arange(120)).max() == 0


def test_indexes_of_other_rows_cannot_be_compared(folder: Path, rows: np.ndarray, tmp_path: Path) -> None:
    nk.Index.build(rows[:50]).save(tmp_path / "fewer")
    with pytest.raises(ValueError, match="other vectors"):
        open_collection(folder / "idx", compare=tmp_path / "fewer")
    nk.Index.build(rows, ids=[HOSTILE, *(f"item-{n}" for n in range(1, N))], metric="ip").save(tmp_path / "products")
    with pytest.raises(ValueError, match="metric"):
        open_collection(folder / "idx", compare=tmp_path / "products")


@each(
    ("options", "said"),
    [
        ({"labels": "texts.csv", "ids_column": "name"}, "lacks"),
        ({"vectors": "images.npy"}, "images"),
        ({"vectors": "labels.npy"}, "labels"),
        ({"images": "X.npy"}, "pictures must be"),
        ({"images": "idx"}, "called like an id"),
    ],
)
def test_files_that_do_not_fit(folder: Path, options: dict[str, str], said: str) -> None:
    paths = {name: value if name == "ids_column" else f"{folder}/{value}" for name, value in options.items()}
    with pytest.raises(ValueError, match=said):
        open_collection(folder / "idx", **paths)  # pyright: ignore[reportArgumentType]
