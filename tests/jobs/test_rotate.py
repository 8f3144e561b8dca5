"""Vectors turned for other engines' codes, and the engines in which that gains nothing."""

from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.jobs.rotate import ENGINES, codec_for
from tests.cli.conftest import refused, run_json
from tests.covering import each


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """X.npy, whose columns matter very unequally, and Q.npy of the same law."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("rotate")
    law = rng.normal(size=(16, 16)) * np.geomspace(5, 0.1, 16)[:, None]
    for name, n in (("X", 1500), ("Q", 40)):
        np.save(folder / f"{name}.npy", (rng.normal(size=(n, 16)) @ law).astype(np.float32))
    return folder


@each(("center", "ending"), [(False, ".parquet"), (True, ".npy")])
def test_distances_stay_and_queries_follow(folder: Path, tmp_path: Path, center: bool, ending: str) -> None:
    """With the mean taken off, off the queries too."""
    X, Q = (nk.read_vectors(folder / name) + 7 * center for name in ("X.npy", "Q.npy"))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Q.npy", Q)
    options = ["--for", "pgvector-bit", *(["--center"] if center else []), "--out", tmp_path / f"Xr{ending}"]
    made = run_json("rotate", tmp_path / "X.npy", *options)
    assert made["gain"] >= 0
    run_json("rotate", tmp_path / "Q.npy", "--with", made["rotation"], "--out", tmp_path / "Qr.npy")
    Xr, Qr = (nk.read_vectors(tmp_path / name) for name in (f"Xr{ending}", "Qr.npy"))
    distances, turned = (np.linalg.norm(a[:, None] - b[:40], axis=2) for a, b in ((Q, X), (Qr, Xr)))
    np.testing.assert_allclose(turned, distances, rtol=1e-3, atol=1e-3)
    if center:
        assert np.linalg.norm(Xr.mean(axis=0)) < 1e-2
    else:
        np.testing.assert_allclose(Q @ X.T, Qr @ Xr.T, rtol=1e-3, atol=1e-2)


def test_queries_choose_the_rotation(folder: Path, tmp_path: Path) -> None:
    X, Q = (nk.read_vectors(folder / name) for name in ("X.npy", "Q.npy"))
    np.save(tmp_path / "Q.npy", Q[:, ::-1])  # unlike the rows
    options = ["--for", "faiss:SQ4", "--queries", tmp_path / "Q.npy", "--out", tmp_path / "Xr.npy"]
    made = run_json("rotate", folder / "X.npy", *options)
    direct = nk.Rotation(codec_for("faiss:SQ4", 16), random_state=0)
    assert list(made["recall"].values()) == [t["value"] for t in direct.fit(X, queries=Q[:, ::-1]).trials_]
    assert list(made["recall"].values()) != [t["value"] for t in direct.fit(X).trials_]
    assert made["queries"] == str(tmp_path / "Q.npy")


@each("engine", [*ENGINES, "faiss:SQ4"])
def test_every_engine_has_a_codec_or_a_reason(engine: str, folder: Path) -> None:
    if isinstance(ENGINES.get(engine), str):
        call = ("rotate", folder / "X.npy", "--for", engine, "--out", folder / "no.npy")
        refused(f"a rotation gains nothing for {engine}: ", *call)
        assert not (folder / "no.npy").exists()
        return
    X = nk.read_vectors(folder / "X.npy")[:700]
    assert nk.Rotation(codec_for(engine, 16), max_iter=1, random_state=0).fit(X).rotation_.shape == (16, 16)


def test_vectors_of_another_rotation_beside_it_are_noticed(folder: Path, tmp_path: Path) -> None:
    """A job that is killed between its two outputs leaves the new vectors with the old rotation."""
    for name, rows in (("a", 1500), ("b", 1400)):
        np.save(tmp_path / f"{name}.npy", np.load(folder / "X.npy")[:rows])
        run_json("rotate", tmp_path / f"{name}.npy", "--for", "faiss:SQ4", "--out", tmp_path / f"{name}_r.npy")
    (tmp_path / "a_r.npy").write_bytes((tmp_path / "b_r.npy").read_bytes())
    call = ("rotate", folder / "Q.npy", "--with", tmp_path / "a_r.rotation", "--out", tmp_path / "Q.npy")
    refused("a_r.npy is not the file that was written together with", *call)
    (tmp_path / "a_r.npy").unlink()
    run_json(*call)
