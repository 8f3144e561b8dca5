"""Two towers: interactions to embeddings of both sides."""

from nearkin.embedding.two_tower.estimator import TwoTower as TwoTower
