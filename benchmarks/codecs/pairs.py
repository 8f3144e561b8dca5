"""Does a query find its answer through few bytes, after maps learned from pairs?

    python -m benchmarks codecs pairs --seeds 0 --bytes 8

40,000 glosses of WordNet and 6,082 sentences, each of which uses a word of one gloss, its answer; vectors of one
encoder, which stay as they are. 1,500 sentences, drawn by each seed, ask; the pairs of the others are learned from.
Product codes are learned from 8,192 glosses: of the vectors as they are (OPQ), the same searched by mapped queries, and
of rows mapped too (`nk.quantization.PairMap`). The score is the share of answers among the ten nearest rows by codes.
"""

import time
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from benchmarks.harness import limit_threads, save
from benchmarks.options import RESULTS, parser
from benchmarks.table import Results
from nearkin import ProductQuantizer
from nearkin.quantization.pair_map import PairMap, pair_maps

BYTES, SEEDS = (8, 16, 32), (0, 1, 2, 3, 4)
WAYS = ("OPQ", "queries mapped", "PairMap")
ASKED, LEARNED = 1_500, 8_192


def measured(folder: Path, n_bytes: int, seed: int) -> dict[str, Any]:
    """One seed at one size: the share of answers found in each way, and what the maps took."""
    with np.load(folder / "wordnet_minilm.npz") as z:
        X, Q, answer = z["X"].astype(np.float32), z["Q"].astype(np.float32), z["answer"]
    generator = np.random.default_rng(seed)
    order, rows = generator.permutation(len(Q)), generator.permutation(len(X))[:LEARNED]
    asked, known = order[:ASKED], order[ASKED:]
    start = time.process_time()
    maps = PairMap(n_bytes, random_state=seed)
    maps.fit(X, Q[known], np.column_stack([np.arange(len(known)), answer[known]]))
    row: dict[str, Any] = {"seconds": time.process_time() - start, "ridge": maps.ridge_, "power": maps.power_}
    alone = np.eye(X.shape[1]) if maps.ridge_ is None else pair_maps(Q[known], X[answer[known]], maps.ridge_, 0.0)[0]
    plain, mapped = (coded(part, rows, n_bytes, seed) for part in (X, maps.transform(X)))
    for way, index, queries in (
        ("OPQ", plain, Q[asked]),
        ("queries mapped", plain, Q[asked] @ alone),
        ("PairMap", mapped, maps.transform_queries(Q[asked])),
    ):
        found = index.search(np.ascontiguousarray(queries, np.float32), 10)[1]
        row[way] = float((found == answer[asked, None]).any(axis=1).mean())
    return {"bytes": n_bytes, "seed": seed, **row}


def coded(X: np.ndarray, rows: np.ndarray, n_bytes: int, seed: int) -> faiss.Index:
    """All rows X (n, d) under product codes learned from some."""
    quantizer = ProductQuantizer(n_bytes, random_state=seed).fit(X[rows])
    index = quantizer.to_faiss()
    quantizer.add_to(index, X)
    return index


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--bytes", nargs="+", type=int, default=BYTES)
    options.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    given = options.parse_args()
    limit_threads(given.threads)
    for seed in given.seeds[:1] if given.quick else given.seeds:
        for n_bytes in given.bytes[:1] if given.quick else given.bytes:
            row = measured(given.data, n_bytes, seed)
            rows = [
                old
                for old in Results(RESULTS).read("codecs_pairs") or []
                if (old["bytes"], old["seed"]) != (n_bytes, seed)
            ]
            save("codecs_pairs", [*rows, row], learned=LEARNED, asked=ASKED, threads=given.threads, data=given.data)
            print(time.strftime("%H:%M"), row, flush=True)


if __name__ == "__main__":
    main()
