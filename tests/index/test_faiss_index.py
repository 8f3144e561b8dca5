"""What is read from an untrusted `index.faiss`: nearkin's own types, whole, and nothing that names another file."""

import os
import signal
import struct
import threading
from contextlib import suppress
from pathlib import Path

import faiss
import numpy as np
import pytest

from nearkin import Index, ProductQuantizer
from nearkin.index.faiss_index import read_faiss, write_faiss
from nearkin.quantization import ProductResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer
from tests.index.test_machine import MADE, fitted
from tests.refusals import each_refused
from tests.storage.signed import signed

X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
FEW = {"max_iter": 1, "random_state": 0}
SPECIAL = {
    "odd 4 bits": ProductQuantizer(1, 16, **FEW),
    "6 bits a column": ScalarQuantizer(6),
    "padded and rotated": ProductQuantizer(3, 32, n_lists=4, **FEW),
    "sparse lists": ProductQuantizer(4, 32, n_lists=60, **FEW),
    "many lists": ProductQuantizer(8, 16, n_lists=60, **FEW),  # whose tables are longer
    "padded sums": ProductResidualQuantizer(3, 2, 16, **FEW),
    "product sums in lists": ProductResidualQuantizer(2, 2, 16, n_lists=5, **FEW),
}
KINDS, BITS = [*MADE, *SPECIAL, "exact ip"], ("bits", "learned bits")


def build(kind: str, ids: np.ndarray | None = None, **options: object) -> Index:
    if kind in SPECIAL:
        some = slice(0, 20) if kind == "sparse lists" else slice(None)  # most lists stay empty
        return Index.build(X[some], SPECIAL[kind].fit(X), None if ids is None else ids[some], **options)
    metric = "hamming" if kind in BITS else "ip" if kind == "exact ip" else "l2"
    return Index.build(X, fitted(kind.removesuffix(" ip"), False), ids, metric, **options)


def test_what_nearkin_writes_is_read_and_a_file_cut_or_lengthened_is_one_clear_error(tmp_path: Path) -> None:
    """Tables of 4-bit codes in many lists are longer than their file, and it could not be loaded."""
    for kind in KINDS:
        folder, index = tmp_path / kind, build(kind)
        index.save(folder)
        for found, expected in zip(Index.load(folder).search(X, 3), index.search(X, 3), strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=kind)
        whole = (folder / "index.faiss").read_bytes()
        match = rf"{kind}/index.faiss cannot be read as nearkin's index of (bits|vectors) \("
        for damaged in [*(whole[:size] for size in range(0, len(whole), max(1, len(whole) // 4))), whole + b"\0"]:
            (folder / "index.faiss").write_bytes(damaged)
            each_refused([(Index.load, ValueError, match)], signed(folder))


def test_a_number_changed_anywhere_never_ends_the_process(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for kind in KINDS:
        build(kind).save(tmp_path / "idx", overwrite=True)
        file = tmp_path / "idx" / "index.faiss"
        whole = file.read_bytes()
        for value, place in zip((-1, 2**31, 2**62, 0), rng.integers(0, min(len(whole) - 8, 1500), 4), strict=True):
            file.write_bytes(whole[:place] + struct.pack("<q", value) + whole[place + 8 :])
            with suppress(ValueError, RuntimeError):  # the latter from FAISS, for numbers that only a search looks at
                found = Index.load(signed(tmp_path / "idx")).search(X[:3], 3)[1]
                assert len(found) == 3, (kind, place, value)


def test_no_array_is_made_longer_than_the_file(tmp_path: Path) -> None:
    """FAISS makes room first; its limits, which would hold for the files of other threads too, are not touched."""
    copied, said = tmp_path / "copied", set[str]()
    for number, kind in enumerate(KINDS):
        build(kind, np.arange(300)).save(tmp_path / "idx", overwrite=True)
        whole = (tmp_path / "idx" / "index.faiss").read_bytes()
        for place in range(4 + number % 9, min(len(whole) - 8, 230), 9):
            copied.write_bytes(whole[:place] + struct.pack("<q", 2**41) + whole[place + 8 :])
            try:
                read_faiss(copied, np.arange(300), binary=kind in BITS)
            except ValueError as error:
                said.add(str(error))
    assert any("it announces more than it has" in text for text in said)
    assert not [text for text in said if "deserialization" in text or "alloc" in text]  # FAISS's limit is a terabyte


def test_a_load_leaves_faiss_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While an index was loaded, other threads could not read longer files, and a process forked then hung."""
    limits = faiss.get_deserialization_vector_byte_limit, faiss.get_deserialization_loop_limit
    before, during, plain = [limit() for limit in limits], [], faiss.read_index
    reading, forked = threading.Event(), threading.Event()

    def slowly(*given: object) -> object:
        during.append([limit() for limit in limits])
        if threading.current_thread() is not threading.main_thread():
            reading.set()
            forked.wait(60)
        return plain(*given)

    monkeypatch.setattr(faiss, "read_index", slowly)
    Index.build(X).save(tmp_path / "idx")
    thread = threading.Thread(target=Index.load, args=[tmp_path / "idx"])
    thread.start()
    assert reading.wait(60)
    if not (child := os.fork()):
        signal.alarm(30)
        os._exit(len(Index.load(tmp_path / "idx")) != 300)
    forked.set()
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    Index.load(tmp_path / "idx")
    assert during == [before, before]


def test_lists_on_disk_are_refused_and_the_file_they_name_is_untouched(tmp_path: Path) -> None:
    """`Index.add` wrote into the unrelated file that "ilod" named."""
    victim = tmp_path / "victim"
    index = build("lists")
    index.save(tmp_path / "idx")
    inner = faiss.downcast_index(faiss.downcast_index(index.faiss_index).index)
    lists = faiss.OnDiskInvertedLists(inner.nlist, inner.code_size, str(victim))
    lists.merge_from_1(inner.invlists)
    inner.replace_invlists(lists)
    faiss.write_index(index.faiss_index, str(tmp_path / "idx" / "index.faiss"))
    signed(tmp_path / "idx")
    before = victim.read_bytes()
    os.utime(victim, ns=(0, 0))
    victim.chmod(0)  # FAISS would not even open it
    with pytest.raises(ValueError, match="nearkin does not write 'ilod' there"):
        Index.load(tmp_path / "idx")
    victim.chmod(0o600)
    assert victim.read_bytes() == before
    assert victim.stat().st_mtime == 0


def test_a_type_that_nearkin_does_not_write_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.faiss"
    for factory, found in (("HNSW8", "IHNf"), ("IVF4,Flat", "IwFl"), ("PCA4,Flat", "Pcam"), ("LSQ2x4", "IxLS")):
        made = faiss.index_factory(8, factory)
        made.train(X)
        made.add(X)
        faiss.write_index(made, str(file))
        with pytest.raises(ValueError, match=f"nearkin does not write '{found}' there"):
            read_faiss(file)


def test_rows_in_two_lists_are_refused(tmp_path: Path) -> None:
    index = build("lists")
    lists = faiss.downcast_index(faiss.downcast_index(index.faiss_index).index).invlists
    for row in (5, 300, -1):
        faiss.rev_swig_ptr(lists.get_ids(1), lists.list_size(1))[0] = row
        write_faiss(index.faiss_index, tmp_path / "x.faiss")
        with pytest.raises(ValueError, match=r"a vector is in two lists|a vector that does not exist"):
            read_faiss(tmp_path / "x.faiss")


def test_kept_vectors_shorter_than_the_index_are_refused(tmp_path: Path) -> None:
    """The rows that were missing scored from uninitialised memory."""
    Index.build(X, keep_vectors=True).save(tmp_path / "idx")
    for wrong in (X[:200], X[:, :5], X.astype(np.float64), np.zeros(300, np.float32)):
        np.save(tmp_path / "idx" / "vectors.npy", wrong)
        signed(tmp_path / "idx")
        with pytest.raises(ValueError, match=r"vectors.npy has float.* the index needs float32 \(300, 8\)"):
            Index.load(tmp_path / "idx")


def test_a_full_disk_is_an_os_error_and_leaves_nothing(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with pytest.raises(OSError, match="No space left"):
        write_faiss(Index.build(np.tile(X, (40, 1))).faiss_index, Path("/dev/full"))
