"""Which labels fit a new instance? Multi-label classification as two towers: instances left, labels right.

Instances that were never seen are embedded from their features; labels need none. Every (instance, label) pair that is
not observed counts as a weak negative, at the cost of instances + labels.
"""

import numpy as np
from sklearn.datasets import make_multilabel_classification

import nearkin as nk

X, Y = make_multilabel_classification(2000, n_features=30, n_classes=12, n_labels=3, random_state=0)
train = np.arange(len(X)) < 1500
rows, labels = np.nonzero(Y * train[:, None])  # the last 500 instances have features but no pair
pairs = nk.Interactions.from_pairs(rows, labels, left_ids=np.arange(len(X)), right_ids=np.arange(12), left_features=X)

model = nk.TwoTower(n_components=12, random_state=0).fit(pairs)
scores = model.transform_left(X[~train].astype(np.float32)) @ model.right_embeddings_.T

best = scores.argmax(axis=1)
precision = Y[~train][np.arange(len(best)), best].mean()
frequent = Y[~train][:, Y[train].sum(axis=0).argmax()].mean()
print(f"precision@1 on new instances: {precision:.3f}; the most frequent label for all: {frequent:.3f}")
