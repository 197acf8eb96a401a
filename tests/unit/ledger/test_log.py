"""The instruction log: its format, written while things happen and read back; what the environment turns on."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.files.instruction_log import LogLine, parse_line, read_log
from explorer.ledger.watch import DebugLines, LineLog, Watch

GUIDE = """
  0.100s | #0010 | RECV       | CLIENT | BinaryOp | op=matmul
... (repeated pattern) ...
  1.500s | #0150 | COMPILE    | WORKER | Starting | sequence=abc123def456
  3.800s | #0151 | COMPILE    | WORKER | Complete | sequence=abc123def456
  3.801s | #0152 | RECV       | CLIENT | BinaryOp | op=matmul (COMPILED)
"""


def fresh():
    """A jitted function that nothing has compiled yet."""

    @jax.jit
    def step(batch):
        return batch["x"] * 2

    return step


def call(step, *sizes):
    for size in sizes:
        step({"x": jnp.ones(size)})


# --- the format

words = st.text(max_size=30)
lines = st.builds(
    LogLine,
    st.integers(0, 10**9).map(lambda milliseconds: milliseconds / 1000),
    st.integers(0, 10**6),
    words,
    words,
    words,
    st.dictionaries(words, words, max_size=4),
)


@given(lines)
def test_a_line_says_what_it_was_made_of(line):
    assert parse_line(str(line)) == line
    assert "\n" not in str(line)


@given(st.lists(lines, max_size=5))
def test_a_log_is_read_back_as_it_was_written(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("log") / "a.log"
    path.write_text("".join(f"{line}\n" for line in written), encoding="utf-8", newline="\n")
    assert read_log(path) == written


@given(st.text(max_size=200))
def test_any_text_is_a_line_or_none(text):
    parsed = parse_line(text)
    assert parsed is None or parse_line(str(parsed)) is not None


def test_lines_are_those_of_the_guide():
    given = [line for line in GUIDE.splitlines() if "|" in line]
    parsed = [parse_line(line) for line in given]
    assert [str(line) for line in parsed] == given
    assert parsed[1] == LogLine(1.5, 150, "COMPILE", "WORKER", "Starting", {"sequence": "abc123def456"})
    assert parsed[3].note == "(COMPILED)"


def test_what_is_no_line_of_a_log_is_left_out(tmp_path):
    (tmp_path / "guide.log").write_bytes(GUIDE.encode() + b"\xff\xfe\n  9.0s | #1 | CUT")
    assert [line.number for line in read_log(tmp_path / "guide.log")] == [10, 150, 151, 152]


def test_a_log_that_is_not_there_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "none.log")


# --- written by a watch


def told(path, kind="COMPILE"):
    return [line for line in read_log(path) if line.kind == kind and line.details["function"] == "step"]


def test_a_compile_has_a_line_when_it_starts_and_one_when_it_is_complete(tmp_path):
    with ex.watch(log=tmp_path / "a.log"):
        call(fresh(), 8, 8, 5)
    first, done, second, again = told(tmp_path / "a.log")
    assert [line.name for line in (first, done, second, again)] == ["Starting", "Complete"] * 2
    assert [done.details["reason"], again.details["reason"]] == ["first", "shape"]
    assert again.details.items() >= {"leaf": "batch['x'].shape[0]", "before": "8", "after": "5"}.items()
    assert second.details["leaf"] == "batch['x'].shape[0]"  # known before XLA has begun
    assert again.details["at"].startswith("test_log.py, line ")
    assert float(again.details["seconds"]) > 0
    assert again.source == threading.current_thread().name


def test_each_event_has_its_line_and_lines_are_numbered(tmp_path):
    with ex.watch(log=tmp_path / "a.log") as ledger:
        call(fresh(), 8, 5)
    lines = read_log(tmp_path / "a.log")
    assert [line.number for line in lines] == [*range(1, len(lines) + 1)]
    complete = [line.kind.lower() for line in lines if line.name == "Complete"]
    assert complete == [event.kind for event in ledger.events]


def test_the_line_is_on_disk_before_the_compile_is_over(tmp_path, monkeypatch):
    seen = []

    def trace_of(batch):
        return batch["x"] * 2

    with ex.watch(log=tmp_path / "a.log") as ledger:
        ledger.listen(lambda events: seen.append((tmp_path / "a.log").read_text()))
        call(jax.jit(trace_of), 8)
    assert "| Starting | function=trace_of" in seen[-1]


def test_a_trace_that_fails_is_told_of(tmp_path):
    @jax.jit
    def step(x):
        raise RuntimeError("no")

    with ex.watch(log=tmp_path / "a.log"), pytest.raises(RuntimeError):
        step(jnp.ones(3))
    assert [line.name for line in told(tmp_path / "a.log", "TRACE")] == ["Failed (RuntimeError)"]


def test_nothing_is_written_after_the_watch(tmp_path):
    step = fresh()
    with ex.watch(log=tmp_path / "a.log"):
        call(step, 8)
    size = (tmp_path / "a.log").stat().st_size
    call(step, 5)
    assert (tmp_path / "a.log").stat().st_size == size > 0


def test_a_second_watch_writes_on(tmp_path):
    for size in (8, 5):
        with ex.watch(log=tmp_path / "a.log"):
            call(fresh(), size)
    assert len(told(tmp_path / "a.log")) == 4


def test_a_log_that_can_not_be_written_is_an_error_of_the_one_who_asks(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        ex.watch(log=tmp_path / "nowhere" / "a.log")
    call(fresh(), 8)  # and nothing is left on


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")
def test_a_full_disk_is_told_of_once_and_reaches_no_call(capsys):
    with ex.watch(log="/dev/full"):
        call(fresh(), 8, 5)
    assert capsys.readouterr().err.count("/dev/full can't be written any more") == 1


def test_threads_write_whole_lines(tmp_path):
    steps = [fresh() for _ in range(2)]
    with ex.watch(log=tmp_path / "a.log"):
        threads = [
            threading.Thread(target=call, args=(step, 3, 4, 5), name=f"worker {i}") for i, step in enumerate(steps)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    text = (tmp_path / "a.log").read_text().splitlines()
    assert all(parse_line(line) is not None for line in text)
    assert {line.source for line in told(tmp_path / "a.log")} == {f"worker {i}" for i in range(2)}
    assert len(told(tmp_path / "a.log")) == 2 * 3 * 2


# --- for a person


def test_a_person_reads_what_recompiles_and_how_long_it_took():
    out = io.StringIO()
    with Watch(event_listeners=[DebugLines(out)]):
        call(fresh(), 8, 5)
    first, done, again, done_again = out.getvalue().splitlines()
    assert first.startswith("[COMPILE] Compiling step (test_log.py, line ")
    assert again.startswith("[COMPILE] Recompiling step: batch['x'].shape[0] 8 → 5 (test_log.py, line ")
    for line in (done, done_again):
        assert line.startswith("[COMPILE] Compilation complete (")
        assert line.endswith("s)")


def test_a_reader_who_is_gone_reaches_no_call():
    out = io.StringIO()
    out.close()
    with Watch(event_listeners=[DebugLines(out)]):
        call(fresh(), 8)


# --- the environment

PROGRAM = """
import explorer, jax
step = jax.jit(lambda x: x * 2)
step(1.0); step(1)
print("done")
"""


def run(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", **variables}
    return subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )


@pytest.mark.slow
def test_the_environment_turns_both_on_for_a_session(tmp_path):
    done = run(tmp_path, EXPLORER_INSTRUCTION_LOG="session.log", EXPLORER_DEBUG_COMPILE="1")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "[COMPILE] Recompiling <lambda>: x" in done.stderr
    names = [line.name for line in read_log(tmp_path / "session.log") if line.kind == "COMPILE"]
    assert names.count("Starting") == names.count("Complete") >= 2


@pytest.mark.slow
def test_a_path_that_can_not_be_written_is_one_line_on_stderr(tmp_path):
    done = run(tmp_path, EXPLORER_INSTRUCTION_LOG="no/such/folder.log")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.splitlines() == [
        "explorer: EXPLORER_INSTRUCTION_LOG=no/such/folder.log: No such file or directory; there will be no log"
    ]


@pytest.mark.parametrize("value", ["", "0", "false", "No", "off"])
def test_empty_zero_and_false_are_off(tmp_path, monkeypatch, value):
    from explorer.ledger.watch import from_environment

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXPLORER_INSTRUCTION_LOG", value)
    monkeypatch.setenv("EXPLORER_DEBUG_COMPILE", value)
    assert from_environment() == []
    assert not list(tmp_path.iterdir())


def test_a_log_of_a_child_process_says_so(tmp_path, monkeypatch):
    log = LineLog(tmp_path / "a.log")
    monkeypatch.setattr("multiprocessing.current_process", lambda: type("P", (), {"name": "worker-3"}))
    with Watch(event_listeners=[log]):
        call(fresh(), 8)
    log.close()
    assert {line.source for line in told(tmp_path / "a.log")} == {f"worker-3/{threading.current_thread().name}"}
