"""An `IndexingLayer` between the vectors of a frozen encoder and a loss on pairs: the rotation, the codebooks and one
linear map of queries are trained, the vectors stay as they are."""

from typing import NamedTuple

import numpy as np
import torch

from benchmarks.codecs.pair_map import pair_maps
from nearkin import ProductQuantizer
from nearkin.quantization.layer import IndexingLayer, optimizers

STEPS, PAIRS, OTHERS = 100, 256, 256  # of a batch: pairs, and rows that answer none of its queries
_TEMPERATURE, _RIDGE = 0.05, 1.0


class Trained(NamedTuple):
    """The codes, and the map (d, d) of queries."""

    quantizer: ProductQuantizer
    queries: np.ndarray


def trained(X: np.ndarray, Q: np.ndarray, answer: np.ndarray, rows: np.ndarray, n_bytes: int, seed: int) -> Trained:
    """From queries Q (m, d) and the numbers (m,) of their answers among X (n, d); product codes of X[rows] start it.

    The loss is softmax over the batch's rows of minus squared distances between mapped queries and quantized rows, and
    the distortion.
    """
    d, generator = X.shape[1], np.random.default_rng(seed)
    layer = IndexingLayer(d, n_bytes, centroids="gradient", max_iter=30, random_state=seed)
    layer.start(X[rows])
    W = torch.nn.Parameter(torch.from_numpy(pair_maps(Q, X[answer], _RIDGE, 0.0)[0]))
    moving = optimizers(layer, [W])
    for _ in range(STEPS):
        asked = generator.choice(len(Q), PAIRS, replace=False)
        shown = np.concatenate([answer[asked], generator.choice(len(X), OTHERS, replace=False)])
        quantized, distortion = layer(torch.from_numpy(X[shown]))
        near = 2 * torch.from_numpy(Q[asked]) @ W @ quantized.T - quantized.square().sum(dim=1)
        also = torch.from_numpy(shown == answer[asked, None]).fill_diagonal_(False)
        scores = (near / _TEMPERATURE).masked_fill(also, -torch.inf)
        loss = torch.nn.functional.cross_entropy(scores, torch.arange(PAIRS)) + distortion
        for optimizer in moving:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in moving:
            optimizer.step()
    return Trained(layer.to_quantizer(), W.detach().numpy())
