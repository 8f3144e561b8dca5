"""The planted vectors of the export tests, and their bits."""

from tests.export.conftest import X as X
from tests.export.conftest import bits as bits
from tests.export.conftest import hasher as hasher
