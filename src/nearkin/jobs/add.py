"""`nearkin add`: more vectors in a saved index."""

from nearkin._types import Record
from nearkin.jobs.arguments import File, Folder
from nearkin.jobs.change import change_rows
from nearkin.jobs.inputs import open_given


def add(index: Folder, vectors: File, *, ids: File | None = None, upsert: bool = False) -> Record:
    """Add vectors to an index. The folder is the old index or the new one at every moment.

    The vectors are encoded as the others were; nothing is trained again. The old evaluation is removed.

    Examples:

    - nearkin add idx new.npy
    - nearkin add idx new.parquet --ids new_ids.txt
    - nearkin add idx today.npy --ids today_ids.txt --upsert

    Parameters
    ----------
    index: The folder that `nearkin compress` wrote.
    vectors: The vectors, as `nearkin compress` reads them.
    ids: Ids, one a line: those of the vectors (.npy, .txt, .csv, .parquet; file.csv:column). [default: the ids that
        the vectors have, else row numbers]
    upsert: Replace the vectors whose ids the index has, add the others.
    """
    given = open_given(vectors, ids=ids)
    made = change_rows(index, "upsert" if upsert else "add", given.ids, given.file)
    return made | {"understood": given.about}
