"""What colours a map: errors, lists, neighbours lost; and where it puts the rows."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.web.explore import Collection, Columns, Explorer
from nearkin.web.explore.server import SAMPLE, STEPS, neighbour_preserving


def test_errors_and_losses_are_those_of_the_index(explorer: Explorer, rows: np.ndarray) -> None:
    columns = explorer.columns.colours
    for number, coded in enumerate(explorer.collection.views):
        decoded = coded.decoded(np.arange(len(rows)))
        np.testing.assert_allclose(columns[f"error{number}"].values, ((rows - decoded) ** 2).sum(axis=1), rtol=1e-4)
        lost = columns[f"lost{number}"].values
        for row in (0, 50, 119):
            answer = explorer.item(row)
            assert lost[row] == len(set(answer["exact"]) - set(answer["found"][number][0]))
    kept = explorer.about()["indexes"]
    assert kept[0]["recall"] == pytest.approx(1 - columns["lost0"].values.mean() / 5)
    assert kept[1]["recall"] > kept[0]["recall"]


def test_the_map_is_two_columns_or_two_axes(rows: np.ndarray) -> None:
    flat = Columns(Collection(nk.Index.build(rows[:, :2])))
    np.testing.assert_array_equal(flat.layouts["map"].values, rows[:, :2])
    axes = Columns(Collection(nk.Index.build(rows))).layouts["pca"].values
    centred = rows - rows.mean(axis=0)
    spread = np.linalg.svd(centred, compute_uv=False)[:2]
    np.testing.assert_allclose(np.linalg.norm(axes, axis=0), spread, rtol=1e-3)
    assert Columns(Collection(nk.Index.build(rows[:, :1]))).layouts["pca"].values.shape == (len(rows), 2)


def test_of_many_rows_some_are_drawn(rows: np.ndarray) -> None:
    columns = Columns(Collection(nk.Index.build(rows)), most=30)
    assert len(columns.rows) == len(columns.layouts["pca"].values) == 30
    assert (np.diff(columns.rows) > 0).all()


def test_rows_beyond_the_sample_lie_among_their_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SAMPLE >= 1000
    monkeypatch.setattr("nearkin.web.explore.server.SAMPLE", 60)
    monkeypatch.setattr("nearkin.web.explore.server.STEPS", STEPS)  # as in use
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 150)
    X = (rng.normal(size=(150, 6)) + 40 * labels[:, None]).astype(np.float32)
    places = neighbour_preserving(Collection(nk.Index.build(X)), np.arange(150))
    middle = np.stack([places[labels == side].mean(axis=0) for side in (0, 1)])
    nearer = np.linalg.norm(places[:, None] - middle, axis=2).argmin(axis=1)
    assert (nearer == labels).all()
