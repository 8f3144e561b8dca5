"""`push_to_hub`, tried against a local stand-in for the Hub's HTTP interface; the real server was never asked."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk

pytest.importorskip("huggingface_hub", reason="needs the extra hub")
X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)


class Hub(BaseHTTPRequestHandler):
    """Takes a repository, and one commit of files whose content comes with it."""

    asked: list[tuple[str, object]]
    files: dict[str, bytes]

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        found = [json.loads(line) for line in text.splitlines()]
        here = f"http://{self.headers['Host']}/me/idx"
        type(self).asked.append((self.path, found[0]))
        if self.path.endswith("/create"):
            answer: object = {"url": here, "name": "me/idx", "id": "me/idx"}
        elif "/preupload/" in self.path:
            kept = {"uploadMode": "regular", "shouldIgnore": False}
            answer = {"files": [{"path": file["path"], **kept} for file in found[0]["files"]]}
        else:
            given = [line["value"] for line in found if line["key"] == "file"]
            type(self).files |= {file["path"]: base64.b64decode(file["content"]) for file in given}
            answer = {"commitUrl": f"{here}/commit/1", "commitOid": "1", "success": True}
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    Hub.asked, Hub.files = [], {}
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    quantizer = nk.ProductQuantizer(4, 16, max_iter=2, random_state=0)
    nk.Index.build(X, quantizer, ids=[f"r{i}" for i in range(300)]).save(tmp_path / "idx")
    return tmp_path / "idx"


def test_the_uploaded_files_are_the_index(hub: str, folder: Path, tmp_path: Path) -> None:
    (folder / "my notes.txt").write_text("stay here")
    assert nk.export.push_to_hub(folder, "me/idx", endpoint=hub) == f"{hub}/me/idx/commit/1"
    assert Hub.asked[0][0] == "/api/repos/create"
    assert "private" in str(Hub.asked[0][1])  # "private": true, or "visibility": "private" by the version
    own = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    del own["my notes.txt"]
    assert Hub.files == own
    for name, content in Hub.files.items():
        (tmp_path / "down" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "down" / name).write_bytes(content)
    found, expected = (nk.Index.load(path).search(X[:20], 5)[1] for path in (tmp_path / "down", folder))
    np.testing.assert_array_equal(found, expected)


def test_a_damaged_folder_is_not_uploaded(hub: str, folder: Path) -> None:
    (folder / "index.faiss").write_bytes(b"x" + (folder / "index.faiss").read_bytes()[1:])
    with pytest.raises(ValueError, match=r"index\.faiss"):
        nk.export.push_to_hub(folder, "me/idx", endpoint=hub)
    (folder / "manifest.json").unlink()
    with pytest.raises(ValueError, match=r"has no manifest\.json"):
        nk.export.push_to_hub(folder, "me/idx", endpoint=hub)
    assert Hub.asked == []
