"""Reading signals and vectors."""
