"""`python -m explorer recompiles` and `ledger`: a script under a watch, and saved ledgers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.__main__ import main
from explorer.model.events.ledger import Ledger

SCRIPT = """\
import sys
import jax, jax.numpy as jnp

@jax.jit
def step(batch):
    return batch["x"] * 2

for size in map(int, sys.argv[1:]):
    step({"x": jnp.ones(size)})
print("trained on", sys.argv[1:])
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])

    def write(end=""):
        Path("train.py").write_text(SCRIPT + end)
        return "train.py"

    return write


def reasons(path):
    return [
        event.reason.kind for event in Ledger.load(path).events if event.kind == "compile" and event.function == "step"
    ]


# --- recompiles


def test_a_script_runs_with_its_arguments_and_the_ledger_follows_on_stderr(script, capsys):
    assert main(["recompiles", script(), "8", "8", "5"]) == 0
    out, err = capsys.readouterr()
    assert out == "trained on ['8', '8', '5']\n"
    assert "step" in err
    assert "batch['x'].shape[0]" in err
    assert "train.py" in err


def test_options_after_the_script_are_the_scripts(script, capsys):
    Path("show.py").write_text("import sys; print(sys.argv)")
    assert main(["recompiles", "show.py", "--save", "x", "-m"]) == 0
    assert capsys.readouterr().out == "['show.py', '--save', 'x', '-m']\n"


def test_the_ledger_is_saved_and_written_as_a_page(script, capsys):
    assert main(["recompiles", "--save", "a.jsonl", "--html", "a.html", script(), "8", "5"]) == 0
    assert reasons("a.jsonl") == ["first", "shape"]
    assert "step" in Path("a.html").read_text()


def test_files_are_written_where_they_were_named_though_the_script_goes_elsewhere(script, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    assert main(["recompiles", "--save", "a.jsonl", script("import os; os.chdir('elsewhere')"), "8"]) == 0
    assert reasons(tmp_path / "a.jsonl") == ["first"]


def test_a_script_that_raises_ends_as_without_us_and_the_ledger_is_shown(script, capsys):
    assert main(["recompiles", "--save", "a.jsonl", script("def fail(): return 1 / 0\nfail()\n"), "8", "5"]) == 1
    err = capsys.readouterr().err
    traceback, _, shown = err.partition("ZeroDivisionError: division by zero\n")
    assert [line.strip() for line in traceback.splitlines() if "File" in line] == [
        'File "train.py", line 12, in <module>',
        'File "train.py", line 11, in fail',
    ]
    assert "batch['x'].shape[0]" in shown
    assert reasons("a.jsonl") == ["first", "shape"]


@pytest.mark.parametrize(
    ("end", "status", "says"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no data')", 1, "no data\n"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("broken +", 1, "SyntaxError"),
    ],
)
def test_the_exit_status_is_the_scripts(script, capsys, end, status, says):
    assert main(["recompiles", script(end), "8"]) == status
    assert says in capsys.readouterr().err


def test_it_is_main_and_imports_its_neighbours(script, capsys):
    Path("neighbour.py").write_text("name = 'next door'")
    Path("sub").mkdir()
    Path("sub/own.py").write_text("name = 'inside'")
    Path("sub/run.py").write_text(
        "import sys, own\n"
        "class Config: pass\n"
        "print(own.name, __name__, sys.modules['__main__'].Config is Config, Config.__module__)\n"
    )
    assert main(["recompiles", "sub/run.py"]) == 0
    assert capsys.readouterr().out == "inside __main__ True __main__\n"


@pytest.mark.slow
def test_a_module_runs_as_with_python_m(script):
    Path("tool").mkdir()
    Path("tool/__main__.py").write_text("import sys; print(__name__, __package__, sys.argv[1:])")
    done = subprocess.run(
        [sys.executable, "-m", "explorer", "recompiles", "-m", "tool", "a"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "__main__ tool ['a']\n")
    assert "Nothing" in done.stderr or "0 compiles" in done.stderr


def test_a_script_that_is_not_there_is_one_line(script, capsys):
    assert main(["recompiles", "nowhere.py"]) == 1
    assert capsys.readouterr().err.splitlines()[0].startswith("FileNotFoundError: ")


@pytest.mark.parametrize("name", ["nowhere/a.jsonl", "."])
def test_a_file_that_can_not_be_written_is_refused_before_the_script_runs(script, capsys, name):
    with pytest.raises(SystemExit) as stopped:
        main(["recompiles", "--save", name, script(), "8"])
    assert stopped.value.code == 2
    assert "trained" not in capsys.readouterr().out


def test_nothing_is_left_watched(script):
    from jax._src import pjit

    main(["recompiles", script("sys.exit(1)"), "8"])
    assert pjit._infer_params.__module__.startswith("jax.")


# --- ledger


@pytest.fixture
def saved(tmp_path):
    def save(name, *sizes):
        @jax.jit
        def step(batch):
            return batch["x"] * 2

        with ex.watch() as ledger:
            for size in sizes:
                step({"x": jnp.ones(size)})
        ledger.save(tmp_path / name)
        return str(tmp_path / name)

    return save


def test_a_saved_ledger_is_shown(saved, capsys):
    assert main(["ledger", saved("a.jsonl", 8, 5)]) == 0
    out = capsys.readouterr().out
    assert "step" in out
    assert "batch['x'].shape[0]" in out


def test_several_are_shown_as_one_and_written_as_a_page_or_a_ledger(saved, tmp_path, capsys):
    paths = [saved("one.jsonl", 8, 5), saved("two.jsonl", 8, 4)]
    assert main(["ledger", *paths, "-o", str(tmp_path / "both.jsonl"), "-o", str(tmp_path / "both.html")]) == 0
    assert reasons(tmp_path / "both.jsonl") == ["first", "shape", "first", "shape"]
    assert {event.process for event in Ledger.load(tmp_path / "both.jsonl").events} == {"one", "two"}
    assert "<html" in (tmp_path / "both.html").read_text()[:1000].lower()
    assert [line.rpartition(": ")[2].split()[1] for line in capsys.readouterr().out.splitlines()] == ["bytes", "bytes"]


def test_files_of_one_name_are_told_apart(saved, tmp_path, capsys):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = [saved("a/0.jsonl", 8), saved("b/0.jsonl", 5)]
    assert main(["ledger", *paths, "-o", str(tmp_path / "both.jsonl")]) == 0
    assert len({event.process for event in Ledger.load(tmp_path / "both.jsonl").events}) == 2


def test_one_function_alone(saved, capsys):
    path = saved("a.jsonl", 8, 5)
    assert main(["ledger", path, "--function", "step"]) == 0
    assert "convert_element_type" not in capsys.readouterr().out
    assert main(["ledger", path, "--function", "stepp"]) == 1
    assert "NotRecordedError: the ledger has no function 'stepp'" in capsys.readouterr().err


def test_a_file_that_is_none_of_ours_is_one_error(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("no ledger")
    assert main(["ledger", str(tmp_path / "notes.txt")]) == 1
    assert capsys.readouterr().err.startswith("LedgerFileError: ")
    assert main(["ledger", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith("FileNotFoundError: ")
