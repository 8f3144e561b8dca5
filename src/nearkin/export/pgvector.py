"""PostgreSQL with pgvector: hash codes as bit(n) under an HNSW index by Hamming distance, vectors and ids beside."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import numpy as np

from nearkin.export.extras import load_extra
from nearkin.export.postgres import connecting, explained
from nearkin.export.source import Source
from nearkin.export.target import Callback, Target, Written
from nearkin.hashing.bits import unpack_bits

_MAX_VECTOR = 16_000  # pgvector's limit of a column, and below of an index
_MAX_BITS = 64_000


class Pgvector(Target):
    """A table (id bigint or text primary key, code bit(n), vector vector(d) where the index keeps its rows).

    Bit i of `hasher.encode`, from 0, is character i of the bit string, from the left. Everything happens in one
    transaction, the self-check too: readers see the old table or the new one, whatever breaks on the way. Exporting the
    same index again changes nothing; another index, or one of other dimensions, needs `replace`, and a table that
    nearkin did not write is never touched.

    dsn: "postgresql://user@host:5432/db" or libpq's key=value form; "" for the PG... variables of the environment.
    """

    recall_target = 0.95  # HNSW is approximate

    def __init__(self, dsn: str = "", name: str = "nearkin", replace: bool = False) -> None:
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,47}", name):  # 63 bytes with the name of the index
            raise ValueError(f"name is {name!r}; it must be lower-case letters, digits and _, at most 48, for a table")
        self.dsn, self.name, self.replace = dsn, name, replace

    @contextmanager
    def writing(self, source: Source, callback: Callback) -> Iterator[Written]:
        bits = source.need_bits("pgvector")
        if bits > _MAX_BITS or source.d > _MAX_VECTOR:
            raise ValueError(
                f"the index has {bits} bits and {source.d} columns; pgvector takes {_MAX_BITS} and {_MAX_VECTOR}"
            )
        about = _about(source)
        with connecting(self.dsn) as connection, explained(), connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"nearkin {self.name}"])
            _need_extension(connection)
            fresh = self._is_fresh(connection, about)
            if fresh:
                self._create(connection, source, about, callback)
            facts = {"table": self.name, "already_there": not fresh, "rescoring_sql": rescoring_sql(self.name)}
            yield Written(lambda asked, k: search(connection, self.name, asked, bits, k)[1], facts)

    def _is_fresh(self, connection: Any, about: dict[str, Any]) -> bool:
        """Whether the table is to be written; ValueError if it is there and may not be overwritten."""
        comment = _found(connection, self.name)
        if comment is None:
            return True
        found = _read_about(comment)
        if found is None:
            raise ValueError(f"table {self.name} was not written by nearkin; give another --name")
        if found == about:
            rows = connection.execute(f'SELECT count(*) FROM "{self.name}"').fetchone()[0]
            if rows == about["rows"]:
                return False
        if self.replace:
            return True
        differing = [key for key in ("bits", "dimensions", "rows") if found.get(key) != about[key]]
        words = ", ".join(f"{found.get(key)} {key} and not {about[key]}" for key in differing) or "other contents"
        raise ValueError(f"table {self.name} holds another index ({words}); --replace overwrites it")

    def _create(self, connection: Any, source: Source, about: dict[str, Any], callback: Callback) -> None:
        """Fill a new table, index it, and put it in the place of the old one, which readers have until then."""
        new, bits = f"nearkin_{uuid4().hex}", about["bits"]  # a name that nobody has
        id_type = "text" if source.has_text_ids else "bigint"
        vector = f", vector vector({source.d})" if about["vectors"] else ""
        connection.execute(f"CREATE TABLE {new} (id {id_type} NOT NULL, code bit({bits}) NOT NULL{vector})")
        _copy(connection, new, source, id_type, callback)
        connection.execute(f"ALTER TABLE {new} ADD PRIMARY KEY (id)")
        connection.execute(f"CREATE INDEX {new}_code ON {new} USING hnsw (code bit_hamming_ops)")
        self._drop_old(connection)
        for end in ("_pkey", "_code"):
            if _found(connection, f"{self.name}{end}") is not None:
                raise ValueError(f"the database has a {self.name}{end} of another's; give another --name")
            connection.execute(f'ALTER INDEX {new}{end} RENAME TO "{self.name}{end}"')
        connection.execute(f'ALTER TABLE {new} RENAME TO "{self.name}"')
        comment = load_extra("psycopg").sql.Literal(json.dumps({"nearkin": about}))
        connection.execute(load_extra("psycopg").sql.SQL(f'COMMENT ON TABLE "{self.name}" IS {{}}').format(comment))
        connection.execute(f'ANALYZE "{self.name}"')

    def _drop_old(self, connection: Any) -> None:
        """Remove the table that `_is_fresh` saw, if it is still nearkin's when nobody else can change it any more."""
        if _found(connection, self.name) is None:
            return
        connection.execute(f'LOCK TABLE "{self.name}" IN ACCESS EXCLUSIVE MODE')
        if _read_about(_found(connection, self.name)) is None:
            raise ValueError(f"table {self.name} was not written by nearkin; give another --name")
        connection.execute(f'DROP TABLE "{self.name}"')


def search(connection: Any, table: str, codes: np.ndarray, n_bits: int, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Hamming distances and ids (q, k) of the rows nearest to packed codes (q, bytes), by the HNSW index."""
    connection.execute(f"SET hnsw.ef_search = {min(1000, max(100, 4 * k))}")
    query = f'SELECT code <~> %s AS far, id FROM "{table}" ORDER BY far LIMIT {int(k)}'
    rows = [connection.execute(query, [code], prepare=True).fetchall() for code in _bit_strings(codes, n_bits)]
    text = any(isinstance(row[1], str) for found in rows for row in found)
    far, ids = np.full((len(rows), k), np.inf), np.full((len(rows), k), "" if text else -1, dtype=object)
    for i, found in enumerate(rows):
        far[i, : len(found)] = [row[0] for row in found]
        ids[i, : len(found)] = [row[1] for row in found]
    return far, ids.astype(np.str_ if text else np.int64)


def rescoring_sql(table: str, candidates: int = 100, k: int = 10) -> str:
    """SQL that fetches candidates by their bits and ranks them by exact vectors: %(code)s is the query's bit string,
    %(vector)s its vector '[1,2,...]'. Candidates must not exceed hnsw.ef_search."""
    return (
        f'WITH near AS MATERIALIZED (SELECT id, vector FROM "{table}" ORDER BY code <~> %(code)s LIMIT {candidates}) '
        f"SELECT id, vector <-> %(vector)s AS distance FROM near ORDER BY distance LIMIT {k}"
    )


def _copy(connection: Any, table: str, source: Source, id_type: str, callback: Callback) -> None:
    kept, done = source.index.kept is not None, 0
    types = {"id": id_type, "code": "bit"} | ({"vector": "vector"} if kept else {})
    vector = load_extra("pgvector").Vector
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({', '.join(types)}) FROM STDIN BINARY") as copy:
        copy.set_types(list(types.values()))
        for batch in source.batches():
            columns = [batch.ids.tolist(), _bit_strings(batch.codes, source.n_bits or 0)]
            if batch.vectors is not None:
                columns.append(list(map(vector, batch.vectors)))
            for row in zip(*columns, strict=True):
                copy.write_row(row)
            done += len(batch.ids)
            callback(done, {"total": len(source)})


def _bit_strings(codes: Any, n_bits: int) -> list[Any]:
    bit = load_extra("pgvector").Bit
    return [bit(row) for row in unpack_bits(codes, n_bits).astype(bool)]


def _about(source: Source) -> dict[str, Any]:
    """What a table says of itself in its comment."""
    return {
        "rows": len(source),
        "bits": source.n_bits,
        "dimensions": source.d,
        "vectors": source.index.kept is not None,
        "fingerprint": source.fingerprint(),
    }


def _found(connection: Any, name: str) -> str | None:
    """The comment of the table (or whatever else) of that name, "" if it has none; None if there is nothing."""
    sql = "SELECT to_regclass(%s)::oid, obj_description(to_regclass(%s), 'pg_class')"
    oid, comment = connection.execute(sql, [f'"{name}"'] * 2).fetchone()
    return None if oid is None else comment or ""


def _read_about(comment: str | None) -> dict[str, Any] | None:
    try:
        return json.loads(comment or "")["nearkin"]
    except (ValueError, KeyError, TypeError):
        return None


def _need_extension(connection: Any) -> None:
    """Create pgvector's extension if it is not there, and teach the connection its types."""
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except load_extra("psycopg").Error as error:
        raise ValueError(
            f"this database has no pgvector ({str(error).strip().splitlines()[0]}); install it, then as a superuser: "
            "CREATE EXTENSION vector"
        ) from error
    load_extra("pgvector.psycopg").register_vector(connection)
