"""Kept vectors on a disk that fills up."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from nearkin.index.rescoring import KeptVectors

PROGRAM = """
import os, sys
import numpy as np, nearkin as nk

X = np.random.default_rng(0).normal(size=(20_000, 16)).astype(np.float32)
quantizer = nk.ProductQuantizer(2, 16, rotation=None, max_iter=1, random_state=0).fit(X[:500])
nk.Index.build(X[:500], quantizer, keep_vectors=True).save(sys.argv[1] + "/idx")
try:
    nk.Index.build(X, quantizer, keep_vectors=True).save(sys.argv[1] + "/idx")
except OSError as error:
    print(type(error).__name__, error)
print(len(nk.Index.load(sys.argv[1] + "/idx")), os.listdir(sys.argv[1]))
"""


def test_a_full_disk_is_one_error_and_leaves_nothing_half_written(tmp_path):
    """Before, the process died by SIGBUS: the vectors were written through a memory map."""
    if shutil.which("unshare") is None:
        pytest.skip("needs a small file system of its own: Linux's unshare")
    own_disk = 'mount -t tmpfs -o size=1m tiny "$1" && exec "$2" -c "$3" "$1"'
    command = ["unshare", "-rm", "sh", "-c", own_disk, "sh", tmp_path, sys.executable, PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"needs a small file system of its own: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    error, left = done.stdout.splitlines()
    assert error.startswith("OSError [Errno 28] No space left on device")
    assert "idx" in error
    assert left == "500 ['idx']"


def test_blocks_of_any_layout_make_one_file(tmp_path, rng):
    X = rng.normal(size=(70, 4))
    kept = KeptVectors([np.asfortranarray(X[:30], np.float32), X[30:]])
    kept.save(tmp_path / "vectors.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "vectors.npy"), X.astype(np.float32))
