"""How do I name items for a generative model, and add new ones later?

python examples/semantic_ids.py
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import nearkin as nk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="where to save the ids (default: a temporary folder)")
    out = parser.parse_args().out or Path(tempfile.mkdtemp())

    images, digits = load_digits(return_X_y=True)
    X = images.astype(np.float32)
    made = nk.SemanticIds(levels=3, codes=64, random_state=0).fit(X[:-100])
    print(f"{made.shared_:.1%} shared their nearest id; the first image is now {made.tokens(made.ids_[:1])[0]}")

    old = made.ids_.copy()
    made.assign(X[-100:])
    print(f"100 new images, {(made.ids_[:-100] != old).any(1).sum()} old ids changed")

    shown = digits[made.ids_[:, 0] == made.ids_[0, 0]]
    print(f"images that share its first code show {sorted(set(shown.tolist()))}")

    # What a language model needs: words to add to its vocabulary, and the codes that may follow what it wrote.
    numbers = 32_000 + old[0] + made.codes * np.arange(made.levels)
    print(f"{len(made.vocabulary())} words, the id's numbers after 32,000 others: {numbers}")
    print(f"{made.trie().allowed(old[:1, :2]).sum()} codes may follow its first two")
    made.save(out / "ids")

    # Ids learned with two towers, which recommend what the towers do: nearkin train pairs.csv --levels 3 --out ids
    pairs = nk.Interactions.from_matrix(nk.data.planted_interactions(200, 100, random_state=0).interactions.matrix())
    towers = nk.TwoTower(16, index=nk.SemanticIds(levels=2, codes=32, random_state=0), random_state=0).fit(pairs)
    learned, first = towers.index_.ids, towers.right_ids_[0]
    print(f"{len(learned.ids_)} items named by two towers; item {first} is {learned.tokens(learned.ids_[:1])[0]}")


if __name__ == "__main__":
    main()
