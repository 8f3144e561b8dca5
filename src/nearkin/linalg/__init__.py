"""Matrix facts, no learning: Givens rotations, skew gradients, projections, Haar measure."""
