"""Of an index trained with its towers: a user's history, and the list that `nearkin recommend` gives."""

from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import nearkin as nk
from nearkin._storage import replacing_folder
from nearkin.jobs.pairs import save_left
from nearkin.web.explore import Columns, Explorer, explore_app, open_collection
from tests.cli.conftest import run_json


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `nearkin train` saves it, and the exact right rows beside it."""
    folder = tmp_path_factory.mktemp("trained") / "idx"
    rng = np.random.default_rng(0)
    pairs = nk.data.planted_interactions(40, 60, random_state=0).interactions
    right = rng.normal(size=(60, 8)).astype(np.float32)
    index = nk.Index.build(right, nk.ProductQuantizer(4, 8, random_state=0), ids=np.arange(60) + 500, metric="ip")
    with replacing_folder(folder) as fresh:
        index.save(fresh)
        save_left(fresh, rng.normal(size=(40, 8)).astype(np.float32), pairs)
    np.save(folder.parent / "right.npy", right)
    return folder


def test_a_list_equals_nearkin_recommend(trained: Path) -> None:
    right = np.load(trained.parent / "right.npy")
    collection = open_collection(trained, vectors=f"{trained.parent}/right.npy", k=7)
    assert collection.left is not None
    with TestClient(explore_app(Explorer("idx", collection, Columns(collection)), "token")) as client:
        assert client.get("/token/about").json()["left"] == 40
        for row in (0, 13, 39):
            name = str(collection.left.left_ids[row])
            (said,) = run_json("recommend", trained, name, "-k", 7)["answers"]
            answer = client.get("/token/left", params={"id": name}).json()
            seen = collection.left.seen[row].indices.tolist()
            assert [thing["id"] for thing in answer["history"]] == [str(500 + place) for place in seen]
            assert [answer["about"][str(r)]["id"] for r in answer["found"][0][0]] == [str(i) for i in said["ids"]]
            scores = right @ collection.left.left[row]
            scores[seen] = -np.inf
            assert answer["exact"] == np.argsort(-scores, kind="stable")[:7].tolist()
        said = client.get("/token/left", params={"id": "nobody"})
        assert said.status_code == 400
        assert "nobody" in said.json()["error"]
        assert client.get("/wrong/left?id=0").status_code == 404


def test_an_index_without_a_left_side_says_so(explorer: Explorer) -> None:
    assert explorer.about()["left"] is None
    with pytest.raises(ValueError, match="nearkin train"):
        explorer.left_list("0")
