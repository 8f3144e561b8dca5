"""Two-tower learning: every solver and loss, NDCG@100 and Recall@20 against seconds, implicit's ALS beside.

    python -m benchmarks two_tower --sets ml100k gowalla
    python -m benchmarks two_tower --protocol public --sets gowalla ml100k   as published: validation pairs are fitted
        --ways "softmax on cosines" EASE     only the rows whose names begin so; all rows measured so far are printed
        --again        rivals keep the settings that they chose when their rows were measured, and only fit
    python -m benchmarks two_tower --bytes 16 32 64 --sets gowalla     through indexes of so many bytes a right
    python -m benchmarks two_tower --scaling       one gradient and one Gauss-Newton product against m + n
    python -m benchmarks two_tower --cold          unseen rights with and without features, planted data
    python -m benchmarks two_tower --features      linear and nonlinear towers over the vectors of WordNet's texts
    python -m benchmarks two_tower --serving       reading a million pairs; recommendations for all of gowalla's users
    python -m benchmarks two_tower --figures       docs/figures from the JSON

Results are merged into benchmarks/results/two_tower.json by set. Seconds are CPU seconds of one thread, the choice of
the regularization included where it is "auto". implicit runs in the peers' environment. Its settings are chosen on
the validation pairs from 30, those of "als, tuned" from 25, and the seconds of both are those of the one best fit.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import nearkin as nk
from benchmarks.harness import limit_threads, save
from benchmarks.options import RESULTS, parser, peer_python
from benchmarks.pages import markdown
from benchmarks.stored import read_json
from benchmarks.two_tower.bytes import SIZES, by_bytes
from benchmarks.two_tower.cold import cold
from benchmarks.two_tower.features import features
from benchmarks.two_tower.figures import draw
from benchmarks.two_tower.peers import run_peer, with_implicit
from benchmarks.two_tower.problems import read, test_metrics
from benchmarks.two_tower.public import Setup, public
from benchmarks.two_tower.sampled import SampledBCE, SOGram
from benchmarks.two_tower.scaling import scaling
from benchmarks.two_tower.serving import serving
from benchmarks.two_tower.sub_blocks import SubBlocks
from benchmarks.two_tower.table import public_table
from nearkin.data import Parts
from nearkin.embedding import LBFGS, Adam, AllPairs, GaussNewton

QUICK_SECONDS = 3.0
WAYS = {
    "als": {},
    "als, lambda given": {"solver": "als"},
    "als, tuned": {"solver": "als"},
    "ials++": {"solver": "ials++"},
    "adam, from als": {"solver": "adam"},
    "adam, random start": {"solver": Adam(start="random", learning_rate=0.01)},
    "gauss-newton, alternating": {"solver": GaussNewton(start="random")},
    "gauss-newton, joint": {"solver": GaussNewton(start="random", alternating=False)},
    "sub-blocks": {"solver": SubBlocks(start="random", learning_rate=0.01)},
    "sogram": {"solver": SOGram(start="random", learning_rate=0.01)},
    "l-bfgs": {"solver": LBFGS(start="random")},
    "in-batch softmax": {"loss": "in-batch-softmax", "solver": Adam(batch_size=1024, learning_rate=0.01)},
    "sampled bce": {"loss": SampledBCE(), "solver": Adam(learning_rate=0.01)},
}


def run_way(way: dict, parts: Parts, seed: int, seconds: float) -> dict:
    """One fit; all but the plain ALS watch the validation pairs."""
    validation = None if way.get("solver", "als") in ("als", "ials++") else parts.valid
    start = time.process_time()
    model = nk.TwoTower(64, random_state=seed, **way).set_params(solver__max_seconds=seconds)
    model.fit(parts.train, validation=validation)
    used = time.process_time() - start
    curve = [[round(r["seconds"], 3), r["metric"]] for r in model.history_ if "metric" in r]
    return test_metrics(model.left_embeddings_, model.right_embeddings_, parts) | {
        "seconds": used, "steps": len(model.history_), "regularization": model.regularization_, "curve": curve,
    }  # fmt: skip


def tuned(way: dict, parts: Parts, seed: int) -> dict:
    """The best of 25 weights and strengths around the default ones, by NDCG@100 of the validation pairs."""
    default = nk.TwoTower(64, random_state=seed, **way).fit(parts.train)
    settings = [
        {"loss__omega": weight * default.omega_, "regularization": strength * default.regularization_}
        for weight in (0.125, 0.25, 0.5, 1, 2)
        for strength in (0.5, 0.7, 1, 1.4, 2)
    ]
    model = nk.TwoTower(64, random_state=seed, **way)
    best = max(settings, key=lambda given: model.set_params(**given).fit(parts.train).score(parts.valid))
    return {"omega": best["loss__omega"], "regularization": best["regularization"]}


def compare(name: str, options: argparse.Namespace, keep: Callable[[dict], None]) -> None:
    """Every way over the seeds; `keep` gets all means and standard deviations after each fit."""
    nk.TwoTower(4, loss="all-pairs", random_state=0).fit(
        nk.data.planted_interactions(50, 40, random_state=0).interactions
    )  # compiles
    rows: dict[str, list[dict]] = {}
    best: dict = {}
    peer = with_implicit(peer_python(options.peers))
    for seed in range(options.seeds):
        parts = read(name, options.data, seed)
        popular = np.asarray(parts.train.matrix().sum(axis=0), dtype=np.float32)
        one = np.ones((parts.train.shape[0], 1), np.float32)
        rows.setdefault("popularity", []).append(test_metrics(one, popular.T, parts) | {"seconds": 0.0})
        if peer is not None:
            fixed = name == "gowalla" and seed > 0  # its split is given, so the settings chosen once are the settings
            settings = rows["implicit als"][0]["settings"] if fixed else None
            rows.setdefault("implicit als", []).append(run_peer(peer, parts, seed, settings))
        strength = None
        for label, way in WAYS.items():
            if options.ways and not any(label.startswith(w) for w in options.ways):
                continue
            way = dict(way)
            if "given" in label:
                if strength is None:
                    continue
                way["regularization"] = strength
            if "tuned" in label:
                best = best if name == "gowalla" and best else tuned(way, parts, seed)
                way |= {"loss": AllPairs(omega=best["omega"]), "regularization": best["regularization"]}
            found = run_way(way, parts, seed, options.seconds)
            strength = found["regularization"] if label == "als" else strength
            rows.setdefault(label, []).append(found)
            keep({label: summary(runs) for label, runs in rows.items()})
            print(name, seed, label, {k: round(v, 4) for k, v in found.items() if isinstance(v, float)}, flush=True)


def summary(runs: list[dict]) -> dict:
    keys = ("ndcg@100", "recall@20", "seconds")
    means = {key: float(np.mean([r[key] for r in runs])) for key in keys}
    spread = {f"{key} std": float(np.std([r[key] for r in runs])) for key in keys}
    return (
        means
        | spread
        | {"seeds": len(runs), "curve": runs[0].get("curve", []), "runs": [r["ndcg@100"] for r in runs]}
        | ({"settings": [r["settings"] for r in runs]} if "settings" in runs[0] else {})
    )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", nargs="*", default=["ml100k", "gowalla"])
    options.add_argument("--ways", nargs="*", help="beginnings of the names of the ways to run")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=20.0, help="no step begins after so many seconds")
    options.add_argument("--protocol", choices=["public"], help="validation pairs are fitted, as in published tables")
    options.add_argument("--rivals", type=float, default=450.0, help="CPU seconds of LightGCN; 0 leaves it out")
    options.add_argument("--bytes", type=int, nargs="*", help="sizes of indexes, default 16, 32 and 64")
    options.add_argument("--after", action="store_true", help="with --bytes: compressed after training only")
    options.add_argument("--again", action="store_true", help="with --protocol: rivals keep their settings")
    for flag in ("scaling", "cold", "features", "serving", "figures"):
        options.add_argument(f"--{flag}", action="store_true")
    options = options.parse_args()
    limit_threads(options.threads)
    path = RESULTS / "two_tower.json"
    results = read_json(path)["results"] if path.exists() else {}
    if options.quick:
        options.seeds, options.seconds = 1, min(options.seconds, QUICK_SECONDS)
    if options.protocol:
        rows = results.setdefault("public", {})

        def keep_row(name: str, found: dict) -> None:
            rows.setdefault(name, {}).update(found)
            save("two_tower", results, threads=options.threads)

        for name in options.sets:
            known = dict(rows.get(name, {})) if options.again else {}
            seconds = min(options.rivals, QUICK_SECONDS) if options.quick else options.rivals
            peer = with_implicit(peer_python(options.peers))
            setup = Setup(
                name, options.data, options.seeds, tuple(options.ways or [""]), seconds, peer, known, options.quick
            )
            public(setup, partial(keep_row, name))
        for name in options.sets:
            print(markdown(public_table(name, rows[name])))
    elif options.bytes is not None:
        for name in options.sets:
            rows = results.setdefault("bytes", {}).setdefault(name, {})

            def keep_size(found: dict, rows: dict = rows) -> None:
                rows.update(found)
                save("two_tower", results, threads=options.threads)

            for seed in range(options.seeds):
                sizes = options.bytes or list(SIZES)
                by_bytes(name, options.data, options.ways, sizes, seed, not options.after, keep_size)
    elif options.scaling:
        results["scaling"] = scaling(options)
    elif options.features:

        def keep_way(found: dict) -> None:
            results.setdefault("features", {}).update(found)
            save("two_tower", results, threads=options.threads)

        features(options, keep_way)
    elif options.serving:
        results["serving"] = serving(options.data)
    elif options.cold:
        results["cold"] = cold(options)
    elif not options.figures:
        for name in options.sets:
            before = results.get(name, {})

            def keep(found: dict, name: str = name, before: dict = before) -> None:
                results[name] = before | found
                save("two_tower", results, threads=options.threads)

            compare(name, options, keep)
    if not options.figures:
        save("two_tower", results, threads=options.threads)
    draw(results)


if __name__ == "__main__":
    main()
