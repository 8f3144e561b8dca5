"""`nearkin compress` and `nearkin encode`: vectors to a saved index, and files of vectors to files of codes."""

from typing import Annotated

import typer
from rich.table import Table

import nearkin as nk
from nearkin import jobs
from nearkin._distributed import current
from nearkin._fields import Fields, command, counted, show, with_interval
from nearkin.cli.options import File, Metric, OutFolder, Overwrite, Seed, Vectors
from nearkin.cli.screen import Screen, pairs, read_line, seconds_in_words, table


def compress(
    screen: Screen,
    vectors: Vectors,
    out: OutFolder,
    method: Annotated[str | None, typer.Option("--method", "-m", metavar="NAME")] = None,
    n_bytes: Annotated[int | None, typer.Option("--bytes", "-b", min=1)] = None,
    centroids: int = 256,
    lists: Annotated[int | None, typer.Option(min=1)] = None,
    train: File = None,
    queries: File = None,
    minutes: Annotated[float | None, typer.Option(min=0)] = None,
    metric: Metric = None,
    ids: File = None,
    keep_vectors: Annotated[str | None, typer.Option("--keep-vectors", metavar="[=TYPE]")] = None,
    checkpoint: Annotated[str | None, typer.Option(metavar="DIR")] = None,
    overwrite: Overwrite = False,
    seed: Seed = 0,
) -> None:
    """Compress vectors into a small, searchable index.

    Trains a quantizer on a sample of the vectors, encodes all of them a chunk at a time (the file may exceed memory;
    under torchrun several processes share the work) and writes a folder that `nearkin search`, `nk.Index.load` and, for
    its index.faiss, plain FAISS can open. The printed recall is that of `nearkin evaluate`.

    Without a method, codecs are compared at the bytes asked for, and a table shows the recall of each. The same seed
    gives the same codes, however busy the machine.

    Examples:

    - nearkin compress X.npy --bytes 16 --out idx
    - nearkin compress X.npy --queries Q.npy --bytes 12 --minutes 5 --out idx
    - nearkin compress X.fvecs --metric ip --lists 1024 --keep-vectors --out idx
    - torchrun --nproc-per-node 2 -m nearkin compress "parts/*.npy" --checkpoint work --out idx

    Options:

    + method: pq (or none), opq (or product), rq or lsq (or residual: sums of centroids), product-residual,
      product-residual-long, axes, all but pq also with -norms (the norm in a byte), sq8 (or int8), int4, int6, float16;
      best (compares these by recall; with inverted lists product and product-norms); other rotations: givens-random,
      givens-greedy, givens-steepest, cayley; bits by hashing: lsh, itq, one, ...
      [default: best; product with other centroids or torchrun]
    + n_bytes: Bytes of a code, at most; eight bits each for hashing methods. [default: 16]
    - centroids: Centroids in each subspace: 256 (a byte each) or 16 (half a byte, fastest search).
    - lists: Inverted lists, of which a search reads a few (search --n-probe). About 4 times the square root of the
      number of vectors is usual: 1,000 for 60,000 vectors, 4,000 for a million; below 20,000 leave it out.
    - train: Other vectors to train on, so that the indexed ones are unseen.
    + queries: Queries, if they are unlike the vectors: the codec, or with --method product its rotation, is chosen by
      their recall. Without them, vectors are held out as queries; for pairs of `nearkin embed` the users are.
    + minutes: Predicted time of two cores, of --method best, to train and to encode. [default: 1, or three times that
      of product codes if that is more]
    + keep_vectors: Keep the vectors next to the codes, for search --oversample: --keep-vectors=float16 takes half the
      bytes of float32, --keep-vectors=int8 a quarter. [default without TYPE: float16 for files of float16 or of 8-bit
      integers, which it holds exactly, else float32]
    - checkpoint: Folder from which an interrupted run resumes; removed at the end.
    """
    given = jobs.inputs.open_given(vectors, ids=ids)
    source = None if train is None else nk.data.open_vectors(train)
    several = current().size > 1 or centroids != 256
    name = jobs.methods.find_method(method or ("product" if several else jobs.methods.BEST))
    if name in jobs.methods.SCALARS and n_bytes is not None:
        raise ValueError(f"bytes of method {name} follow from the columns; leave them out")
    if name != jobs.methods.BEST and minutes is not None:
        raise ValueError(f"minutes are for method best, which compares codecs; leave them out with {name}")
    if metric is None and given.metric in jobs.methods.metrics_of(name):
        metric = given.metric
    ranking, width = jobs.methods.choose_metric(name, metric), given.file.shape[1]
    n_bytes = n_bytes or (-(-width // 8) if name == "signs" else min(jobs.methods.BYTES, width))
    size = jobs.methods.Size(n_bytes, centroids, lists or 0, ranking, seed)
    quantizer = jobs.compress.Choice(name, size, None if minutes is None else 60 * minutes)
    Q = None if queries is None else jobs.inputs.open_queries(queries).vectors
    left = given.queries(metric)
    if Q is None and name == jobs.methods.BEST and left is not None:
        Q, queries = left, f"the users of {vectors}"
    made = jobs.compress.compress_file(
        given.file,
        quantizer,
        out,
        train=source,
        queries=Q,
        judged_by=left,
        metric=ranking,
        ids=given.ids,
        keep_vectors=keep_vectors == "auto" or keep_vectors or False,
        random_state=seed,
        steps=jobs.run.Steps(screen.watch),
        about={"method": name, "seed": seed, "threads": screen.threads, "train": train, "queries": queries},
        checkpoint=checkpoint,
        overwrite=overwrite,
    )
    names = [out, *([vectors] if left is not None else [queries] if queries else [])]
    evaluated = command("evaluate", *names, base=vectors, k=10)
    following = f"Next: {evaluated}, or {command('search', out, 'QUERIES', k=10)}"
    note = "Note: queries of another kind than the vectors have another recall; give some as --queries"
    parts = pairs(f"{out}: {name}", _for_people(made)), *_comparison(made), read_line(given.about)
    screen.finish(made, *parts, note if Q is None and left is None else "", following)


def _comparison(record: Fields) -> tuple[Table | str, ...]:
    """The winner and why it won in a line, and the candidates in a table; nothing if there were none."""
    made = record.get("comparison")
    if not made:
        return ()
    trials, compress = made["trials"], jobs.compress
    given = "" if made["seconds"] is None else f" in {made['seconds']:.0f} s"
    title = f"Short fits on {counted(trials[0]['rows'], 'vector')}{given}"
    return compress.won_line(trials), table(title, *compress.trial_rows(trials))


def _for_people(record: Fields) -> dict[str, object]:
    shown: dict[str, object] = {"codec": record["code"]["class"]} if record["method"] == "best" else {}
    if record["queries"] is not None:
        shown["chosen by"] = record["queries"]
    shown |= {"vectors": f"{record['vectors']:,} × {record['dimensions']:,}"}
    shown |= jobs.run.size_in_words(record, record["bytes_on_disk"])
    if record["kept_vectors"] is not None:
        kept, code = record["kept_vectors"]["bytes"], record["bytes_per_vector"]
        shown["vectors kept"] = f"{record['kept_vectors']['type']}, {kept:,} bytes each; {kept + code:,} with the code"
    if record["lengths"] is not None:
        shown["norms kept"] = record["lengths"]
    if record["distortion"] is not None:
        share = record["variance_kept"]
        kept = "" if share is None else f", which keeps {share:.1%} of the variance"
        shown["distortion"] = f"{show(record['distortion'])}{kept}"
    for name in (name for name in record if "-recall@" in name):
        recall = with_interval(record[name], record["recall_interval"])
        shown[f"{name}, without rescoring"] = f"{recall}, 95 % interval, of {record['judged_by']}"
    return shown | {"wall seconds": seconds_in_words(record["seconds"])}


def encode(
    screen: Screen,
    shards: Annotated[list[str], typer.Argument(metavar="SHARDS...")],
    model: Annotated[str, typer.Option("--model", metavar="DIR")],
    out: OutFolder,
    workers: Annotated[int, typer.Option(min=0)] = 1,
    overwrite: Overwrite = False,
) -> None:
    """Encode files of vectors, in any number, with a quantizer that is already trained.

    After an interruption the same command resumes: finished shards are verified and skipped.

    Examples:

    - nearkin encode "parts/*.parquet" --model idx --out codes --workers 8
    - nearkin encode part-0.npy part-1.npy --model idx --out codes

    Options:

    - shards: Files or patterns, .npy or .parquet: "parts/*.parquet".
    - model: The index, or saved quantizer, that encodes.
    - workers: Processes, of one thread each; 0 works in this one.
    """
    steps = jobs.run.Steps(screen.watch)
    with steps.step("encode") as callback:
        made = jobs.encode.encode_shards(shards, model, out, workers=workers, overwrite=overwrite, callback=callback)
    made |= {"seconds": steps.seconds["encode"], "workers": workers}
    screen.finish(made, pairs(f"Codes in {out}", made))
