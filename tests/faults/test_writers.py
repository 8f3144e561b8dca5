"""Nothing that was acknowledged is lost where several change one index at once; a reader sees one version."""

import pytest

from tests.faults import writers


@pytest.mark.parametrize("way", ["threads", "fork"])  # the campaign adds "spawn", which imports for seconds
def test_no_acknowledged_change_is_lost(way, tmp_path):
    """Before, the last save won: rows that another process had added meanwhile were gone."""
    assert writers.case(writers.WAYS.index(way), 0, tmp_path) == "same"
