"""The study of hashing methods: judged on rows held out, and shown in the report of the index it was made for."""

from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.pipeline.evaluate import evaluate_folder, study_hashing
from nearkin.pipeline.pages import folder_page


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 400)
    centres = rng.normal(size=(5, 20)) * 3
    return (centres[labels] + rng.normal(size=(400, 20))).astype(np.float32), labels


@pytest.fixture(scope="module")
def study(rows: tuple[np.ndarray, np.ndarray]) -> dict:
    return study_hashing(rows[0], 8, rows[1])


def test_every_method_at_every_length_that_the_rows_allow(study: dict) -> None:
    tried = {(entry["method"], entry["bits"]) for entry in study["bits"]}
    assert {method for method, bits in tried if bits == 8} >= {"lsh", "pca-hash", "itq", "one", "oge", "spherical"}
    assert {bits for _, bits in tried} == {8, 16}  # 20 columns: no 32 bits, and half of 8 is raised to 8
    assert study["rows"] + study["queries"] == 400


def test_learned_bits_keep_labels_better_than_random_ones(study: dict) -> None:
    by_method = {entry["method"]: entry["label map"] for entry in study["bits"] if entry["bits"] == 8}
    assert by_method["itq"] > by_method["lsh"] + 0.05, by_method


def test_a_larger_scale_loses_variance(study: dict) -> None:
    """SCQ, Figure 4: the scale trades retained variance for quantization loss."""
    kept = {entry["multiple"]: entry["retained variance"] for entry in study["scales"] if entry["method"] == "oge"}
    assert kept[0.25] > kept[8.0] + 0.05, kept


def test_without_labels_only_neighbours_are_judged(rows: tuple[np.ndarray, np.ndarray]) -> None:
    heard = []
    found = study_hashing(rows[0][:120], 8, callback=lambda step, record: heard.append((step, record["total"])))
    assert all("label map" not in entry and 0 <= entry["neighbour map"] <= 1 for entry in found["bits"])
    assert heard[-1][0] == heard[-1][1]


def test_it_is_part_of_the_report(rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, labels = rows
    np.save(tmp_path / "X.npy", X)
    nk.Index.build(X, nk.OgE(n_bits=8, random_state=0), metric="hamming").save(tmp_path / "bits")
    base = nk.data.open_vectors(tmp_path / "X.npy")
    options = {"base": base, "labels": labels, "query_labels": labels[:9], "study": True}
    record = evaluate_folder(tmp_path / "bits", X[:9], **options)
    assert record["study"]["bits"]
    page = folder_page(tmp_path / "bits").html()
    assert page[page.index("Methods, bits and scale") :].count("<svg") == 6  # two by bits, four by scale


def test_it_needs_bits_and_vectors(rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, _ = rows
    nk.Index.build(X, nk.ITQ(n_bits=8, random_state=0), metric="hamming").save(tmp_path / "bits")
    with pytest.raises(ValueError, match="study is for an index of bits"):
        evaluate_folder(tmp_path / "bits", X[:9], study=True)
