"""`nearkin remove`: fewer vectors in a saved index."""

from nearkin._types import Record
from nearkin.data import read_column
from nearkin.jobs.arguments import File, Folder, Names
from nearkin.jobs.change import change_rows


def remove(index: Folder, names: Names | None = None, *, ids: File | None = None, unknown: str = "raise") -> Record:
    """Remove vectors from an index, by their ids. The folder is the old index or the new one at every moment.

    An unknown id is an error, and nothing changes, unless `unknown` is drop. The old evaluation is removed.

    Examples:

    - nearkin remove idx 17 42
    - nearkin remove idx --ids gone.txt --unknown drop

    Parameters
    ----------
    index: The folder that `nearkin compress` wrote.
    names: Ids of the vectors to remove.
    ids: Ids, one a line: those to remove (.npy, .txt, .csv, .parquet; file.csv:column).
    unknown: Ids that the folder lacks: raise an error, or drop and count them.
    """
    if bool(names) == (ids is not None):
        raise ValueError("say which vectors to remove: ids behind the folder, or ids=FILE")
    gone = names if ids is None else read_column(ids)
    return change_rows(index, "remove", gone, unknown=unknown)
