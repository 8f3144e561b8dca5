"""Ranking metrics one user at a time, by their textbook definitions."""

import numpy as np


def slow_metrics(scores: np.ndarray, relevant: list[set[int]], seen: list[set[int]], k: int) -> dict[str, float]:
    """Means over the rows with relevant items."""
    sums = {"recall": 0.0, "precision": 0.0, "ndcg": 0.0, "mrr": 0.0}
    rows = [i for i in range(len(scores)) if relevant[i]]
    for i in rows:
        ranked = [j for j in sorted(range(scores.shape[1]), key=lambda j: -scores[i, j]) if j not in seen[i]][:k]
        hits = [j in relevant[i] for j in ranked]
        sums["recall"] += sum(hits) / len(relevant[i])
        sums["precision"] += sum(hits) / k
        ideal = sum(1 / np.log2(r + 2) for r in range(min(k, len(relevant[i]))))
        sums["ndcg"] += sum(1 / np.log2(r + 2) for r, hit in enumerate(hits) if hit) / ideal
        sums["mrr"] += next((1 / (r + 1) for r, hit in enumerate(hits) if hit), 0.0)
    return {f"{name}@{k}": total / len(rows) for name, total in sums.items()}
