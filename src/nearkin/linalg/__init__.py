"""Matrix functions without learning: Givens rotations, skew gradients, projections, Haar measure. Names load on first
use."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.linalg.givens import rotate_columns as rotate_columns

lazily(__name__, __file__)
