"""What an index compares rows by."""

METRICS = ("l2", "ip", "cosine", "hamming")
