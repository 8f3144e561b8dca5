"""The benchmarks' one door: which module a command names, and that every subject has what its commands ask for."""

import ast
from pathlib import Path

import pytest

import nearkin as nk
from benchmarks import __main__ as door
from benchmarks import drawing
from benchmarks.subjects import HERE, SUBJECTS
from benchmarks.table import RESULTS, Results
from benchmarks.two_tower import updates
from tests.covering import each

COMMANDS = [(name, command) for name, one in SUBJECTS.items() for command in dict.fromkeys((*one.quick, *one.full))]


@each(("name", "command"), COMMANDS)
def test_a_command_names_a_module_and_options_that_it_has(name: str, command: str) -> None:
    module, *arguments = SUBJECTS[name].command(command.split())
    code = (HERE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    known = {"--quick", "--threads", "--data", "--peers"}
    nodes = list(ast.walk(ast.parse(code)))
    known |= {f"--{node.arg}" for node in nodes if isinstance(node, ast.keyword) and node.arg}
    known |= {node.value for node in nodes if isinstance(node, ast.Constant)}
    assert "def main(" in code
    assert {word for word in arguments if word.startswith("--")} <= known


def test_every_subject_has_tables_of_the_committed_results() -> None:
    found = [list(subject.tables(Results(RESULTS))) for subject in SUBJECTS.values()]
    assert all(found)
    names = [table.name for tables in found for table in tables]
    assert len(names) == len(set(names))


@each(
    ("words", "command", "quick"),
    [
        ("two_tower --seeds 1", "two_tower.run --seeds 1", False),
        ("orthogonal tasks --quick", "orthogonal.tasks --quick", True),
        ("defaults quantization.additive", "defaults.run quantization.additive", False),
        ("--data here --peers there", "quantization.rotation --quick --data here --peers there", True),
    ],
)
def test_a_quick_run_leaves_the_committed_results_alone(
    words: str, command: str, quick: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr(door, "RESULTS", tmp_path)
    monkeypatch.setattr(door, "start", lambda words, variables: started.append((" ".join(words), variables)) or 0)
    monkeypatch.setattr("sys.argv", ["benchmarks", *words.split()])
    assert door.main() == 0
    assert started[0] == (command, {"NEARKIN_RESULTS": str(tmp_path / "quick")} if quick else {})


def test_fold_in_and_warm_start_are_measured_beside_a_refit() -> None:
    pairs = nk.data.planted_interactions(120, 60, random_state=0).interactions
    plain = nk.Interactions.from_pairs(pairs.left_ids[pairs.rows], pairs.right_ids[pairs.indices])
    parts = nk.data.split_random(plain, random_state=0)
    for found in (updates.fold_in(parts.train, 0.1, 0, k=4), updates.warm_start(parts.train, parts.test, 0, k=4)):
        assert found["ndcg"] > 0.8 * found["refit"] > 0
        assert found["seconds"] > 0


def test_lines_of_a_figure_differ_without_colour_and_are_six_at_most() -> None:
    roles = dict(zip("abcdef", ("ours", "ours", "ours", "rival", "rest", "rest"), strict=True))
    assert len({(style["marker"], style["linestyle"]) for style in drawing.styles(roles).values()}) == 6
    with pytest.raises(ValueError, match="7 lines; a panel has at most 6"):
        drawing.styles(roles | {"g": "rest"})
