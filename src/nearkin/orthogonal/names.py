"""How the pairs of a Givens step may be chosen, by name; apart from what chooses them, which loads torch."""

SELECTIONS = ("random", "greedy", "2opt", "steepest")
