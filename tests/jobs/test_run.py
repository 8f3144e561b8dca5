"""What is kept beside a result, and its sizes in words."""

from nearkin.jobs.run import size_in_words, times


def test_sizes_are_compared_with_the_same_vectors_as_floats() -> None:
    """Worked out by hand: 100 vectors of 8 columns are 3,200 bytes."""
    words = size_in_words({"bytes_per_vector": 4, "dimensions": 8, "vectors": 100}, 1600)
    assert words["code"] == "4 bytes per vector, 8 times fewer than its 32 as float32"
    assert words["on disk"] == "1.6 kB in all, 2 times smaller than the 3.2 kB of all vectors"


def test_an_equal_size_is_not_called_larger() -> None:
    assert times(1) == "1 times smaller"
