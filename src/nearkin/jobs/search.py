"""`nearkin search`: the nearest vectors of a saved index for each query of a file."""

import nearkin as nk
from nearkin._types import Record
from nearkin.jobs import inputs, outputs
from nearkin.jobs.arguments import File, Folder
from nearkin.jobs.run import Steps


def search(
    index: Folder,
    queries: File,
    *,
    k: int = 10,
    query_ids: File | None = None,
    among: File | None = None,
    exclude: File | None = None,
    oversample: int | None = None,
    n_probe: int | None = None,
    out: File | None = None,
    overwrite: bool = False,
) -> Record:
    """Find the nearest indexed vectors of every query.

    Without a file for the results, those of the first queries are shown (in JSON, all of them). A folder of `nearkin
    embed` is searched exactly, by inner product for pairs, by distance for coordinates; as QUERIES it gives its left
    side. For ids of that side, see `nearkin recommend`.

    Examples:

    - nearkin search idx Q.npy -k 10 --out hits.csv
    - nearkin search idx Q.npy -k 10 --oversample 4 --out hits.parquet
    - nearkin search idx Q.npy -k 10 --among in_stock.txt --out hits.csv

    Parameters
    ----------
    index: The folder that `nearkin compress` wrote.
    queries: The queries, as `nearkin compress` reads vectors.
    k: Neighbours of each query.
    query_ids: One id a query, for the results. [default: the ids that the queries have, else row numbers]
    among: Search these ids only (in stock, in season), one a line.
    exclude: Ids that may not be results, one a line.
    oversample: Rescoring: fetch this many times k candidates by code and rank them by kept vectors.
    n_probe: Inverted lists to search: more raise recall and time. [default: a sixteenth, at least 16]
    out: File to write: the results, .parquet, .csv, .tsv or .npz.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    outputs.check_file(out, overwrite, [index, queries, query_ids, among, exclude], outputs.ANSWER_ENDINGS)
    steps = Steps()
    with steps.step("load"):
        opened = inputs.open_index(index)
        allowed, excluded = (
            None if file is None else inputs.as_own(nk.data.read_column(file), opened.ids) for file in (among, exclude)
        )
        if n_probe is not None:
            opened.n_probe = n_probe
        asked = inputs.open_queries(queries, query_ids)
    with steps.step("search") as callback:
        scores, ids = opened.search(
            asked.vectors, k, among=allowed, exclude=excluded, oversample=oversample, callback=callback
        )
    seconds, metric = steps.seconds["search"], "l2" if oversample and opened.metric == "hamming" else opened.metric
    columns = [*outputs.COLUMNS[:3], outputs.SCORES[metric]]
    answers = asked.ids, scores, ids
    record: Record = {
        "index": str(index), "queries": len(ids), "k": k, "among": among, "exclude": exclude, "oversample": oversample,
        "n_probe": opened.n_probe, "seconds": seconds, "per_second": len(ids) / max(seconds, 1e-9), "out": out,
        "columns": columns, "understood": asked.about,
    }  # fmt: skip
    if out is None:
        return record | {"hits": outputs.as_records(answers, columns)}
    outputs.write_answers(out, [answers], columns)
    return record
