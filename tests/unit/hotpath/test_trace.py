"""`python -m explorer trace` and `visualize`: what a script runs, over time."""

import sys
from pathlib import Path

import pytest

import explorer as ex
from explorer.__main__ import main
from explorer.files.instruction_log import LogLine, read_log, read_timeline
from explorer.hotpath.auto import active

SCRIPT = """\
import sys, time
import jax, jax.numpy as jnp

x = jnp.ones((4, 4))
jnp.tanh(x)
for turn in range(int(sys.argv[1])):
    x = jnp.tanh(x)
    time.sleep(float(sys.argv[2]))
print("done", sys.argv[1:])
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    Path("train.py").write_text(SCRIPT)
    return "train.py"


def test_a_script_runs_and_each_operation_has_a_line(script, capsys):
    assert main(["trace", "--dir", "logs", script, "7", "0"]) == 0
    out, err = capsys.readouterr()
    assert out == "done ['7', '0']\n"
    lines = read_log("logs/trace_train.log")
    turns = [line for line in lines if line.details.get("at") == "train.py, line 7"]
    assert [(line.kind, line.name) for line in turns] == [("RUN", "tanh")] * 7
    assert turns[0].details["inputs"] == "f32[4,4]"
    assert "trace_train.log: " in err
    assert main(["trace", "--dir", "logs", script, "1", "0"]) == 0  # another file: a log is written on
    assert Path("logs/trace_train_2.log").exists()


def test_it_ends_after_its_seconds_and_the_script_goes_on(script, capsys):
    assert main(["trace", "-s", "0.05", script, "30", "0.01"]) == 0
    assert "done" in capsys.readouterr().out
    assert 1 <= sum(line.name == "tanh" for line in read_log("trace_train.log")) < 25


def test_hot_functions_are_in_it_where_they_are_on(tmp_path, monkeypatch, script, capsys):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)
    Path("train.py").write_text(
        "import jax.numpy as jnp\nX = jnp.ones((4, 4))\ndef chain(x):\n    for _ in range(30):\n"
        "        x = jnp.tanh(x)\n    return x\nfor _ in range(60):\n    chain(X)\n"
    )
    with ex.auto_compile(threshold=1, seconds=0, background=False):
        assert main(["trace", script]) == 0
    assert active() is None
    timeline = read_timeline("trace_train.log")
    assert [each.function for each in timeline.compiles if each.is_hot] == ["chain"]
    assert timeline.counts["chain", True] > 10
    assert sum(map(sum, (thread.compiled for thread in timeline.threads))) == timeline.counts["chain", True]


def lines():
    for number in range(100):
        note = "(COMPILED)" if number >= 60 else ""
        yield LogLine(number / 10, number, "RUN", "MainThread", "step" if note else "tanh", {}, note)
    yield LogLine(5.0, 200, "COMPILE", "pool", "Starting", {"function": "step", "hot": "true"})
    yield LogLine(5.2, 201, "COMPILE", "pool", "Starting", {"function": "step"})
    yield LogLine(5.4, 202, "COMPILE", "pool", "Complete", {"function": "step"})
    yield LogLine(5.5, 203, "COMPILE", "pool", "Complete", {"function": "step", "hot": "true"})
    yield LogLine(9.5, 204, "COMPILE", "MainThread", "Starting", {"function": "never ends"})


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "a.log"
    path.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
    return path


def test_a_log_is_read_as_a_timeline(log):
    timeline = read_timeline(log)
    assert timeline.headline == "100 operations in 9.9 s, 40 of them compiled functions; 1 compile took 500 ms"
    (thread,) = timeline.threads
    assert (sum(thread.single), sum(thread.compiled)) == (60, 40)
    # What was compiled as a part of a hot function's compile isn't counted twice.
    assert [(each.function, each.is_hot) for each in timeline.compiles] == [("step", True)]
    first = next(part for part, count in enumerate(thread.compiled) if count)
    assert first / len(thread.compiled) == pytest.approx(6.0 / 9.9, abs=0.01)


def test_it_is_drawn_as_picture_and_page_and_told_in_a_sentence(log, capsys):
    folder = log.parent
    outputs = [folder / name for name in ("a.png", "a.svg", "a.html")]
    assert main(["visualize", str(log), *(f"--output={path}" for path in outputs)]) == 0
    png, svg, page = (path.read_bytes() for path in outputs)
    assert png.startswith(b"\x89PNG")
    assert b"compiled functions" in svg
    assert b"100 operations in 9.9 s" in page
    assert b"step (compiled)" in page
    capsys.readouterr()
    assert main(["visualize", str(log)]) == 0
    assert capsys.readouterr().out == f"a.log: {read_timeline(log).headline}\n"


def test_what_is_no_log_is_an_error_with_a_hint(tmp_path, capsys):
    (tmp_path / "b.log").write_text("nothing of it\n")
    assert main(["visualize", str(tmp_path / "b.log")]) == 1
    assert "no line of an instruction log" in capsys.readouterr().err
    assert main(["visualize", str(tmp_path / "none.log")]) == 1


@pytest.mark.parametrize("arguments", [["trace", "-s", "0", "a.py"], ["visualize", "a.log", "-o", "a.gif"]])
def test_what_can_not_be_is_refused_by_the_command_line(arguments, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert "0' is no number above 0" in (err := capsys.readouterr().err) or ".gif' doesn't end in .png" in err
