"""PostgreSQL with pgvector: hash codes as bit(n), or vectors in full or half precision, under an HNSW index."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

import numpy as np

from nearkin._check import check_choice
from nearkin._fields import Extra, counted
from nearkin._json import parsed_json
from nearkin._types import Record
from nearkin.data.files import extra
from nearkin.export.source import Source
from nearkin.export.target import Callback, Target, Written, padded_ids
from nearkin.linalg.signs import unpack_bits

if TYPE_CHECKING:
    from psycopg import Connection


_MAX_VECTOR = 16_000  # pgvector's limit of a column, and below of an index
_MAX_BITS = 64_000
_MAX_INDEXED = {"vector": 2_000, "halfvec": 4_000}
_MAX_HALF = 65_504.0
_OPERATORS = {"l2": "<->", "ip": "<#>", "cosine": "<=>", "hamming": "<~>"}
FORMS = ("bit", "vector", "halfvec")
EF_SEARCH = 100  # rows that HNSW visits; pgvector's default, 40, is 2.5 times as fast with a lower recall


class Pgvector(Target):
    """A table (id bigint or text primary key) with codes or vectors under an HNSW index.

    Bit i of `hasher.encode`, from 0, is character i of the bit string, from the left. Everything happens in one
    transaction, the self-check too: readers see the old table or the new one, also after an error. Exporting the same
    index again changes nothing. Vectors are checked against exact search among them, which takes them into memory.

    Parameters
    ----------
    dsn: "postgresql://user@host:5432/db" or libpq's key=value form; "" for the PG... variables of the environment.
    name: the table.
    overwrite: whether another index, form or width may be replaced; a table that nearkin did not write is never
        touched.
    form: "bit" for code bit(n), searched by Hamming distance, and vector vector(d) if it keeps its vectors; "vector" or
        "halfvec" (half as large) for vector vector(d) or halfvec(d), searched by the index's own metric: the exact
        vectors if the index has them (of norm 1 for "cosine"), else the decoded codes. None is "bit" for an index of
        bits, else "vector".

    Attributes
    ----------
    name, overwrite, form: as given.

    Examples
    --------
    >>> nk.export.pgvector.Pgvector(name="products", form="halfvec").form
    'halfvec'
    """

    recall_target: ClassVar[float] = 0.95  # HNSW is approximate

    def __init__(self, dsn: str = "", name: str = "nearkin", overwrite: bool = False, form: str | None = None) -> None:
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,47}", name):  # 63 bytes with the name of the index
            raise ValueError(f"name is {name!r}; it must be lower-case letters, digits and _, at most 48, for a table")
        self.form: str | None = None if form is None else check_choice(form, "form", FORMS)
        self.dsn: str = dsn
        self.name: str = name
        self.overwrite: bool = overwrite

    @contextmanager
    def writing(self, source: Source, callback: Callback) -> Iterator[Written]:
        form = self._checked_form(source)
        kept = source.index.kept is not None
        about: Record = {"form": form, "rows": len(source), "bits": source.n_bits, "dimensions": source.d}
        about |= {"vectors": kept, "fingerprint": source.fingerprint()}  # the description in the table's comment
        judge = source if form == "bit" or not kept else source.exact()
        with connecting(self.dsn) as connection, connection.transaction():
            # a second export under this name waits here until the first one has ended
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"nearkin {self.name}"])
            _need_extension(connection)
            fresh = self._is_fresh(connection, about)
            if fresh:
                self._create(connection, source, about, callback)
            facts = {"table": self.name, "form": form, "already_there": not fresh, "ef_search": EF_SEARCH}
            if form == "bit":
                facts["rescoring_sql"] = rescoring_sql(self.name)
            wanted: Record = {"form": form, "metric": source.index.metric, "n_bits": source.n_bits or 0}
            yield Written(lambda asked, k: search(connection, self.name, asked, k, **wanted)[1], facts, judge)

    def _checked_form(self, source: Source) -> str:
        """The form of the table; ValueError if the index lacks these vectors or pgvector's limits are exceeded."""
        bits = source.n_bits
        form = self.form or ("vector" if bits is None else "bit")
        if (form == "bit") != (bits is not None):
            needs = "an index of bits" if form == "bit" else "an index of metric l2, ip or cosine"
            raise ValueError(f"form is {form!r}, which is for {needs}; this one has metric {source.index.metric!r}")
        most = _MAX_VECTOR if form == "bit" else _MAX_INDEXED[form]
        if source.d > most or (bits or 0) > _MAX_BITS:
            raise ValueError(
                f"the index has {counted(source.d, 'column')} and {bits or 0} bits; pgvector takes {most} of {form} "
                f"({_MAX_INDEXED['halfvec']} of halfvec) and {_MAX_BITS} bits"
            )
        return form

    def _is_fresh(self, connection: Extra, about: Record) -> bool:
        """Whether the table is to be written; ValueError if it is there and may not be overwritten."""
        found = self._known(connection)
        if found is None:
            return True
        rows = connection.execute(f'SELECT count(*) FROM "{self.name}"').fetchone()[0]
        if found == about and rows == about["rows"]:
            return False
        if self.overwrite:
            return True
        raise ValueError(f"table {self.name} holds another index; overwrite=True replaces it")

    def _known(self, connection: Extra) -> Record | None:
        """The description of the table of this name, None if there is none."""
        comment = _comment(connection, self.name)
        try:
            return None if comment is None else dict(parsed_json(comment)["nearkin"])
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"table {self.name} was not written by nearkin; give another name") from None

    def _create(self, connection: Extra, source: Source, about: Record, callback: Callback) -> None:
        """Fill a new table, index it, and put it in the place of the old one, which readers have until then."""
        new, form = f"nearkin_{uuid4().hex}", about["form"]  # a name that nobody has
        columns = {"id": "text" if source.has_text_ids else "bigint"}
        if form == "bit":
            columns["code"] = f"bit({about['bits']})"
        if form != "bit" or about["vectors"]:
            columns["vector"] = f"{'vector' if form == 'bit' else form}({source.d})"
        listed = ", ".join(f"{name} {kind} NOT NULL" for name, kind in columns.items())
        connection.execute(f"CREATE TABLE {new} ({listed})")
        index = f"{'code' if form == 'bit' else 'vector'} {form}_{source.index.metric}_ops"
        types = {name: kind.partition("(")[0] for name, kind in columns.items()}
        _copy(connection, new, source, types, callback)
        # keys and graphs of a full table take less time than those that grow with every row
        connection.execute(f"ALTER TABLE {new} ADD PRIMARY KEY (id)")
        connection.execute(f"CREATE INDEX {new}_code ON {new} USING hnsw ({index})")
        if self._known(connection) is not None:
            connection.execute(f'LOCK TABLE "{self.name}" IN ACCESS EXCLUSIVE MODE')
            self._known(connection)  # still nearkin's, now that nobody else can change it?
            connection.execute(f'DROP TABLE "{self.name}"')
        for end in ("_pkey", "_code"):
            if _comment(connection, f"{self.name}{end}") is not None:
                raise ValueError(f"the database has a {self.name}{end} of another's; give another name")
            connection.execute(f'ALTER INDEX {new}{end} RENAME TO "{self.name}{end}"')
        connection.execute(f'ALTER TABLE {new} RENAME TO "{self.name}"')
        sql = extra("psycopg", "pgvector").sql
        comment = sql.Literal(json.dumps({"nearkin": about}))
        connection.execute(sql.SQL(f'COMMENT ON TABLE "{self.name}" IS {{}}').format(comment))
        connection.execute(f'ANALYZE "{self.name}"')


def search(
    connection: Extra, table: str, asked: np.ndarray, k: int = 10, *, form: str = "bit", metric: str = "hamming",
    n_bits: int = 0, ef_search: int = EF_SEARCH,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Scores and ids (q, k) of the vectors nearest to packed codes (q, bytes) of `n_bits`, or in a table of another
    form to vectors (q, d), by the HNSW index.

    Scores are PostgreSQL's: the distance for "hamming" and "l2", the negative inner product for "ip", 1 - the cosine
    for "cosine". ef_search: vectors that HNSW looks at, at least k: more find more and take longer.
    """
    connection.execute(f"SET hnsw.ef_search = {min(1000, max(ef_search, k))}")
    far = f"{'code' if form == 'bit' else 'vector'} {_OPERATORS[metric]} %s"
    query = f'SELECT {far} AS far, id FROM "{table}" ORDER BY far LIMIT {int(k)}'
    rows = [connection.execute(query, [one], prepare=True).fetchall() for one in _values(asked, form, n_bits)]
    far_off = np.array([[row[0] for row in found] + [np.inf] * (k - len(found)) for found in rows])
    return far_off, padded_ids([[row[1] for row in found] for found in rows], k)


def rescoring_sql(table: str, candidates: int = 100, k: int = 10) -> str:
    """SQL that fetches candidates by their bits and ranks them by exact vectors: %(code)s is the query's bit string,
    %(vector)s its vector '[1,2,...]'. Candidates must not exceed hnsw.ef_search."""
    return (
        f'WITH near AS MATERIALIZED (SELECT id, vector FROM "{table}" ORDER BY code <~> %(code)s LIMIT {candidates}) '
        f"SELECT id, vector <-> %(vector)s AS distance FROM near ORDER BY distance LIMIT {k}"
    )


def _copy(connection: Extra, table: str, source: Source, types: dict[str, str], callback: Callback) -> None:
    """All rows by binary COPY; `types` are those of the columns id, code, vector that the table has."""
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({', '.join(types)}) FROM STDIN BINARY") as copy:
        copy.set_types(list(types.values()))
        for batch in source.batches(callback=callback):
            known = {"id": batch.ids, "code": batch.codes, "vector": batch.vectors}
            for row in zip(*(_values(known[name], kind, source.n_bits) for name, kind in types.items()), strict=True):
                copy.write_row(row)


def _values(rows: Any, kind: str, n_bits: int | None) -> list[Extra]:
    """Ids, codes or vectors as values of a column of that type; ValueError for vectors that halfvec cannot hold."""
    if kind in ("bigint", "text"):
        return rows.tolist()
    package = extra("pgvector", "pgvector")
    if kind == "bit":
        return list(map(package.Bit, unpack_bits(rows, n_bits or 0).astype(bool)))
    if kind == "halfvec" and (largest := np.abs(rows).max()) > _MAX_HALF:
        raise ValueError(f"vectors hold {largest:g}, and halfvec ends at {_MAX_HALF:g}; give form='vector'")
    return list(map(package.Vector if kind == "vector" else package.HalfVector, rows))


def _comment(connection: Extra, name: str) -> str | None:
    """The comment of the table (or whatever else) of that name, "" if it has none; None if there is nothing."""
    sql = "SELECT to_regclass(%s)::oid, obj_description(to_regclass(%s), 'pg_class')"
    oid, comment = connection.execute(sql, [f'"{name}"'] * 2).fetchone()
    return None if oid is None else comment or ""


def _need_extension(connection: Extra) -> None:
    """Create pgvector's extension if it is not there, and register its types with the connection."""
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except extra("psycopg", "pgvector").Error as error:
        raise ValueError(
            f"this database has no pgvector ({str(error).strip().splitlines()[0]}); install it, then as a superuser: "
            "CREATE EXTENSION vector"
        ) from error
    extra("pgvector.psycopg", "pgvector").register_vector(connection)


_SHOWN = ("host", "hostaddr", "port", "dbname", "user")
# libpq takes what follows an unescaped @, / or ? of a password for host, port or database, which messages show
_ESCAPED = re.compile(r"postgres(ql)?://([^@/?]*@)?[^@]*|(?!postgres(ql)?://).*", re.DOTALL)
_UNREADABLE = (
    "dsn cannot be read; give 'postgresql://user@host:5432/database' (special characters as %XX: @ is %40, / is %2F), "
    "the password by PGPASSWORD or ~/.pgpass"
)


@contextmanager
def connecting(dsn: str) -> "Iterator[Connection]":
    """A connection, closed at the end; ValueError for a DSN that cannot be read, ConnectionError for no answer, OSError
    for PostgreSQL's own errors in the block."""
    psycopg = extra("psycopg", "pgvector")
    try:
        parts = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise ValueError(_UNREADABLE) from None  # its text would show the password
    if _ESCAPED.fullmatch(dsn) is None or not re.fullmatch(r"[\d,]*", str(parts.get("port", ""))):
        raise ValueError(_UNREADABLE)
    where = " ".join(f"{name}={parts[name]}" for name in _SHOWN if name in parts) or "the PG... variables"
    try:
        connection = psycopg.connect(dsn, autocommit=True, connect_timeout=parts.get("connect_timeout", 10))
    except psycopg.OperationalError as error:
        text, password = str(error), parts.get("password")
        text = " ".join((text.replace(password, "***") if password else text).split())
        raise ConnectionError(f"PostgreSQL at {where} gives no connection: {text}") from None
    try:
        with connection:
            yield connection
    except psycopg.Error as error:
        text = str(error).strip().splitlines() or [type(error).__name__]
        lost = isinstance(error, psycopg.OperationalError)
        kind = ConnectionError if lost else OSError
        raise kind(f"PostgreSQL: {text[0]}; nothing was changed (the transaction is rolled back)") from error
