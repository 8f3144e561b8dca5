"""cblearn's tests of its estimators on `OrdinalEmbedding`: checks of scikit-learn, restarts, gradients."""

from typing import Any

import numpy as np

import nearkin as nk
from nearkin.embedding.ordinal.losses import get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows, unpad_rows
from tests.peers.kits import found, load, tests_of

found("cblearn", "cblearn/embedding/tests")
import cblearn.embedding  # noqa: E402
import cblearn.embedding._soe  # noqa: E402
import sklearn.utils._tags  # noqa: E402
from sklearn.utils import estimator_checks  # noqa: E402

OTHERS = {
    r"MLDS": "cblearn's own estimator of scales",
    "transform_warns|make_pipeline": "as scikit-learn's MDS and TSNE it has fit_transform and no transform",
    r"all_estimators\[(STE|TSTE|CKL|GNMDS)": "the checks of SOE",  # they differ in the loss alone
    "monkeypatch|array_api": "of the test's own set-up",
    "n_features_in": "a table of comparisons has no features",
    "positive_only|complex|empty_data|predict1d|dtype_object|sparse_tag": "the error has other words",
    "pickle|dict_unchanged|idempotent|dtypes": "SOE has no probabilities: predict_proba is an error and not absent",
}


def stand_in(name: str, loss: str) -> type:
    """An estimator of this loss under cblearn's name."""

    class Estimator(nk.OrdinalEmbedding):
        def __init__(self, n_components: int = 2, *, n_init: int = 1, random_state: Any = None) -> None:
            super().__init__(n_components, loss=loss, n_init=n_init, random_state=random_state)

    Estimator.__name__ = Estimator.__qualname__ = name
    return Estimator


def soe_loss(x: np.ndarray, shape: tuple[int, int], quadruplets: np.ndarray, margin: float) -> Any:
    objective = OrdinalObjective(quadruplets, shape[0], get_loss("soe", shape[1], margin), dtype=np.float64)
    X = pad_rows(x.reshape(shape), np.float64)
    return objective.value(X) / shape[0], unpad_rows(objective.gradient(X), shape[1]).ravel() / shape[0]


sklearn.utils._tags._DEFAULT_TAGS = {}
sklearn.utils._tags._safe_tags = lambda estimator, key=None: {"triplets": True} if key is None else key == "triplets"
enforced = estimator_checks._enforce_estimator_tags_X
estimator_checks._enforce_estimator_tags_X = lambda estimator, X, kernel=None: enforced(estimator, X)  # other arguments
for name, loss in {"SOE": "soe", "STE": "ste", "TSTE": "t-ste", "CKL": "ckl", "GNMDS": "gnmds"}.items():
    setattr(cblearn.embedding, name, stand_in(name, loss))
cblearn.embedding._soe.SOE, cblearn.embedding._soe._soe_loss = cblearn.embedding.SOE, soe_loss
for name in ("test_soe", "test_sklearn_estimator_checks"):
    globals().update(tests_of(load("cblearn", f"cblearn/embedding/tests/{name}.py")))
del tests_of
