"""Connecting to PostgreSQL with errors that help and never show a password."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nearkin._types import Record
from nearkin.export.extras import load_extra

if TYPE_CHECKING:
    from psycopg import Connection

_SHOWN = ("host", "hostaddr", "port", "dbname", "user")
_UNREADABLE = (
    "dsn cannot be read; give 'postgresql://user@host:5432/database' (special characters as %XX: @ is %40, / is %2F), "
    "the password by PGPASSWORD or ~/.pgpass"
)


@contextmanager
def connecting(dsn: str) -> "Iterator[Connection]":
    """A connection, closed at the end; ValueError for a DSN that cannot be read, ConnectionError for no answer."""
    psycopg = load_extra("psycopg")
    try:
        parts = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise ValueError(_UNREADABLE) from None  # its text would show the password
    if _may_hide_a_password(dsn, parts):
        raise ValueError(_UNREADABLE)
    where = " ".join(f"{name}={parts[name]}" for name in _SHOWN if name in parts) or "the PG... variables"
    try:
        connection = psycopg.connect(dsn, autocommit=True, connect_timeout=parts.get("connect_timeout", 10))
    except psycopg.OperationalError as error:
        text = " ".join(_without(str(error), parts.get("password")).split())
        raise ConnectionError(f"PostgreSQL at {where} gives no connection: {text}") from None
    with connection:
        yield connection


@contextmanager
def explained() -> Iterator[None]:
    """Turn PostgreSQL's own errors, a lost connection among them, into OSError; the transaction is rolled back."""
    psycopg = load_extra("psycopg")
    try:
        yield
    except psycopg.Error as error:
        text = str(error).strip().splitlines() or [type(error).__name__]
        lost = isinstance(error, psycopg.OperationalError)
        kind = ConnectionError if lost else OSError
        raise kind(f"PostgreSQL: {text[0]}; nothing was changed (the transaction is rolled back)") from error


def _may_hide_a_password(dsn: str, parts: Record) -> bool:
    """Whether libpq may have read a part of an unescaped password as host, port or database, which we would show."""
    scheme, _, rest = dsn.partition("://")
    if scheme not in ("postgresql", "postgres"):
        return False
    before, at, after = rest.partition("@")
    ports = str(parts.get("port", "")).split(",")
    return (
        "@" in after or (bool(at) and ("/" in before or "?" in before)) or not all(p.isdigit() or not p for p in ports)
    )


def _without(text: str, password: str | None) -> str:
    return text.replace(password, "***") if password else text
