"""What plain FAISS can do with the file of a saved index under integer ids: the table of docs/api/answers.md."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from faiss.contrib.ondisk import merge_ondisk

import nearkin as nk
from nearkin.quantization import AxisQuantizer, ResidualQuantizer, ScalarQuantizer
from tests.covering import each

X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
IDS = 1000 + 3 * np.random.default_rng(1).permutation(300)
GUIDE = Path(__file__).parents[2] / "docs" / "api" / "answers.md"
COLUMNS = ("search", "range_search", "reconstruct", "remove_ids", "selector", "merge_ondisk")


def product(n_centroids: int, n_lists: int = 0) -> nk.ProductQuantizer:
    return nk.ProductQuantizer(4, n_centroids, n_lists=n_lists, max_iter=2, random_state=0)


def sums(n_centroids: int, n_lists: int = 0) -> ResidualQuantizer:
    return ResidualQuantizer(3, n_centroids, n_lists=n_lists, max_iter=2, random_state=0)


KINDS = {
    "exact": None,
    "product": product(32),
    "product, lists": product(16, 5),
    "residual": sums(32),
    "residual, lists": sums(32, 5),
    "scalar": ScalarQuantizer(8),
    "axes": AxisQuantizer(3),
    "bits": nk.RandomHyperplanes(24, random_state=0),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each kind, and a second one under ids that follow those of the first."""
    place = tmp_path_factory.mktemp("kinds")
    for kind, quantizer in KINDS.items():
        metric = "hamming" if kind == "bits" else "l2"
        index = nk.Index.build(X, quantizer, IDS, metric, n_probe=5)
        index.save(place / kind)
        nk.Index.build(X, index.quantizer, IDS + 1, metric, n_probe=5).save(place / f"{kind} 2")
    return place


def operations(kind: str, folders: Path, tmp_path: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What FAISS is asked: AssertionError for a wrong answer, RuntimeError for what it does not have."""
    index, file = nk.Index.load(folders / kind), str(folders / kind / "index.faiss")
    binary, lists = kind == "bits", index.n_lists is not None
    asked = index.quantizer.encode(X[:3]) if binary else X[:3]

    def read() -> Any:
        return faiss.read_index_binary(file) if binary else faiss.read_index(file)

    scores, ids = read().search(asked, 300)

    def search() -> None:
        assert set(ids.ravel()) <= set(IDS)

    def range_search() -> None:
        values = np.sort(scores[0][np.isfinite(scores[0])].astype(float))
        place = np.diff(values[:-9]).argmax()
        r = int(values[100]) if binary else (values[place] + values[place + 1]) / 2
        limits, _, found = read().range_search(asked, r)
        assert set(found[: limits[1]]) == set(ids[0][scores[0] < r])

    def reconstruct() -> None:
        found = read()
        if lists:
            faiss.extract_index_ivf(found).set_direct_map_type(faiss.DirectMap.Hashtable)
        rows = np.stack([found.reconstruct(int(name)) for name in IDS[[5, 7]]])
        wanted = index.quantizer.encode(X[[5, 7]]) if binary else index.vectors(IDS[[5, 7]])
        np.testing.assert_allclose(rows, wanted, atol=1e-4)

    def remove_ids() -> None:
        found = read()
        assert found.remove_ids(IDS[:10]) == 10
        assert not set(found.search(asked, 290)[1].ravel()) & set(IDS[:10])

    def selector() -> None:
        found, few = read(), faiss.IDSelectorBatch(IDS[:50])
        params = faiss.SearchParametersIVF(sel=few, nprobe=5) if lists else faiss.SearchParameters(sel=few)
        if isinstance(found, faiss.IndexPreTransform):
            params = faiss.SearchParametersPreTransform(index_params=params)
        assert set(found.search(asked, 10, params=params)[1].ravel()) <= set(IDS[:50])

    def merge() -> None:
        found = read()
        found.reset()
        merge_ondisk(found, [file, str(folders / f"{kind} 2" / "index.faiss")], str(tmp_path / "lists"))
        assert set(found.search(asked, 600)[1].ravel()) - {-1} == {*IDS, *(IDS + 1)}

    calls = (search, range_search, reconstruct, remove_ids, selector, merge)
    yield from zip(COLUMNS, calls if lists else calls[:-1], strict=False)


@each("kind", KINDS)
def test_the_guide_lists_what_faiss_can_do_with_a_saved_index(kind: str, folders: Path, tmp_path: Path) -> None:
    found = dict.fromkeys(COLUMNS, "")
    for name, call in operations(kind, folders, tmp_path):
        try:
            call()
            found[name] = "yes"
        except (AssertionError, RuntimeError):
            found[name] = "no"
    line = f"| {kind} | {' | '.join(found.values())} |"
    assert line in GUIDE.read_text(encoding="utf-8").splitlines(), f"write into {GUIDE.name}: {line}"
