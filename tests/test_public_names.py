import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import nearkin


def test_every_public_name_is_there():
    for name in nearkin.__all__:
        assert getattr(nearkin, name) is not None
    assert set(dir(nearkin)) == set(nearkin.__all__)


def test_an_unknown_name_lists_the_known():
    with pytest.raises(AttributeError, match=r"no attribute 'Indx'; public names are .*Index"):
        nearkin.Indx  # noqa: B018


def test_import_loads_nothing_heavy():
    heavy = "torch", "faiss", "sklearn", "scipy", "numba", "matplotlib"
    code = f"import sys, nearkin; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.mark.parametrize("given", [None, "4"])
def test_two_openmp_of_macos_get_one_thread_unless_the_user_chose(given: str | None) -> None:
    code = (
        "import os, sys; sys.platform = 'darwin'; import nearkin; print({n: os.environ.get(n) for n in sys.argv[1:]})"
    )
    names = "OMP_NUM_THREADS", "KMP_DUPLICATE_LIB_OK"
    env = {name: value for name, value in os.environ.items() if name not in names}
    env |= {"OMP_NUM_THREADS": given} if given else {}
    printed = subprocess.check_output([sys.executable, "-c", code, *names], text=True, env=env)
    assert printed.strip() == str(dict(zip(names, (given, None) if given else ("1", "TRUE"), strict=True)))


def test_a_type_checker_knows_every_public_name(tmp_path: Path) -> None:
    pytest.importorskip("pyright", reason="part of the dependency group dev")
    names = []
    for name in nearkin.__all__:
        value = getattr(nearkin, name)
        if isinstance(value, ModuleType):
            inner = getattr(value, "__all__", None) or [key for key in vars(value) if key[0].isalpha()]
            names += [f"{name}.{key}" for key in inner if not isinstance(getattr(value, key), ModuleType)]
        else:
            names.append(name)
    (tmp_path / "use.py").write_text("import nearkin\n" + "".join(f"reveal_type(nearkin.{name})\n" for name in names))
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(Path(nearkin.__file__).parents[1])]}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["generalDiagnostics"]
    assert len(names) > 150
    assert len(found) == len(names), [entry["message"] for entry in found if entry["severity"] == "error"]
    unknown = re.compile(r'(is|->) "?(Any|Unknown)"$')
    assert [entry["message"] for entry in found if unknown.search(entry["message"])] == []
