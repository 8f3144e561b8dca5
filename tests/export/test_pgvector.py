"""A real PostgreSQL with pgvector: all or nothing, twice is once, and errors that help."""

from collections.abc import Iterator

import numpy as np
import pytest

import nearkin as nk
from nearkin.export import RecallTooLowError, export_index, pgvector
from nearkin.export.pgvector import Pgvector
from nearkin.index import Index
from nearkin.linalg.signs import unpack_bits
from tests.covering import each

psycopg = pytest.importorskip("psycopg", reason="pip install 'nearkin[pgvector]'")


@pytest.fixture
def connection(postgres: str) -> Iterator[psycopg.Connection]:
    """A database without our tables."""
    with psycopg.connect(postgres, autocommit=True) as opened:
        opened.execute("DROP TABLE IF EXISTS nearkin, others")
        opened.execute("CREATE EXTENSION IF NOT EXISTS vector")
        yield opened


def rows(connection: psycopg.Connection) -> int | None:
    if connection.execute("SELECT to_regclass('nearkin')").fetchone()[0] is None:
        return None
    return connection.execute("SELECT count(*) FROM nearkin").fetchone()[0]


def test_ids_codes_and_vectors_arrive_bit_by_bit_and_are_searched(bits, X, Q, postgres, connection) -> None:
    record = export_index(bits, Pgvector(postgres))
    assert not record["already_there"]
    found = connection.execute("SELECT id, code::text, vector::text FROM nearkin ORDER BY id").fetchall()
    assert [row[0] for row in found] == list(range(len(X)))
    expected = unpack_bits(bits.quantizer.encode(X), 12)
    np.testing.assert_array_equal([[int(c) for c in row[1]] for row in found], expected)
    np.testing.assert_allclose([eval(row[2]) for row in found[:100]], X[:100], rtol=1e-6)
    pgvector._need_extension(connection)
    far, _ = pgvector.search(connection, "nearkin", bits.quantizer.encode(Q), n_bits=12)
    assert (far == bits.search(Q, 10)[0]).mean() > 0.95
    plan = connection.execute("EXPLAIN SELECT id FROM nearkin ORDER BY code <~> B'000000000000' LIMIT 5").fetchall()
    assert "nearkin_code" in str(plan), plan


def test_rescoring_by_sql_gives_the_exact_order(bits, X, Q, postgres, connection) -> None:
    sql = export_index(bits, Pgvector(postgres))["rescoring_sql"]
    connection.execute("SET hnsw.ef_search = 1000")
    own, hits = bits.search(Q, 10, oversample=80)[1], 0
    for query, code, truth in zip(Q, unpack_bits(bits.quantizer.encode(Q), 12), own, strict=True):
        given = {"code": "".join(map(str, code)), "vector": str(query.tolist())}
        found = connection.execute(sql.replace("LIMIT 100)", "LIMIT 800)"), given).fetchall()
        assert [row[1] for row in found] == sorted(row[1] for row in found)
        hits += len({row[0] for row in found} & set(truth.tolist()))
    assert hits / own.size > 0.8  # which of the equally far 800 are fetched is chance


def test_the_same_index_twice_changes_nothing_and_another_needs_overwrite(bits, X, postgres, connection) -> None:
    export_index(bits, Pgvector(postgres))
    before = connection.execute("SELECT oid FROM pg_class WHERE relname = 'nearkin'").fetchone()
    assert export_index(bits, Pgvector(postgres))["already_there"]
    assert connection.execute("SELECT oid FROM pg_class WHERE relname = 'nearkin'").fetchone() == before
    connection.execute("DELETE FROM nearkin WHERE id < 10")  # by another hand
    with pytest.raises(ValueError, match="overwrite=True replaces it"):
        export_index(bits, Pgvector(postgres))
    export_index(bits, Pgvector(postgres, overwrite=True))
    assert rows(connection) == len(bits)
    other = Index.build(X[:500], nk.RandomHyperplanes(20, random_state=0).fit(X), metric="hamming")
    with pytest.raises(ValueError, match="table nearkin holds another index"):
        export_index(other, Pgvector(postgres))
    assert rows(connection) == len(bits)
    export_index(other, Pgvector(postgres, overwrite=True))
    assert rows(connection) == 500


def test_a_table_of_someone_elses_is_never_touched(bits, postgres, connection) -> None:
    """`nearkin_fresh` of the user's own, named as the staging table was, was dropped in silence."""
    for name in ("others", "nearkin_fresh"):
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE TABLE {name} AS SELECT 'mine' AS word")
        for replace in (False, True):
            with pytest.raises(ValueError, match=f"table {name} was not written by nearkin"):
                export_index(bits, Pgvector(postgres, name, replace))
            export_index(bits, Pgvector(postgres, overwrite=True))
        assert connection.execute(f"SELECT * FROM {name}").fetchall() == [("mine",)]
        connection.execute(f"DROP TABLE {name}")


def test_an_index_or_a_table_that_came_meanwhile_is_kept(bits, postgres, connection, monkeypatch) -> None:
    connection.execute("DROP TABLE IF EXISTS nearkin_code")
    connection.execute("CREATE TABLE nearkin_code (word text)")
    with pytest.raises(ValueError, match="the database has a nearkin_code of another's; give another name"):
        export_index(bits, Pgvector(postgres))
    assert rows(connection) is None
    connection.execute("DROP TABLE nearkin_code")
    monkeypatch.setattr(Pgvector, "_is_fresh", lambda *args: True)
    connection.execute("CREATE TABLE nearkin (word text)")
    with pytest.raises(ValueError, match="table nearkin was not written by nearkin"):
        export_index(bits, Pgvector(postgres, overwrite=True))
    assert rows(connection) == 0


def test_a_table_may_have_the_name_of_a_word_of_sql(bits, postgres, connection) -> None:
    connection.execute('DROP TABLE IF EXISTS "order"')
    assert export_index(bits, Pgvector(postgres, "order"))["table"] == "order"
    assert export_index(bits, Pgvector(postgres, "order"))["already_there"]
    connection.execute('DROP TABLE "order"')


def test_text_ids_one_row_and_no_vectors(X, hasher, postgres, connection) -> None:
    one = Index.build(X[:1], hasher, ids=["only 'one'"], metric="hamming")
    assert export_index(one, Pgvector(postgres))["recall"] == 1
    assert connection.execute("SELECT * FROM nearkin").fetchone()[0] == "only 'one'"
    assert len(connection.execute("SELECT * FROM nearkin").description) == 2


@pytest.mark.parametrize("replace", [False, True])
def test_a_connection_lost_in_the_middle_of_the_copy_leaves_no_trace(bits, X, postgres, connection, replace) -> None:
    if replace:
        export_index(Index.build(X[:100], bits.quantizer, metric="hamming"), Pgvector(postgres))

    def cut(done: int, record: dict) -> None:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY nearkin\\_%'")

    before = rows(connection)
    with pytest.raises(ConnectionError, match="nothing was changed"):
        export_index(bits, Pgvector(postgres, overwrite=replace), callback=cut)
    assert rows(connection) == before
    assert connection.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'nearkin\\_%'").fetchone() == (
        2 * replace,  # the old table's own indexes
    )
    export_index(bits, Pgvector(postgres, overwrite=replace))
    assert rows(connection) == len(bits)


def test_an_interruption_and_a_failed_check_leave_no_trace(bits, postgres, connection, monkeypatch) -> None:
    def interrupted(done: int, record: dict) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_index(bits, Pgvector(postgres), callback=interrupted)
    assert rows(connection) is None
    monkeypatch.setattr(pgvector, "search", lambda c, t, codes, k, **_: (None, np.zeros((len(codes), k), np.int64)))
    with pytest.raises(RecallTooLowError):
        export_index(bits, Pgvector(postgres))
    assert rows(connection) is None


def test_a_database_that_does_not_answer(bits) -> None:
    dsn = "postgresql://someone:s3cret@127.0.0.1:1/db"
    with pytest.raises(ConnectionError, match=r"host=127\.0\.0\.1 port=1 dbname=db user=someone") as caught:
        export_index(bits, Pgvector(dsn))
    assert "s3cret" not in str(caught.value)


@each(
    "dsn",
    [
        "host=localhost s3cret",
        "postgresql://a:s3cret@host:port%zz/db",
        "passwrd=s3cret",
        "postgresql://a:pa@s3cret@127.0.0.1:1/db",  # was shown as the host
        "postgresql://a:pa/s3cret@127.0.0.1:1/db",  # as the database
        "postgresql://a:s3cret/db@127.0.0.1:1",  # as the port
        "postgresql://a:s3cret/db",
        "postgres://a:s3cret?x@127.0.0.1:1/db",
        "postgresql://a:x@s3cret/y@127.0.0.1:1/db",
    ],
)
def test_a_dsn_that_cannot_be_read_is_not_repeated(bits, dsn) -> None:
    with pytest.raises(ValueError, match="dsn cannot be read; give 'postgresql://user@host:5432/database'") as caught:
        export_index(bits, Pgvector(dsn))
    assert "s3cret" not in str(caught.value)


def test_a_database_without_the_extension(bits, postgres, connection) -> None:
    connection.execute("DROP EXTENSION vector CASCADE")
    connection.execute("DROP ROLE IF EXISTS plain")
    connection.execute("CREATE ROLE plain LOGIN")
    dsn = psycopg.conninfo.make_conninfo(postgres, user="plain")
    with pytest.raises(ValueError, match=r"this database has no pgvector .*CREATE EXTENSION vector"):
        export_index(bits, Pgvector(dsn))


def test_what_pgvector_cannot_hold_is_refused(X, pq, bits, postgres) -> None:
    for match, index, form in (
        ("form is 'bit', .* for an index of bits; this one has metric 'l2'", Index.build(X, pq), "bit"),
        ("form is 'vector', which is for an index of", bits, "vector"),
        ("the index has 2,001 columns .* takes 2000 of vector", Index.build(np.eye(3, 2001)), None),
        ("vectors hold 70000, and halfvec ends at 65504", Index.build(np.eye(3) * 70_000), "halfvec"),
    ):
        with pytest.raises(ValueError, match=match):
            export_index(index, Pgvector(postgres, form=form))
    for match, options in (("form is 'float'", {"form": "float"}), ("lower-case letters", {"name": "x; DROP TABLE"})):
        with pytest.raises(ValueError, match=match):
            Pgvector(postgres, **options)


@pytest.mark.parametrize(
    ("kind", "metric", "form"),
    [("exact", "l2", "vector"), ("exact", "ip", "halfvec"), ("kept", "cosine", "halfvec"), ("codes", "l2", "vector")],
)
def test_vectors_in_full_or_half_precision(form, kind, metric, X, Q, postgres, connection) -> None:
    quantizer = None if kind == "exact" else nk.ProductQuantizer(4, 32, random_state=0, max_iter=2)
    index = Index.build(X[:500], quantizer, ids=[f"row {i}" for i in range(500)], metric=metric)
    if kind == "kept":
        index = Index.build(X[:500], index.quantizer, metric=metric, keep_vectors=True)
    record = export_index(index, Pgvector(postgres, form=form))
    assert record["recall"] >= 0.95
    assert record["form"] == form
    assert export_index(index, Pgvector(postgres, form=form))["already_there"]
    pgvector._need_extension(connection)
    asked = Q / np.linalg.norm(Q, axis=1, keepdims=True) if metric == "cosine" else Q
    found = pgvector.search(connection, "nearkin", asked, 5, form=form, metric=metric)[1]
    expected = index.search(Q, 5, oversample=100 if kind == "kept" else None)[1]
    assert (found == expected).mean() > (0.9 if kind != "codes" else 0.6)  # rows of one code are equally near
    sign = {"l2": "<->", "ip": "<#>", "cosine": "<=>"}[metric]
    vector = str(asked[0].tolist())
    connection.execute("SET enable_seqscan = off")  # of so few rows the planner reads all
    plan = connection.execute(f"EXPLAIN SELECT id FROM nearkin ORDER BY vector {sign} '{vector}' LIMIT 5").fetchall()
    assert "nearkin_code" in str(plan), plan
    with pytest.raises(ValueError, match="holds another index"):
        export_index(index, Pgvector(postgres, form="halfvec" if form == "vector" else "vector"))
