"""The Python of every page runs, block after block, and every command that a page shows exists with its options.

`docs/notes` is a log of older states and is left out.
"""

import importlib
import re
import shlex
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import nearkin as nk
from tests.cli.conftest import options_of, run
from tests.covering import each

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(
    path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if not {"_build", "notes"} & set(path.parts)
)
README = "../README.md"

SMALLER = {  # what takes seconds at the size of a page
    "tutorials/embeddings.md": {"4000": "1500"},
    "semantic_ids.md": {"planted_interactions(200, 100,": "planted_interactions(80, 50,"},
}


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def names(
    tmp_path: Path, few_fits: None, few_draws: None, quick_faiss: None, monkeypatch: pytest.MonkeyPatch
) -> dict[str, object]:
    """A folder with the files that pages read, and the arrays that they call X, Q, y, ..."""
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 600)
    X = (rng.normal(size=(4, 64))[labels] * 2 + rng.normal(size=(600, 64))).astype(np.float32)
    np.save("vectors.npy", X[:300])
    pairs = nk.data.planted_interactions(60, 50, random_state=0).interactions
    lines = [f"{u},{i},5" for u, i in zip(pairs.rows, pairs.indices, strict=True)]
    Path("ratings.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    answers = nk.data.comparisons_from_vectors(rng.normal(size=(15, 2)), 500, random_state=0)
    np.savetxt("answers.csv", answers.indices, fmt="%d", delimiter=",", header="anchor,near,far", comments="")
    asked = {"pairs": np.column_stack([np.arange(20), np.arange(20, 40)]), "new_queries": X[:5]}
    return {"X": X, "Q": X[:20], "y": labels, "__name__": "page"} | asked


@pytest.mark.parametrize("page", [page for page in [README, *PAGES] if blocks(page)])
def test_the_python_of_a_page(page: str, names: dict[str, object]) -> None:
    space: dict[str, object] = {"__name__": "page"}  # the first block defines what it needs
    for code in blocks(page):
        for large, small in SMALLER.get(page, {}).items():
            code = code.replace(large, small)
        exec(compile(code, page, "exec"), space)
        space = names | space


@each("page", [README, *PAGES])
def test_the_commands_of_a_page(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    fenced = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    lines = re.findall(r"^(?:    )?(nearkin .*)$", fenced, re.MULTILINE) + re.findall(
        r"^    (nearkin .*)$", text, re.MULTILINE
    )
    inline = re.findall(r"`(?:torchrun [^`]* -m )?(nearkin [a-z][^`\n]*)`", text)
    for line in lines + inline:
        words = shlex.split(line.partition("#")[0])[1:]
        wrong = {word.partition("=")[0] for word in words if word.startswith("--")} - options_of(words[0])
        assert not wrong, f"{page}: {words[0]} has no {wrong}"


def test_the_examples_of_contributing(names: dict[str, object]) -> None:
    text = (DOCS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    codes = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(codes) == 2
    for code in codes:
        exec(compile(code, "CONTRIBUTING.md", "exec"), names)


def resolved(name: str) -> object:
    """What a dotted name below `nearkin` is; ImportError or AttributeError if nothing has it."""
    parts = ["nearkin", *name.split(".")]
    found: object = nk
    for depth, part in enumerate(parts[1:], 1):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[: depth + 1]))
        found = getattr(found, part)
    return found


def test_the_functions_tests_and_files_of_the_papers_page_exist() -> None:
    text = (DOCS / "papers.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^\| [^|]* \| ([^|]*) \| [^|]* \|$", text, re.MULTILINE))
    names = re.findall(r"`([a-z_]+(?:\.(?!py`)\w+)+)`", code)
    assert len(names) > 20
    for name in names:
        resolved(name)
    files = re.findall(r"`((?:tests|benchmarks|examples)/[\w/.]+)`", text)
    assert not [file for file in files if not (DOCS.parent / file).exists()]
    defined = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS.parent / "tests").rglob("test_*.py"))
    assert not [name for name in re.findall(r"`(test_\w+)", text) if f"def {name}" not in defined]


def test_the_gallery_names_the_measure_of_a_picture_as_its_page_does() -> None:
    """The picture of distortion while training stood under the words for recall."""
    drawn = {page: dict(re.findall(r"!\[([^]]*)\]\(([^)]*)\)", (DOCS / page).read_text("utf-8"))) for page in PAGES}
    of_file = {file: words for words, file in drawn["gallery.md"].items()}
    for page, pictures in drawn.items():
        for words, file in pictures.items():
            if page != "gallery.md" and file in of_file and " " in words:
                assert of_file[file].split()[0] == words.split()[0], f"{file}: gallery.md and {page} name two measures"


def test_the_commands_of_the_readme_run(names: dict[str, object]) -> None:
    np.save("queries.npy", names["Q"])
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", (DOCS / README).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    lines = [line.partition("#")[0] for language, block in fenced if not language for line in block.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("nearkin ")]
    assert [command[0] for command in commands] == ["compress", "search", "evaluate", "report"]
    for command in commands:
        result = run(*command)
        assert result.exit_code == 0, result.output
    assert Path("hits.csv").is_file()
