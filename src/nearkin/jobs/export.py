"""`nearkin export`: a finished index into an engine that shards and replicates."""

import nearkin as nk
from nearkin._types import Record
from nearkin.jobs.arguments import File, Folder
from nearkin.jobs.run import Steps


def export(
    index: Folder,
    *,
    to: str,
    out: Folder | None = None,
    dsn: str | None = None,
    name: str | None = None,
    form: str | None = None,
    queries: File | None = None,
    k: int = 10,
    recall_target: float | None = None,
    overwrite: bool = False,
) -> Record:
    """Move a finished index into an engine that shards and replicates.

    Ends with a self-check: the engine searches for 100 queries, and must find the neighbours of plain FAISS. Only
    then is the export published. Below the target nothing is published, and the exit code is 1.

    Examples:

    - nearkin export idx --to pgvector --dsn postgresql://me@localhost/shop --name products
    - nearkin export idx --to pgvector --form halfvec --dsn postgresql://me@localhost/shop
    - nearkin export idx --to lance --out idx.lance

    Parameters
    ----------
    index: The folder that `nearkin compress` wrote.
    to: lance or pgvector.
    out: Folder to write (lance).
    dsn: postgresql://user@host:5432/database (pgvector); the password by PGPASSWORD or ~/.pgpass. [default: PG...]
    name: Table to write. [default: nearkin]
    form: Column type of a table (pgvector): bit, vector or halfvec. [default: bit for bits, else vector]
    queries: Queries: those of the self-check. [default: 100 near the vectors]
    k: Neighbours of each query.
    recall_target: Share of plain FAISS's neighbours that the engine must find. [default: 0.95, exact 0.99]
    overwrite: Replace what is there: a folder that nearkin wrote, or the table of another index.
    """
    target = nk.export.make_target(to, out=out, dsn=dsn, name=name, form=form, overwrite=overwrite or None)
    Q = None if queries is None else nk.read_vectors(queries)
    steps = Steps()
    with steps.step("load"):
        loaded = nk.Index.load(index)
    try:
        with steps.step("export") as callback:
            made = nk.export.export_index(
                loaded, target, queries=Q, k=k, recall_target=recall_target, callback=callback
            )
    except nk.export.RecallTooLowError as error:
        return {"index": str(index), "passed": False, "notes": [str(error)]}
    return {"index": str(index), **made, "passed": True, "seconds": steps.seconds}
