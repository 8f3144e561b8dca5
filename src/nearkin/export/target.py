"""What every target is: a place that takes an index whole or not at all."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar

from nearkin._types import Record
from nearkin.contracts import Callback as Callback
from nearkin.export.self_check import Search
from nearkin.export.source import Source


@dataclass
class Written:
    """An export that is written but not yet published: how to search it, and facts for the record.

    `judge` says what its answers must be, None for those of the index by its codes.
    """

    search: Search
    facts: Record = field(default_factory=dict)
    judge: Source | None = None


class Target(ABC):
    """One engine. `recall_target` is what its self-check must reach: 1 where its search is exact."""

    recall_target: ClassVar[float] = 1.0

    @abstractmethod
    def writing(self, source: Source, callback: Callback) -> AbstractContextManager[Written]:
        """Write all rows, yield them for the self-check, and publish when the block ends without an error.

        An error at any point (of ours, of the engine, of the network) leaves what was there before.
        `callback(rows, {"total": n})` follows the writing. Raises ValueError for an index that the engine cannot hold,
        or a place that holds something else; OSError where the engine cannot be reached.
        """
