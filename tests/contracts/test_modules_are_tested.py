"""Every module of the engine has a test file of its own name, or is named here with the test that stands for it."""

from pathlib import Path

import pytest

SRC, TESTS = Path(__file__).parents[2] / "src" / "nearkin", Path(__file__).parents[1]
ROOMS = ("linalg", "orthogonal", "solvers", "metrics", "hashing")
ELSEWHERE = {  # module -> the file whose tests run it
    "linalg/products": "linalg/test_exponential.py",
    "orthogonal/layout": "contracts/test_optimizers.py",
    "orthogonal/optimizer": "contracts/test_optimizers.py",
    "orthogonal/selection": "orthogonal/test_givens_descent.py",
    "solvers/adagrad": "contracts/test_ordinal_solvers.py",
    "solvers/barzilai_borwein": "solvers/test_svrg.py",
    "solvers/finite_sum": "contracts/test_ordinal_solvers.py",
    "solvers/gradient_descent": "solvers/test_others.py",
    "solvers/lbfgs": "solvers/test_others.py",
    "solvers/monitor": "contracts/test_ordinal_solvers.py",
    "solvers/relay": "solvers/test_others.py",
    "solvers/sgd": "solvers/test_others.py",
    "hashing/alternation": "hashing/test_one.py",
    "hashing/base": "contracts/test_hashers.py",
    "hashing/loading": "hashing/test_registry.py",
    "hashing/pca_hash": "contracts/test_hashers.py",
    "hashing/sign_moments": "hashing/test_linear.py",
}


def modules() -> list[str]:
    return [f"{room}/{file.stem}" for room in ROOMS for file in sorted((SRC / room).glob("[!_]*.py"))]


@pytest.mark.parametrize("name", modules())
def test_a_module_has_its_test(name: str) -> None:
    room, module = name.split("/")
    own = f"{room}/test_{module}.py"
    assert (TESTS / ELSEWHERE.get(name, own)).is_file(), f"write tests/{own}, or name the test that stands for {name}"
    assert not (name in ELSEWHERE and (TESTS / own).is_file()), f"{name} has a test file now: take it from the list"


def test_the_list_names_modules_that_exist() -> None:
    assert set(ELSEWHERE) <= set(modules())
