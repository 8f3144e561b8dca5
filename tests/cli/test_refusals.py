"""Calls that cannot be right: each ends in one line that names what was wrong or what to type, and writes nothing."""

import shlex
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

import nearkin as nk
from tests.cli.conftest import refused
from tests.covering import each

REFUSED = """
compress missing.npy | missing.npy does not exist
compress data.npz | holds 3 arrays; name one of
compress X.npy --bytes 9 --method opq | --bytes is 9; this method has no such codes for 8 columns, type --bytes 8
compress X.npy --bytes 4 --centroids 64 | --bytes is 4, no whole number of 6-bit codes (64 centroids); give a multiple
compress X.npy --bytes 0 | --bytes is 0; it must be an integer of at least 1
compress X.npy --bytes few | Invalid value for '--bytes'
compress X.npy --method magic | --method is 'magic'; it must be one of 'best', 'pq', 'opq', 'rq', 'lsq', 'sq8'
compress X.npy --metric hamming | metric for best is 'hamming'; it must be one of 'l2', 'ip'
compress X.npy --method itq --metric l2 | metric for itq is 'l2'; it must be one of 'hamming'
compress X.npy --minutes 1 --method pq | --minutes are for method best, which compares codecs; leave them
compress X.npy --ids labels.npy | occur more than once
compress X.npy --ids asked.npy | has 30 values, and 300 are needed
compress X.npy --bytes 4 --centroids 16 --lists 5000 | --lists 5000
compress X.npy --bytes 4 --keep-vectors=half | --keep-vectors is 'half'; it must be one of 'float32'
compress far.npy --bytes 4 --keep-vectors=float16 | type --keep-vectors=float32
compress nan.npy | nan.npy contains NaN or infinity (as float32) in 1 of 5 rows, the first is row 2
compress narrow.npy --method opq --bytes 1 | X has n_samples=5 vectors; --centroids 256 needs at least 256, give
compress emb --method none --bytes 2 | has n_samples=20 vectors; --centroids
compress zeros.npy --method int8 --metric cosine | zeros.npy has 2 rows of zeros among 40, the first is row 7
compress away.npy --metric cosine | float32 would round by more than 1/256 of its spread: divide rows
search idx wide.npy | Q has 9 columns; it must have 8
search idx Q.npy --oversample 2 | oversample needs kept vectors
search idx Q.npy --n-probe 3 | this index has none; make it with n_lists > 0
compress X.npy --keep-vectors int8 | as an option's value: --keep-vectors=int8
search idx Q.npy hits.csv | as an option's value: --out hits.csv
search empty Q.npy | has no config.json
evaluate idx | queries are missing; give QUERIES, or --base FILE alone
evaluate idx Q.npy --vectors X.npy | vectors are given by --base
evaluate idx Q.npy --truth short.npy | truth has 3 lists and there are 30 queries
evaluate idx Q.npy --truth from_1.npy | that the index lacks, the first is
evaluate idx Q.npy --truth truth.npy --n-probe few | --probe is 'few'
evaluate idx Q.npy --base short.npy | short.npy has shape (3, 8), and the index (300, 8)
evaluate idx Q.npy --base turned.npy | turned.npy has other vectors than the index, or the same in another order
evaluate idx Q.npy --labels labels.npy | give both
evaluate idx Q.npy --labels asked.npy --query-labels asked.npy | asked.npy has 30 values, and 300 are needed
evaluate idx Q.npy --labels labels.npy --query-labels labels.npy | labels.npy has 300 values, and 30 are needed
evaluate idx Q.npy --labels sevens.npy --query-labels sevens.npy | sevens.npy has columns with other values than 0 and 1
evaluate idx wide.npy --base X.npy | 9 columns
evaluate emb pairs.csv | give later pairs
remove idx | say which vectors to remove
remove idx nobody | id 'nobody' is not among the 300 known ids
remove idx 400 | type --unknown drop
remove X.npy 3 | has no config.json
add cosine zeros.npy | has 2 rows of zeros among 40
search cosine zeros.npy -k 3 | has 2 rows of zeros among 40
update idx Q.npy | say whose vectors these are
recommend emb | say who to recommend to
recommend emb nobody | user 'nobody' is not among the 20 known ids, such as u
recommend emb --all --candidates stock.txt | item 'gone' is not among the 20 known ids
recommend idx --all | holds an index and no left side to recommend to
similar emb | say what to find similar ones of
similar emb:up --all | the side in emb:up is 'up'; it must be one of 'left', 'right'
embed pairs.csv --start emb --dim 9 | has vectors of 4; leave dim out
embed pairs.csv --dim 0 | --dim is '0'
embed unclear.csv --loss hinge | --loss is 'hinge'; it must be one of auto, all-pairs
embed unclear.csv --form pair | --form is 'pair'
embed unclear.csv --scale 1-7 | --scale is '1-7'; it must be two numbers, FAR:NEAR
embed pairs.csv --min-weight four | --min-weight
embed unclear.csv --missing 9 | --missing is '9'; it must be one of 'raise', 'drop'
embed unclear.csv --left a --form triplet | --left is for pairs, and form for comparisons
embed pairs.csv --split time --loss ste | --split is for pairs, and --loss ste for comparisons
embed pairs.csv --left nobody --right item | --left is 'nobody', which
embed answers.csv --split time | no column with a usual name of left
embed pairs.csv --loss ste | do not tell how to read a row
embed three.csv | type --left ... and --right ..., of what ever, who, how
train pairs.csv --bytes 3 --dim 8 | --bytes is 3, of two parts each, as 256 centroids
train pairs.csv --bytes 3 --dim 8 | 6 parts do not divide --dim 8; give one of 1, 2, 4
train pairs.csv --bytes 8 --codes 16 | levels or codes make semantic ids
rotate X.npy | say what to rotate the vectors for
rotate X.npy --for oracle | --for is 'oracle'
rotate X.npy --for faiss:Nonsense | is no index that FAISS makes
rotate X.npy --with any --queries Q.npy | leave them out
rotate X.npy --for faiss:SQ4 --queries X.npy:a | X.npy:a
bridge X.npy | type --old FILE to train a map on pairs
ids X.npy --levels 1 --codes 32 | need 32 to 32^1 = 32: type other levels or codes
ids X.npy --codes 512 | ids need 512 to 512^3
ids X.npy --ids labels.npy | occur more than once
export idx --to faiss | --to is 'faiss'; it must be one of 'lance', 'pgvector'
export idx --to pgvector --out x | pgvector takes [--dsn, --name, --overwrite, --form]: got an unexpected
export idx --to pgvector --dsn "host=127.0.0.1 port=1" | PostgreSQL at host=127.0.0.1 port=1 gives no
compress X.npy --threads 0 | --threads is 0; it must be at least 1
compress X.npy --quiet --verbose | contradict each other
"""
ENDINGS = {"rotate": "new.npy", "search": "new.csv", "recommend": "new.csv", "similar": "new.csv"}


@pytest.fixture(scope="module")
def desk(given: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = Path(copytree(given, tmp_path_factory.mktemp("desk") / "given")), np.random.default_rng(0)
    X, Q = np.load(folder / "X.npy"), np.load(folder / "Q.npy")
    truth, ones = np.argsort(((Q[:, None] - X) ** 2).sum(-1), axis=1)[:, :20], np.ones((5, 9), np.float32)
    arrays = {
        "truth": truth, "from_1": truth + 300, "turned": X[::-1], "far": 1e5 * X, "wide": ones, "narrow": ones[:, :3],
        "short": np.ones((3, 8), int), "zeros": np.where(np.isin(np.arange(40), (7, 9))[:, None], 0, X[:40]),
        "nan": np.where(np.arange(5)[:, None] == 2, np.nan, ones[:, :8]), "labels": rng.integers(0, 6, 300),
        "asked": rng.integers(0, 6, 30), "sevens": np.full((300, 2), 7), "away": 1e7 + X.astype(float),
    }  # fmt: skip
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "data.npz", base=X, query=Q, truth=truth)
    tables = {
        "unclear.csv": "a,b,c\nx,y,z\nx,z,w\n", "three.csv": "what ever,who,how\nx,y,z\nu,y,w\n",
        "answers.csv": "anchor,near,far\na,b,c\nb,c,a\n", "stock.txt": "i1\ngone\n",
    }  # fmt: skip
    for name, text in tables.items():
        (folder / name).write_text(text)
    (folder / "empty").mkdir()
    nk.Index.build(X, metric="cosine").save(folder / "cosine")
    return folder


@each("line", REFUSED.strip().splitlines())
def test_a_bad_call_is_one_line_and_writes_nothing(line: str, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk)
    call, text = line.split(" | ")
    words = shlex.split(call)
    if "pgvector" in words and not find_spec("psycopg"):
        return
    before = sorted(desk.rglob("*"))
    writes = words[0] in ("compress", "embed", "train", "rotate", "bridge", "ids")
    refused(text, *words, *(["--out", ENDINGS.get(words[0], "new")] if writes else []))
    assert sorted(desk.rglob("*")) == before


@each("command", ENDINGS)
def test_an_output_has_an_ending_that_is_known(command: str, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk)
    words = {"rotate": "X.npy --for lucene-int8", "search": "idx Q.npy"}.get(command, "emb --all").split()
    refused("new.txt is '.txt'; it must be one of '.", command, *words, "--out", "new.txt")
