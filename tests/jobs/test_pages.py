"""Pages of folders that `nearkin embed` wrote: drawings in the page's colours, settings that people can read."""

from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin import jobs
from nearkin.jobs.embed_comparisons import embed_comparisons
from tests.covering import each


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("pages")
    points = np.random.default_rng(0).normal(size=(8, 2))
    answers = nk.data.comparisons_from_vectors(points, 150, random_state=0).indices
    np.savetxt(
        folder / "a.csv",
        answers[:, [0, 1, 3]] if answers.shape[1] == 4 else answers,
        fmt="%d",
        delimiter=",",
        header="anchor,near,far",
        comments="",
    )
    with pytest.MonkeyPatch.context() as patch:  # few fits
        patch.setattr(nk.OrdinalEmbedding.bootstrap, "__defaults__", (8,))
        patch.setattr("nearkin.jobs.embed_comparisons.SHARES", (0.5,))
        patch.setattr("nearkin.jobs.embed_comparisons.DIMENSIONS", (1,))
        embed_comparisons(folder / "a.csv", out=folder / "map", dim=2)
    return jobs.pages.folder_page(folder / "map").html()


def test_saved_drawings_follow_the_page(page: str) -> None:
    """The map was dark on dark: drawings from the folder had their colours, not the page's."""
    drawing = page[page.index("<svg") : page.index("</svg>")]
    assert "var(--ink, #1c2230)" in drawing
    assert "var(--series-1, " in drawing
    assert 'id="map-' in drawing


def test_the_page_of_towers_states_their_size(tmp_path: Path) -> None:
    pairs = nk.data.planted_interactions(30, 20, random_state=0).interactions
    towers = nk.TwoTower(5, loss="all-pairs", solver=nk.embedding.ALS(max_iter=1), regularization=0.1, random_state=0)
    towers.fit(pairs).save(tmp_path / "emb")
    text = jobs.pages.folder_page(tmp_path / "emb").html()
    assert f"Trained on {len(pairs):,} pairs" in text
    assert "in 5 dimensions" in text


def test_long_settings_may_wrap(page: str) -> None:
    assert '<div class="scroll settings"' in page


@each(("objective", "curves"), [(2.0, 1), (2.5, 2)])
def test_an_objective_that_is_the_distortion_is_drawn_once(objective: float, curves: int) -> None:
    history = [{"objective": 3.0, "distortion": 3.0}, {"objective": objective, "distortion": 2.0}]
    section = jobs.pages._learning({"history": history})
    assert section is not None
    assert section.body.count("<svg") == curves
