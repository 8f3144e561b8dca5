"""Matrix facts, no learning: Givens rotations, skew gradients, projections, Haar measure."""

from nearkin.linalg.givens import directional_derivatives as directional_derivatives
from nearkin.linalg.givens import rotate_columns as rotate_columns
from nearkin.linalg.givens import rotate_rows as rotate_rows
