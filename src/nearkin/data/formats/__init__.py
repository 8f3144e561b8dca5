"""File formats: arrays, typed tables, and the vectors in them."""
