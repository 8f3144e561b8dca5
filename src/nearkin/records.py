"""The records that stages exchange: what was observed, in one canonical form."""
