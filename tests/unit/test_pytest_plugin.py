"""The pytest plugin, in a pytest of its own: one for all tests here, since each pays for importing JAX."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
INSTALLED = any(point.value == "pytest_explorer" for point in entry_points(group="pytest11"))

TESTS = """
import jax, jax.numpy as jnp, pytest
import explorer as ex

@pytest.fixture
def step():
    @jax.jit
    def step(batch):
        return batch["x"] * 2
    return step

@pytest.fixture
def warm(step):
    call(step, 8)

@pytest.fixture
def broken(no_recompiles):
    raise RuntimeError("the fixture is broken")

def call(step, *sizes):
    for size in sizes:
        step({"x": jnp.ones(size)})

def test_ledger_sees_the_test(step, ledger):
    call(step, 8, 5)
    assert [event.reason.kind for event in ledger.recompiles("step")] == ["shape"]

def test_nothing_again(step, no_recompiles):
    call(step, 8, 8)

def test_again(step, no_recompiles):
    call(step, 8, 5)

def test_the_same_as_a_fixture(step, warm, no_recompiles):
    call(step, 8)

def test_other_than_a_fixture(step, warm, no_recompiles):
    call(step, 5)

@pytest.mark.no_recompiles
def test_marked_again(step):
    call(step, 8, 5)

@pytest.mark.no_recompiles("other")
def test_marked_for_another(step):
    call(step, 8, 5)

@pytest.mark.max_compiles("step", 2)
def test_as_many_as_allowed(step):
    call(step, 8, 5)

@pytest.mark.max_compiles("step", 1)
def test_more_than_allowed(step):
    call(step, 8, 5)

@pytest.mark.max_compiles("step", 0)
class TestClass:
    def test_in_a_class(self, step):
        call(step, 8)

@pytest.mark.no_recompiles
def test_its_own_failure(step, no_recompiles):
    call(step, 8, 5)
    assert 1 == 2

def test_a_block(step):
    with ex.assert_no_recompiles():
        call(step, 8, 5)

def test_never_runs(broken):
    pass

def test_skipped(no_recompiles):
    pytest.skip("no")

@pytest.mark.max_compiles("step")
def test_mark_without_a_number():
    pass

@pytest.mark.max_compiles("step", -1)
def test_mark_with_a_wrong_number():
    pass

@pytest.mark.no_recompiles(3)
def test_mark_without_a_function():
    pass

def test_nothing_of_ours_is_left_in_jax():
    from jax._src import pjit
    assert pjit._infer_params.__module__.startswith("jax.")
"""


def run(folder: Path, *arguments: str) -> str:
    plugin = () if INSTALLED else ("-p", "pytest_explorer")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--strict-markers", "-p", "no:cacheprovider", *plugin, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), "COLUMNS": "120"},
    )
    return done.stdout


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tests")
    (folder / "test_it.py").write_text(TESTS)
    return run(folder, "-rA", "test_it.py")


def failure(printed, name):
    """What pytest prints of one failure, line by line."""
    found = re.search(rf"^_+ [\w .]*{name} _+\n(.*?)(?=^_{{4,}} |^=+ )", printed, re.DOTALL | re.MULTILINE)
    return found[1].strip().splitlines()


def test_fixtures_and_marks_pass_and_fail_as_they_should(printed):
    outcomes = {name: outcome for outcome, name in re.findall(r"^(\w+) test_it\.py::(\S+)", printed, re.MULTILINE)}
    assert outcomes == {
        "test_ledger_sees_the_test": "PASSED",
        "test_nothing_again": "PASSED",
        "test_again": "FAILED",
        "test_the_same_as_a_fixture": "PASSED",
        "test_other_than_a_fixture": "PASSED",  # what compiled before the guard doesn't count
        "test_marked_again": "FAILED",
        "test_marked_for_another": "PASSED",
        "test_as_many_as_allowed": "PASSED",
        "test_more_than_allowed": "FAILED",
        "TestClass::test_in_a_class": "FAILED",
        "test_its_own_failure": "FAILED",
        "test_a_block": "FAILED",
        "test_never_runs": "ERROR",  # and no other: a guard fails its test, not the teardown
        "test_mark_without_a_number": "FAILED",
        "test_mark_with_a_wrong_number": "FAILED",
        "test_mark_without_a_function": "FAILED",
        "test_nothing_of_ours_is_left_in_jax": "PASSED",
    }


def test_the_failure_is_the_reason_table_and_no_traceback(printed):
    lines = failure(printed, "test_again")
    assert lines[0] == "step compiled again; no recompile is allowed here."
    assert lines[1] == "  [step/2]  batch['x'].shape[0]: 8 → 5 (shape)"
    assert lines[3].startswith("      called at  test_it.py, line ")
    assert lines[4].startswith("      Fix: ")
    assert len(lines) == 5


def test_a_number_of_compiles_is_held(printed):
    assert failure(printed, "test_more_than_allowed")[0] == "step compiled 2 times; 1 is allowed here."
    assert failure(printed, "test_in_a_class")[0] == "step compiled once; no compile is allowed here."


def test_a_tests_own_failure_is_what_is_seen_with_the_table_as_a_note(printed):
    text = "\n".join(failure(printed, "test_its_own_failure"))
    assert "assert 1 == 2" in text
    assert "Besides, step compiled again; no recompile is allowed here." in text
    assert "guards.py" not in text


def test_a_block_inside_a_test_fails_at_the_block(printed):
    text = "\n".join(failure(printed, "test_a_block"))
    assert ">       with ex.assert_no_recompiles():" in text
    assert "RecompilationError: step compiled again; no recompile is allowed here." in text


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("test_mark_without_a_number", "missing 1 required positional argument: 'n'"),
        ("test_mark_with_a_wrong_number", "max_compiles takes a whole number from 0, not -1"),
        ("test_mark_without_a_function", "a guard takes functions or their names, not 3"),
    ],
)
def test_a_mark_that_says_nothing_fails_its_test_and_says_why(printed, name, says):
    assert says in "\n".join(failure(printed, name))


def test_a_pytest_that_uses_none_of_it_imports_neither_explorer_nor_jax_and_knows_the_marks(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import sys\ndef test_it():\n    print(sorted({'pytest_explorer', 'explorer', 'jax'} & set(sys.modules)))\n"
    )
    assert "['pytest_explorer']" in run(tmp_path, "-s", "test_it.py")
    marks = run(tmp_path, "--markers")
    assert "@pytest.mark.max_compiles(function, n): fail if" in marks
    assert "@pytest.mark.no_recompiles(*functions, allow_first=True): fail if" in marks


def test_the_project_declares_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"explorer": "pytest_explorer"}
    assert "pytest_explorer" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


GOLDEN = """
import jax, jax.numpy as jnp

@jax.jit
def step(x):
    return jnp.tanh(x) * SIZES

def test_step(explorer_golden):
    for size in SIZES_SEEN:
        step(jnp.ones(size))
    explorer_golden(step, jnp.ones(8))
"""


def test_a_golden_file_is_written_when_asked_and_then_compared(tmp_path):
    test = tmp_path / "test_golden.py"
    once = GOLDEN.replace("SIZES_SEEN", "[8, 8]").replace("SIZES", "2")
    test.write_text(once)
    assert "GoldenFileError: there is no" in run(tmp_path)
    assert "1 passed" in run(tmp_path, "--update-golden")
    assert (tmp_path / "golden" / "test_step.step.golden").is_file()
    assert "1 passed" in run(tmp_path)
    test.write_text(once.replace("[8, 8]", "[8, 5]"))
    printed = run(tmp_path)
    assert "step compiles 2 times, 1 before" in printed
    assert "test_golden.py:10: `x.shape[0]` was 8 and is now 5" in printed
    test.write_text(once.replace("jnp.tanh(x)", "jnp.tanh(jnp.sort(x))"))
    printed = run(tmp_path)
    assert "test_golden.py:6: `return jnp.tanh(jnp.sort(x)) * 2` has sort f32[8] more" in printed
