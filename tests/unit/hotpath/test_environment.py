"""What the environment and the command line turn on, in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import explorer as ex
from explorer.__main__ import main
from explorer.files.instruction_log import read_log
from explorer.hotpath import auto
from explorer.hotpath.auto import active

PROGRAM = """\
import sys
{importing}
import jax, jax.numpy as jnp
X = jnp.linspace(0.1, 1.0, 256).reshape(16, 16)

def chain(x):
    for _ in range(12):
        x = jnp.tanh(x) * 2 + 1
    return x

def shows(x):
    for _ in range(12):
        x = jnp.tanh(x) * 2 + 1
    print("shown", file=sys.stderr)
    return x

def main():
    for _ in range(300):
        y = chain(X)
        shows(X)
    print(sys.argv, __name__, sys.path[0])

main()
{end}
"""


@pytest.fixture
def program(tmp_path):
    def write(*, importing="", end=""):
        path = tmp_path / "train.py"
        path.write_text(PROGRAM.format(importing=importing, end=end), encoding="utf-8")
        return path

    return write


def run(*arguments, **variables):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EXPLORER_")}
    environ |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environ)


@pytest.mark.slow
def test_a_program_that_imports_explorer_runs_hot_and_tells_what_happens(program, tmp_path):
    log = tmp_path / "a.log"
    path = program(importing="import explorer")
    # At the first call, whether it is faster or not: that doesn't depend on how busy the machine is.
    done = run(path, EXPLORER_COMPILE="1", EXPLORER_DEBUG_COMPILE="1", EXPLORER_INSTRUCTION_LOG=str(log))
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "[COMPILE]" in line and ("hot" in line or "chain is" in line)]
    texts = [line.removeprefix("[COMPILE] ") for line in lines if "chain" in line]
    assert texts[0].startswith("Detected hot function: chain (train.py, line 6)")
    assert texts[1].startswith("Compiling hot function chain while the program waits (")
    assert texts[2].startswith("Compilation of hot function chain complete (")
    assert texts[3].startswith("Speedup: chain is ")
    assert "Stays as written: shows: " in done.stderr
    assert "(train.py, line 14)" in done.stderr
    assert done.stderr.count("shown") == 300
    written = read_log(log)
    assert [line.number for line in written] == list(range(1, len(written) + 1))
    steps = [line.name for line in written if line.details.get("hot") and line.details["function"] == "chain"]
    assert steps == ["Detected", "Starting", "Complete", "Speedup", "Restored"]
    operations = [line for line in written if line.kind == "RUN"]
    assert {"tanh", "add", "chain"} <= {line.name.removeprefix("jit_") for line in operations}
    assert {line.note for line in operations if line.name == "chain"} == {"(COMPILED)"}
    assert any(line.details["at"] == "train.py, line 8" for line in operations)


@pytest.mark.slow
def test_a_script_runs_as_python_runs_it_with_its_hot_functions_told_of_at_the_end(program, tmp_path):
    path, saved = program(end="sys.exit(3)"), tmp_path / "hot.json"
    plain = run(path, "a", "--b")
    done = run("-m", "explorer", "hot", "--save", saved, "--threshold", "2", path, "a", "--b")
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    report = ex.HotPaths.load(saved)
    assert {"chain", "shows"} <= {row.name for row in report}
    assert report.threshold == 2
    assert done.stderr.count("shown") == 300
    ending = done.stderr.rpartition("shown\n")[2]
    assert ending.startswith("HotPaths(")
    assert "(train.py, line 14)" in ending


@pytest.mark.slow
def test_its_error_is_what_python_shows_without_frames_of_explorer(program):
    path = program(end="raise KeyError(main)")
    done = run("-m", "explorer", "hot", path)
    assert done.returncode == 1
    trace = done.stderr[done.stderr.index("Traceback") : done.stderr.index("HotPaths(")]
    assert str(Path(ex.__file__).parent) not in trace
    assert "line 24, in <module>" in trace


def test_ctrl_c_while_a_copy_runs_shows_the_users_lines_alone(tmp_path, monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    # A function of Explorer's, by its file, that is interrupted.
    code = interrupted.__code__.replace(co_filename=str(Path(ex.__file__).parent / "hotpath" / "hot.py"))
    interrupted.__code__ = code
    path = tmp_path / "train.py"
    path.write_text("import builtins\ndef step():\n    builtins.interrupted()\nstep()\n")
    monkeypatch.setattr("builtins.interrupted", interrupted, raising=False)
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    assert main(["hot", str(path)]) == 130
    trace = capsys.readouterr().err
    assert "line 3, in step" in trace
    assert "hotpath" not in trace[: trace.index("KeyboardInterrupt")]


def test_a_script_that_is_not_there_is_an_error_of_the_command(capsys):
    assert main(["hot", "nowhere.py"]) == 1
    assert "nowhere.py" in capsys.readouterr().err
    assert active() is None


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("EXPLORER_AUTO_COMPILE", "ture", "is 'ture'; allowed are 1, true, .* Did you mean `true`"),
        ("EXPLORER_COMPILE", "2", "EXPLORER_COMPILE is '2'; allowed are 1"),
        ("EXPLORER_COMPILE_THRESHOLD", "ten", "is 'ten'; allowed is a number of calls from 1 on"),
        ("EXPLORER_COMPILE_THRESHOLD", "0", "is '0'"),
        ("EXPLORER_COMPILE_THRESHOLD", "-1", "is '-1'"),
    ],
)
def test_a_value_that_a_variable_can_not_have_is_refused(variable, value, message, monkeypatch):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ex.errors.OptionError, match=message):
        auto.requested()


def test_the_threshold_is_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("EXPLORER_AUTO_COMPILE", " Yes ")
    monkeypatch.setenv("EXPLORER_COMPILE_THRESHOLD", "25")
    hot = auto.requested()
    assert hot.report().threshold == 25
    assert active() is None


@pytest.mark.parametrize("value", ["", "0", "off", "No", "false"])
def test_no_is_no(value, monkeypatch):
    monkeypatch.setenv("EXPLORER_AUTO_COMPILE", value)
    monkeypatch.setenv("EXPLORER_COMPILE", value)
    assert auto.requested() is None


@pytest.mark.slow
def test_turning_it_on_starts_no_backend():
    done = run("-c", "import explorer; from jax._src import xla_bridge as b; print(b.backends_are_initialized())",
               EXPLORER_AUTO_COMPILE="1")  # fmt: skip
    assert done.stdout.strip() == "False", done.stderr
