"""A small decoder that writes the id of the next item: a transformer of two layers, and a beam search on a `Trie`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.extmath import randomized_svd
from torch import Tensor, nn

import nearkin as nk
from benchmarks.harness import cpu_seconds
from benchmarks.ids.makers import Made, Maker
from nearkin.quantization.semantic_ids import Trie

LEVELS, CODES = 3, 32  # 32,768 ids for 1,682 or 3,000 items
HISTORY, WIDTH, HEADS, BATCH, RATE, BEAM = 10, 64, 2, 32, 3e-3, 16
LATEST = 60  # items of a person that the decoder is trained on: all take minutes more
DEPTH = 10  # of the ranking that is judged
PLACES, FEWEST, JUDGED = 3_000, 10, 1_000  # of gowalla: the most visited places, visits of a person, people judged


class Log(NamedTuple):
    """Items of each person in order, the last ones held out (of the first people), the number of items, and epochs."""

    seen: list[np.ndarray]
    last: np.ndarray
    n_items: int
    epochs: int


def read(name: str, folder: Path) -> Log:
    """ "ml100k" by its times, or "gowalla" in the order of its file, which has no times, cut down to what fits."""
    table = np.load(folder / f"{name}.npz")
    if name == "ml100k":
        order = np.lexsort((table["timestamp"], table["user"]))
        users, items, epochs = table["user"][order], table["item"][order], 8
    else:
        rows = table["split"] == 0
        users, items, epochs = table["user"][rows], table["item"][rows], 3
        rows = np.isin(items, np.argsort(-np.bincount(items), kind="stable")[:PLACES])
        users, items = users[rows], items[rows]
        rows = np.bincount(users)[users] >= FEWEST
        users, items = users[rows], items[rows]
    values, items = np.unique(items, return_inverse=True)
    people = np.split(items, np.flatnonzero(np.diff(users)) + 1)
    people = [people[row] for row in np.random.default_rng(0).permutation(len(people))]
    last = np.array([items[-1] for items in people[:JUDGED]])
    return Log([items[:-1] for items in people], last, len(values), epochs)


def cases(log: Log, makers: dict[str, Maker], seed: int) -> Iterator[tuple[str, np.ndarray, Maker]]:
    """Every maker on vectors of two towers, nearkin's learned with the towers and, for the first seed, ids at random
    and of a truncated SVD of the same pairs."""
    rows = np.repeat(np.arange(len(log.seen)), [len(items) for items in log.seen])
    columns = np.concatenate(log.seen)
    pairs = nk.Interactions.from_pairs(rows, columns)
    model = nk.TwoTower(32, loss="all-pairs", random_state=seed).fit(pairs)
    towers = np.zeros((log.n_items, 32), np.float32)
    towers[model.right_ids_] = model.right_embeddings_

    def together(X: np.ndarray, levels: int, codes: int, seed: int) -> Made:
        index = nk.SemanticIds(levels, codes, random_state=seed)
        learned = nk.TwoTower(32, loss="all-pairs", index=index, random_state=seed).fit(pairs)
        made, others = learned.index_.ids, np.setdiff1d(np.arange(len(X)), learned.right_ids_)
        ids = np.empty((len(X), levels), np.int64)
        ids[learned.right_ids_], ids[others] = made.ids_, made.assign(X[others])
        return Made(ids, ids, (0.0, 0.0))

    yield "nearkin, learned with the towers", towers, together
    for name, maker in makers.items():
        if name != "at random":
            yield f"{name}, towers", towers, maker
    if seed:
        return
    yield "at random", towers, makers["at random"]
    matrix = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), (len(log.seen), log.n_items))
    _, values, axes = randomized_svd(matrix, 32, random_state=seed)
    yield "nearkin, SVD", np.ascontiguousarray(axes.T * values, np.float32), makers["nearkin"]


class Decoder(nn.Module):
    """Tokens before to the next token; each place in an item has words of its own, and word 0 begins a history."""

    def __init__(self, places: int, codes: int) -> None:
        super().__init__()
        self.words = nn.Embedding(1 + places * codes, WIDTH)
        nn.init.normal_(self.words.weight, std=0.05)
        self.position = nn.Parameter(0.02 * torch.randn((HISTORY + 1) * places + 1, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, 0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.layers(self.words(tokens) + self.position[:length], mask=mask, is_causal=True)
        return self.norm(hidden) @ self.words.weight.T


def judge(
    name: str, vectors: np.ndarray, maker: Maker, log: Log, seed: int, epochs: int | None = None
) -> dict[str, Any]:
    """Recall@10 and NDCG@10 of the last items, by a decoder trained on the items before."""
    ids = maker(vectors, LEVELS, CODES, seed).ids
    codes = max(CODES, int(ids.max()) + 1)
    torch.manual_seed(seed)
    model = Decoder(ids.shape[1], codes)
    words = torch.as_tensor(1 + ids + codes * np.arange(ids.shape[1]))
    seconds, loss = cpu_seconds(lambda: train(model, words, log, epochs or log.epochs))
    found = recommend(model.eval(), words, ids, codes, log)
    hits = found == log.last[:, None]
    gains = (hits / np.log2(np.arange(2, DEPTH + 2))).sum(1)
    return {
        "ids": name, "seed": seed, "seconds": seconds, "loss": loss, "tokens": ids.shape[1],
        "recall@10": float(hits.any(1).mean()), "ndcg@10": float(gains.mean()),
        "errors": [float(values.std() / np.sqrt(len(hits))) for values in (hits.any(1), gains)],
    }  # fmt: skip


def train(model: Decoder, words: Tensor, log: Log, epochs: int) -> float:
    """Adam on windows of each history that begin at random; returns the loss of the last epoch."""
    places = words.shape[1]
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.01)
    latest = [items[-LATEST:] for items in log.seen]
    steps = sum(-(-len(items) // HISTORY) for items in latest) // BATCH + 1
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, epochs * steps)
    generator, mean = np.random.default_rng(0), 0.0
    for _ in range(epochs):
        windows = []
        for items in latest:
            starts = np.arange(-int(generator.integers(HISTORY)), len(items), HISTORY)
            windows += [items[max(0, start) : start + HISTORY] for start in starts if start + HISTORY > 0]
        order, losses = generator.permutation(len(windows)), []
        for first in range(0, len(order), BATCH):
            some = [windows[row] for row in order[first : first + BATCH]]
            tokens = torch.full((len(some), 1 + HISTORY * places), -1)
            for row, items in enumerate(some):
                tokens[row, 1 : 1 + len(items) * places] = words[items].ravel()
            target = tokens[:, 1:]
            inputs = torch.cat([torch.zeros(len(some), 1, dtype=torch.long), target[:, :-1].clamp(min=0)], 1)
            loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), target.flatten(), ignore_index=-1)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if schedule.last_epoch < epochs * steps:
                schedule.step()
            losses.append(float(loss.detach()))
        mean = float(np.mean(losses))
    return mean


@torch.no_grad()
def recommend(model: Decoder, words: Tensor, ids: np.ndarray, codes: int, log: Log) -> np.ndarray:
    """The 10 items (m, 10) of the likeliest ids that a person has not taken, by a beam on the tree of all ids."""
    places, powers = ids.shape[1], codes ** np.arange(ids.shape[1])[::-1]
    numbers = np.sort(ids @ powers)
    order, answers = np.argsort(ids @ powers), np.full((len(log.last), DEPTH), -1)
    for person, items in enumerate(log.seen[: len(log.last)]):
        free = numbers[~np.isin(order, items)]
        below = (codes ** (places - depth) for depth in range(1, places + 1))
        trie = Trie(codes, tuple(np.unique(free // size) for size in below))
        begun = torch.cat([torch.zeros(1, dtype=torch.long), words[items[-HISTORY:]].ravel()])
        prefixes, scores = np.empty((1, 0), np.int64), np.zeros(1)
        for place in range(places):
            own = torch.as_tensor(1 + prefixes + codes * np.arange(place))
            logits = model(torch.cat([begun.expand(len(prefixes), -1), own], 1))[:, -1]
            level = logits[:, 1 + place * codes : 1 + (place + 1) * codes].log_softmax(1).numpy()
            total = np.where(trie.allowed(prefixes), scores[:, None] + level, -np.inf).ravel()
            best = np.argsort(-total, kind="stable")[:BEAM]
            best = best[np.isfinite(total[best])]
            prefixes = np.column_stack([prefixes[best // codes], best % codes])
            scores = total[best]
        answers[person] = order[np.searchsorted(numbers, prefixes[:DEPTH] @ powers)]
    return answers
