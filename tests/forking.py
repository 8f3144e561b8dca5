"""Run as a program: children that are forked while another thread searches change their index.

Prints how many of three did so, for an index of exact vectors and for one of codes.
"""

import os
import threading
import time

import faiss
import numpy as np

from nearkin import Index, ProductQuantizer

CHILDREN = 3


def children(index: Index, X: np.ndarray) -> int:
    stop, ended = threading.Event(), 0

    def search() -> None:
        while not stop.is_set():
            index.search(X, 5)

    index.search(X, 5)
    thread = threading.Thread(target=search)
    thread.start()
    for i in range(CHILDREN):
        time.sleep(0.006 * i)
        child = os.fork()
        if not child:
            index.add(X[:9]).search(X[:300], 3)
            os._exit(0 if len(index) == len(X) + 9 else 1)
        for _ in range(600):
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                ended += status == 0
                break
            time.sleep(0.05)
        else:
            os.kill(child, 9)
            break
    stop.set()
    thread.join()
    return ended


def main() -> None:
    faiss.omp_set_num_threads(2)
    X = np.random.default_rng(0).normal(size=(2000, 16)).astype(np.float32)
    quantizers = None, ProductQuantizer(4, 16, max_iter=1, random_state=0)
    print([children(Index.build(X, quantizer), X) for quantizer in quantizers])


if __name__ == "__main__":
    main()
