"""Vectors from comparisons (SVRG-SBB). Names are loaded on first use."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.embedding.ordinal.estimator import OrdinalEmbedding as OrdinalEmbedding
    from nearkin.embedding.ordinal.losses import LOSSES as LOSSES
    from nearkin.embedding.ordinal.losses import get_loss as get_loss
    from nearkin.embedding.ordinal.objective import SOLVERS as SOLVERS
    from nearkin.embedding.ordinal.questions import ask_function as ask_function

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
