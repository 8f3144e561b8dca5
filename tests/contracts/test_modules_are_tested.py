"""Every module has a test file of its own name, or is named here with the test that stands for it."""

from pathlib import Path

import pytest

SRC, TESTS = Path(__file__).parents[2] / "src" / "nearkin", Path(__file__).parents[1]
STANDS_FOR = {  # a file of tests -> the modules that it runs, beside the one of its own name
    "cli/test_app.py": "__main__ _types cli/ask cli/demo cli/explore cli/options cli/report cli/screen "
    "cli/similar cli/sweep pipeline/embed/embed pipeline/pages/demo",
    "cli/test_change.py": "_fields pipeline/change",
    "cli/test_check.py": "pipeline/check",
    "cli/test_evaluate.py": "pipeline/evaluate/evaluate pipeline/hits",
    "cli/test_export.py": "export/export export/folders export/registry export/target pipeline/export",
    "cli/test_recommend.py": "cli/answers embedding/saved_towers pipeline/recommend/similar",
    "cli/test_search.py": "_words",
    "contracts/test_hashers.py": "hashing/base hashing/pca_hash",
    "contracts/test_optimizers.py": "orthogonal/optimizer",
    "contracts/test_ordinal_solvers.py": "embedding/ordinal/gram embedding/ordinal/objective embedding/ordinal/solving "
    "solvers/adagrad solvers/finite_sum solvers/monitor",
    "contracts/test_pair_losses.py": "embedding/all_pairs/pair_losses",
    "contracts/test_tower_solvers.py": "embedding/two_tower/batch_losses/batch_loss "
    "embedding/two_tower/optimizer_state embedding/two_tower/batch_losses/in_batch_hinge "
    "embedding/two_tower/batch_losses/in_batch_softmax "
    "embedding/two_tower/batch_losses/sampled_bce embedding/two_tower/plan embedding/two_tower/solvers/adam "
    "embedding/two_tower/solvers/full_batch embedding/two_tower/solvers/mini_batches "
    "embedding/two_tower/solvers/tower_solver embedding/two_tower/tower_pair",
    "data/comparisons/test_reading.py": "data/comparisons/forms data/comparisons/roles data/comparisons/split",
    "data/comparisons/test_responses.py": "data/comparisons/ratings",
    "data/test_columns.py": "data/column data/describe data/read_errors data/formats/npy data/formats/npz "
    "data/formats/parquet data/header data/names data/tables",
    "data/test_delimited.py": "data/formats/text data/formats/text_layout data/locator",
    "data/test_experiments.py": "data/signals",
    "data/test_frames.py": "data/row_ids",
    "data/test_interaction_split.py": "data/interaction_synthetic",
    "data/test_vectors.py": "data/formats/file_rows data/formats/vecs",
    "distributed/test_processes.py": "_distributed _shards",
    "embedding/all_pairs/test_loss.py": "_pairs embedding/all_pairs/constants",
    "embedding/all_pairs/test_products.py": "embedding/all_pairs/kernels embedding/all_pairs/prefetch",
    "embedding/ordinal/test_estimator.py": "data/comparisons/synthetic embedding/ordinal/dimension "
    "embedding/ordinal/matching",
    "embedding/two_tower/solvers/test_als.py": "embedding/two_tower/branch_regression",
    "embedding/two_tower/solvers/test_sphere.py": "embedding/two_tower/cosine_softmax",
    "embedding/two_tower/test_estimator.py": "embedding/two_tower/fitting embedding/two_tower/storage",
    "export/test_pgvector.py": "export/postgres",
    "export/test_self_check.py": "export/extras export/source",
    "export/test_servers.py": "export/aliased export/milvus export/opensearch",
    "hashing/test_linear.py": "hashing/sign_moments",
    "hashing/test_one.py": "hashing/alternation hashing/encoder",
    "hashing/test_stable_products.py": "hashing/affine_values",
    "hashing/test_registry.py": "hashing/loading",
    "index/test_changes.py": "index/faiss_rows _guard index/identifiers",
    "index/test_faiss_file.py": "index/faiss_format",
    "index/test_index.py": "contracts index/empty index/fitting index/merging index/metrics index/saved",
    "linalg/test_exponential.py": "linalg/products",
    "orthogonal/test_givens_descent.py": "orthogonal/names orthogonal/selection",
    "pipeline/compress/test_compress.py": "pipeline/folder",
    "pipeline/embed/test_interactions.py": "pipeline/embed/towers_folder pipeline/embedding_folder pipeline/judging",
    "pipeline/encode/test_shards.py": "pipeline/batch_encoder pipeline/encode/batch_encoder pipeline/encode/manifest",
    "pipeline/evaluate/test_hash_study.py": "pipeline/pages/hash_study",
    "pipeline/recommend/test_recommend.py": "pipeline/recommend/sides",
    "pipeline/rotate/test_rotate.py": "pipeline/rotate/engines",
    "pipeline/sweep/test_sweep.py": "pipeline/sweep/choose pipeline/sweep/diagnose pipeline/sweep/page "
    "pipeline/sweep/answer pipeline/sweep/forecast pipeline/sweep/race pipeline/sweep/trial",
    "pipeline/train/test_train.py": "pipeline/left_side pipeline/pages/trained",
    "plots/test_labels.py": "plots/style",
    "quantization/layer/test_layer.py": "quantization/layer/centroids quantization/layer/phases "
    "quantization/layer/rotation quantization/layer/straight_through",
    "quantization/test_best.py": "quantization/product_residual",
    "quantization/test_product.py": "quantization/coarse quantization/training",
    "quantization/test_outliers.py": "quantization/training_rows",
    "quantization/test_residual.py": "quantization/additive_estimator",
    "quantization/test_rotation.py": "quantization/givens_update",
    "reference/test_ordinal_kernels.py": "embedding/ordinal/kernels",
    "report/test_page.py": "report/parts",
    "solvers/test_others.py": "solvers/gradient_descent solvers/lbfgs solvers/relay solvers/sgd",
    "solvers/test_svrg.py": "solvers/barzilai_borwein",
    "storage/test_arrays.py": "_storage/files",
    "storage/test_folders.py": "_storage/mapped",
    "storage/test_replacing.py": "_storage/exchange",
    "contracts/test_ecosystem.py": "_transformers",
    "test_check.py": "_random",
    "test_statistics.py": "cell_sums",
    "test_pages.py": "pipeline/pages/folder",
    "test_persistence.py": "_storage/saved_arrays",
    "web/ask/test_items.py": "web/ask/job",
    "web/ask/test_survey.py": "web/ask/journal web/ask/questions web/ask/raters web/ask/results web/ask/table",
    "web/explore/test_app.py": "web/drawing web/explore/job web/explore/opening web/serving",
    "web/explore/test_collection.py": "web/explore/beside web/explore/coded web/explore/explorer",
    "web/explore/test_measures.py": "web/explore/layout",
    "web/explore/test_page.py": "web/explore/swept",
}
ELSEWHERE = {module: test for test, modules in STANDS_FOR.items() for module in modules.split()}
MODULES = [file.relative_to(SRC).with_suffix("").as_posix() for file in sorted(SRC.rglob("*.py"))]
MODULES = [name for name in MODULES if not name.endswith("__init__")]


def own_test(module: str) -> str:
    """Where the tests of a module stand: tests/ mirrors src/, without the underscores of private names."""
    *folders, name = (part.lstrip("_") for part in module.split("/"))
    return "/".join([*folders, f"test_{name}.py"])


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_its_test(module: str) -> None:
    own, other = own_test(module), ELSEWHERE.get(module)
    assert (TESTS / (other or own)).is_file(), f"write tests/{own}, or name the test that stands for {module}"
    assert other is None or not (TESTS / own).is_file(), f"{module} has a test file now: take it from the list"


def test_the_list_names_modules_that_exist_once() -> None:
    named = " ".join(STANDS_FOR.values()).split()
    assert set(named) <= set(MODULES)
    assert len(named) == len(set(named))
