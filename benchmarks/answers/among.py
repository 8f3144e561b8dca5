"""What a search among some of the rows costs, beside FAISS's IDSelector.

    python -m benchmarks answers among [--quick] [--data DIR]

SIFT: a tenth, a half, ... of the searched rows is allowed, drawn at random, one set for all 100 queries. CPU
milliseconds a query, one thread, in turn; recall of the ten nearest allowed rows; the share of the ten places that an
answer fills. Ours compares as many allowed rows as 8 of the 64 lists have rows; FAISS's lists are visited 8 (our
number), 16, 32 and 64 at a time. FAISS refuses selectors for flat product codes and 4-bit scans. Writes
results/answers_among.json.
"""

from typing import Any

import faiss
import numpy as np

import nearkin as nk
from benchmarks.harness import limit_threads, load, median_ms, save
from benchmarks.options import parser
from nearkin.metrics import recall_k_at_k

SHARES = (0.01, 0.1, 0.5, 1.0)
PROBES = (8, 16, 32, 64)
NEIGHBOURS, QUERIES, LISTS, MOST = 10, 100, 64, 20_000
Record = dict[str, Any]


def main() -> None:
    options = parser(__doc__).parse_args()
    limit_threads(options.threads)
    learn, base, queries = load("sift", options.data)
    rows = 4_000 if options.quick else MOST
    learn, base, queries = learn[:rows], base[:rows], queries[:QUERIES]
    records = [record for kind in KINDS for record in compared(kind, learn, base, queries, 1 if options.quick else 9)]
    save("answers_among", records, neighbours=NEIGHBOURS, queries=QUERIES, rows=len(base), threads=options.threads)


def exact(learn: np.ndarray, base: np.ndarray) -> tuple[nk.Index, Any]:
    del learn
    return nk.Index.build(base), faiss.IndexFlatL2(base.shape[1])


def lists(learn: np.ndarray, base: np.ndarray) -> tuple[nk.Index, Any]:
    quantizer = nk.ProductQuantizer(16, n_lists=LISTS, rotation=None, max_iter=5, random_state=0).fit(learn)
    index = nk.Index.build(base, quantizer)
    theirs = faiss.index_factory(base.shape[1], f"IVF{LISTS},PQ16")
    theirs.nprobe = max(8, LISTS // 16)
    return index, theirs


def product(learn: np.ndarray, base: np.ndarray) -> tuple[nk.Index, Any]:
    quantizer = nk.ProductQuantizer(16, rotation=None, max_iter=5, random_state=0).fit(learn)
    return nk.Index.build(base, quantizer), faiss.IndexPQ(base.shape[1], 16, 8)


KINDS = {"exact vectors": exact, "lists of product codes": lists, "product codes": product}


def compared(kind: str, learn: np.ndarray, base: np.ndarray, queries: np.ndarray, repeats: int) -> list[Record]:
    """A record for each share of allowed rows, ours and FAISS's."""
    ours, theirs = KINDS[kind](learn, base)
    theirs.train(learn)
    theirs.add(base)
    made = []
    for share in SHARES:
        allowed = np.random.default_rng(0).random(len(base)) < share
        numbers = np.flatnonzero(allowed)
        true = numbers[faiss.knn(queries, base[allowed], NEIGHBOURS)[1]]
        chosen = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        ways = {"nearkin": lambda allowed=allowed: ours.search(queries, NEIGHBOURS, among=allowed)[1]}
        for probes in PROBES if isinstance(theirs, faiss.IndexIVF) else (None,):
            options = faiss.SearchParameters(sel=chosen)
            if probes is not None:
                options = faiss.SearchParametersIVF(sel=chosen, nprobe=probes)
            ways["FAISS" if probes is None else f"FAISS, {probes} lists"] = lambda options=options: theirs.search(
                queries, NEIGHBOURS, params=options
            )[1]
        refused = False
        try:
            list(ways.values())[-1]()
        except RuntimeError:
            refused = True
            del ways["FAISS"]
        times = median_ms(ways, repeats)
        for name, way in ways.items():
            found = way()
            made.append(
                {
                    "kind": kind,
                    "share": share,
                    "who": name,
                    "ms_a_query": times[name] / len(queries),
                    "recall": recall_k_at_k(found, true, NEIGHBOURS),
                    "filled": float((found >= 0).mean()),
                }
            )
        if refused:
            made.append({"kind": kind, "share": share, "who": "FAISS: refused"})
        print(made[-5:], flush=True)
    return made


if __name__ == "__main__":
    main()
