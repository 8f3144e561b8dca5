"""The parts of benchmarks/ordinal.py: each measures one thing and returns a record for JSON."""
