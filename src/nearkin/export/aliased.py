"""Engines without transactions: a collection for every export, and one name that moves when a collection is whole."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import numpy as np

from nearkin._fields import Extra
from nearkin.export.source import RowBatch, Source
from nearkin.export.target import Callback, Target, Written


class Engine(ABC):
    """What a client must do. `error` is the type of the client's own errors."""

    error: type[Exception] | tuple[type[Exception], ...] = ()

    @abstractmethod
    def current(self, alias: str) -> str | None:
        """The collection that `alias` names, or None; ValueError if it is the name of a collection itself."""

    @abstractmethod
    def count(self, collection: str) -> int:
        """Rows in a collection."""

    @abstractmethod
    def create(self, collection: str, source: Source) -> None:
        """An empty collection for the rows of `source`."""

    @abstractmethod
    def insert(self, collection: str, batch: RowBatch, first: int) -> None:
        """Add rows, of which the first is row number `first`."""

    @abstractmethod
    def finish(self, collection: str) -> None:
        """All rows are there: index them, make them visible."""

    @abstractmethod
    def search(self, collection: str, codes: np.ndarray, k: int) -> list[list[object]]:
        """Ids of the k nearest to each of `codes` (q, bytes) by Hamming distance."""

    @abstractmethod
    def publish(self, alias: str, collection: str, old: str | None) -> None:
        """Let `alias` name `collection` and not `old`, in one step."""

    @abstractmethod
    def drop(self, collection: str) -> None:
        """Remove a collection if it is there."""


class AliasedTarget(Target):
    """Rows go into a collection `name`_`fingerprint`; when it is whole and checked, the alias `name` moves to it.

    Searches by `name` see the old rows or the new ones. The same index again changes nothing; another needs `replace`,
    which removes the old collection in the end. An export that is killed leaves its collection, and the next one to the
    same index removes it. NOT TRIED AGAINST A SERVER: covered by contract tests on what runs embedded, or on a stand-in
    for the client that records its calls.
    """

    recall_target = 0.95  # indexes of these engines are approximate
    engine_name: str
    default_url: str

    def __init__(
        self, url: str | None = None, name: str = "nearkin", replace: bool = False, client: Extra = None
    ) -> None:
        self.url = self.default_url if url is None else url
        self.name, self.replace, self.client = name, replace, client

    @abstractmethod
    def connect(self) -> Engine:
        """A client that is ready."""

    @contextmanager
    def writing(self, source: Source, callback: Callback) -> Iterator[Written]:
        source.need_bits(self.engine_name)
        engine = self.connect()
        with self._explained(engine):
            fresh, old = f"{self.name}_{source.fingerprint()}", engine.current(self.name)
            there = old == fresh and engine.count(fresh) == len(source)
            if not there:
                if old is not None and not self.replace:
                    raise ValueError(f"{self.name} names another index ({old}); --replace overwrites it")
                fresh += "_again" if old == fresh else ""
            try:
                if not there:
                    _fill(engine, fresh, source, callback)
                facts = {"collection": fresh, "alias": self.name, "already_there": there, "tried_on_a_server": False}
                yield Written(lambda asked, k: _ids(engine.search(fresh, asked, k), k, source), facts)
                if not there:
                    engine.publish(self.name, fresh, old)
            except BaseException:
                if not there:
                    with suppress(Exception):  # the first error is the one to tell
                        engine.drop(fresh)
                raise
            if old is not None and not there:
                engine.drop(old)

    @contextmanager
    def _explained(self, engine: Engine) -> Iterator[None]:
        try:
            yield
        except engine.error as error:
            text = (str(error).strip().splitlines() or [type(error).__name__])[0]
            if "@" in self.url:  # a password, and where it ends is a guess: neither the address nor what quotes it
                raise ConnectionError(
                    f"{self.engine_name}: {type(error).__name__}; nothing was published. Give the password by the "
                    "environment and not by --url, and the message says more"
                ) from None
            place = urlsplit(self.url).hostname or self.url
            raise ConnectionError(f"{self.engine_name} at {place}: {text}; nothing was published") from error


def _fill(engine: Engine, collection: str, source: Source, callback: Callback) -> None:
    engine.drop(collection)  # what an export that was killed left
    engine.create(collection, source)
    done = 0
    for batch in source.batches(1024):
        engine.insert(collection, batch, done)
        done += len(batch.ids)
        callback(done, {"total": len(source)})
    engine.finish(collection)


def _ids(found: list[list[object]], k: int, source: Source) -> np.ndarray:
    """Lists of ids as one array (q, k), filled up with -1 or ''."""
    missing = "" if source.has_text_ids else -1
    return np.array([[*ids, *[missing] * (k - len(ids))] for ids in found])
