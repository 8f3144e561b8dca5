"""Tuned numbers: each stands in a `Defaults`, is read when a fit runs, and has a measured row."""

import ast

import numpy as np

from benchmarks.defaults.fields import problems_of
from benchmarks.defaults.problems import PROBLEMS
from benchmarks.defaults.run import Field, all_fields, others
from benchmarks.table import RESULTS, Results
from nearkin.quantization import ResidualQuantizer
from tests.covering import each
from tests.test_architecture import FILES, nodes

FIELDS = all_fields()


@each("field", FIELDS)
def test_a_tuned_number_has_two_problems_and_other_values(field: Field) -> None:
    assert len(set(problems_of(str(field)))) >= 2
    assert set(problems_of(str(field))) <= set(PROBLEMS)
    assert all(value != field.value for value in others(field))


def reads_defaults(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "DEFAULTS" for part in ast.walk(node))


def test_tuned_numbers_are_read_when_a_fit_runs() -> None:
    """A parameter's default would be read at import, where a benchmark can no longer move it."""
    found = []
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                early = [*node.args.defaults, *node.args.kw_defaults, *node.decorator_list]
            elif isinstance(node, ast.ClassDef | ast.Module):
                early = [part.value for part in node.body if isinstance(part, ast.Assign | ast.AnnAssign)]
            else:
                continue
            found += [f"{path}:{part.lineno}" for part in early if part and reads_defaults(part)]
    assert not found


def test_a_moved_number_changes_the_fit_and_comes_back() -> None:
    X = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32)
    field = Field("quantization.additive", "memory")

    def fit() -> np.ndarray:
        return ResidualQuantizer(2, n_centroids=16, random_state=0).fit(X).codebooks_

    before = fit()
    with field.moved(0.0):
        assert not np.array_equal(fit(), before)
    np.testing.assert_array_equal(fit(), before)


def test_the_committed_table_has_every_number_at_its_present_value() -> None:
    rows = {(row["field"], row["problem"]): row["value"] for row in Results(RESULTS).read("defaults")}
    expected = {(str(field), problem): repr(field.value) for field in FIELDS for problem in problems_of(str(field))}
    assert rows == expected
