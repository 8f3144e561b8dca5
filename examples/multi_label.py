"""Which labels fit a new instance? Multi-label classification as two towers: instances left, labels right.

python examples/multi_label.py --out labels

Instances that were never seen are embedded from their features; labels need none. Every (instance, label) pair that is
not observed counts as a weak negative, at the cost of instances + labels.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import make_multilabel_classification

import nearkin as nk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="folder to save the model in (default: not saved)")
    out = parser.parse_args().out

    X, Y = make_multilabel_classification(2000, n_features=30, n_classes=12, n_labels=3, random_state=0)
    train = np.arange(len(X)) < 1500
    rows, labels = np.nonzero(Y * train[:, None])  # the last 500 instances have features but no pair
    pairs = nk.Interactions.from_pairs(rows, labels, left_ids=np.arange(2000), right_ids=np.arange(12), left_features=X)

    model = nk.TwoTower(n_components=12, random_state=0).fit(pairs)
    scores = model.transform_left(X[~train].astype(np.float32)) @ model.right_embeddings_.T

    best, frequent = scores.argmax(axis=1), Y[train].sum(axis=0).argmax()
    print(f"precision@1 on new instances: {Y[~train][np.arange(500), best].mean():.3f}")
    print(f"the most frequent label for all: {Y[~train][:, frequent].mean():.3f}")
    if out is not None:
        model.save(out / "model")


if __name__ == "__main__":
    main()
