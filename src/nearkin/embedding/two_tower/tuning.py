"""A grid over the weight of unobserved pairs and the regularization, judged on held-out ranking."""

from collections.abc import Iterable
from typing import Any

from sklearn.base import clone

from nearkin._random import numpy_generator
from nearkin._types import Record
from nearkin.contracts import Callback, ignore
from nearkin.data.interaction_split import split_random
from nearkin.records import Interactions

SHARES = (0.25, 1.0, 4.0)  # of the omega that "auto" takes


def tune(
    model: Any,
    interactions: Interactions,
    validation: Interactions | None = None,
    *,
    omegas: Iterable[float | str] | None = None,
    regularizations: Iterable[float | str] = ("auto",),
    k: int = 100,
    callback: Callback | None = None,
) -> list[Record]:
    """Fit `model` at every point of the grid, set its parameters to the best and return all records, best first.

    A record has `omega`, `regularization` and `ndcg@k` on the validation pairs (a tenth of the pairs, held out, if none
    are given). The model itself is not fitted; the default grid is a quarter of, once and four times the omega of
    "auto", each with the regularization that suits it.
    """
    train = interactions
    if validation is None:
        parts = split_random(
            interactions, valid=model.validation_fraction, test=0, random_state=numpy_generator(model.random_state)
        )
        train, validation = parts.train, parts.valid
    if not len(validation):
        raise ValueError("validation has no pair; hold out more of them, or pass validation=")
    if omegas is None:
        from_auto = clone(model).set_params(loss__omega="auto").loss.objective(train).omega
        omegas = [share * from_auto for share in SHARES]
    records = []
    for omega in omegas:
        for regularization in regularizations:
            tried = clone(model).set_params(loss__omega=omega, regularization=regularization).fit(train)
            record = {"omega": tried.omega_, "regularization": tried.regularization_}
            record[f"ndcg@{k}"] = tried.score(validation, k=k)
            records.append(record)
            (callback or ignore)(len(records), dict(record))
    records.sort(key=lambda record: -record[f"ndcg@{k}"])
    model.set_params(loss__omega=records[0]["omega"], regularization=records[0]["regularization"])
    return records
