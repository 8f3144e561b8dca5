"""`nk.export.BatchEncoder`: batches of vectors to codes, as Ray, Spark and process pools call it."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import nearkin as nk
from nearkin._storage.manifest import write_manifest
from nearkin.export import BatchEncoder
from nearkin.index import Index
from tests.covering import each


@pytest.fixture(scope="module")
def model(bits: Index, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "idx"
    bits.save(folder)
    return folder


def test_an_index_by_cosine_normalises_first(X, tmp_path) -> None:
    index = Index.build(X, nk.ProductQuantizer(4, 16, random_state=0, max_iter=2), metric="cosine")
    index.save(tmp_path / "idx")
    np.testing.assert_array_equal(
        BatchEncoder(tmp_path / "idx").encode(X), index.quantizer.encode(X / np.linalg.norm(X, axis=1, keepdims=True))
    )


def test_a_batch_as_ray_and_spark_hand_it_over(model, bits, X) -> None:
    encoder = BatchEncoder(model)
    made = encoder({"id": np.arange(5), "vector": X[:5]})
    np.testing.assert_array_equal(made["codes"], bits.quantizer.encode(X[:5]))
    assert set(made) == {"id", "codes"}
    of_objects = np.empty(5, object)
    of_objects[:] = list(X[:5])
    np.testing.assert_array_equal(encoder({"vector": of_objects})["codes"], made["codes"])
    batch = pa.record_batch({"id": np.arange(5), "vector": pa.array(X[:5].tolist(), pa.list_(pa.float32()))})
    full, empty = encoder.arrow_batches([batch, batch[:0]])
    np.testing.assert_array_equal([list(code) for code in full["codes"].to_pylist()], made["codes"])
    assert (empty.num_rows, empty.schema) == (0, full.schema)
    with pytest.raises(ValueError, match="the batch has no column 'vector'; it has id"):
        encoder({"id": np.arange(5)})
    with pytest.raises(ValueError, match="X has 15 columns; it must have 16"):
        encoder({"vector": X[:5, :15]})


def test_an_encoder_goes_to_other_processes_as_ray_sends_it(model, bits, X) -> None:
    cloudpickle = pytest.importorskip("ray.cloudpickle", reason="pip install 'nearkin[ray]'")
    sent = cloudpickle.loads(cloudpickle.dumps(BatchEncoder(model)))
    np.testing.assert_array_equal(sent({"vector": X[:300]})["codes"], bits.quantizer.encode(X[:300]))


@pytest.mark.skipif("CI" not in os.environ, reason="a Ray cluster of ten processes takes half a minute: set CI=1")
@pytest.mark.filterwarnings("ignore")
def test_ray_data_maps_batches(model, bits, X) -> None:
    ray = pytest.importorskip("ray", reason="pip install 'nearkin[ray]'")
    table = pa.table({"id": np.arange(300), "vector": pa.array(X[:300].tolist(), pa.list_(pa.float32()))})
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        found = ray.data.from_arrow(table).map_batches(BatchEncoder(model)).take_all()  # a reader starts ten processes
    finally:
        ray.shutdown()
    found.sort(key=lambda row: row["id"])
    np.testing.assert_array_equal([row["codes"] for row in found], bits.quantizer.encode(X[:300]))


@each("kind", ["exact", "embedding"])
def test_a_model_without_codes(kind, X, tmp_path) -> None:
    if kind == "exact":
        Index.build(X).save(tmp_path / "model")
        message = "an index of exact vectors"
    else:
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "config.json").write_text('{"kind": "two tower", "format_version": 3}')
        write_manifest(tmp_path / "model", "two tower")
        message = "holds the kind 'two tower'; it must be an index or a quantizer"
    with pytest.raises(ValueError, match=message):
        BatchEncoder(tmp_path / "model").encode(X)
