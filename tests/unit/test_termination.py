"""SIGTERM ends a verb of the shell as an exception does: what was collected is written, and nothing else is left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import explorer as ex

SCRIPT = """
import multiprocessing, os, time, sys
import jax, jax.numpy as jnp

def step(x):
    return jnp.tanh(x) * 2

function = jax.jit(lambda x: x * 2)
for size in (3, 4):
    function(jnp.ones(size))
for _ in range(30):
    step(jnp.ones(3)).block_until_ready()
child = os.fork()
if child == 0:  # a process that the script started, and ends: it has no report to write
    open("child", "w").close()
    time.sleep(60)
    os._exit(3)
while not os.path.exists("child"):
    time.sleep(0.01)
os.kill(child, 15)
assert os.WTERMSIG(os.waitpid(child, 0)[1]) == 15
try:
    open("ready", "w").close()
    time.sleep(60)
finally:
    open("cleaned", "w").close()
"""
PROFILED = """
import time
import jax.numpy as jnp
import jax

calls = []
inner = jax.jit(lambda x: jnp.tanh(x @ x))

def step(x):
    y = inner(x)
    calls.append(1)
    if len(calls) == 30:
        open("ready", "w").close()
    if len(calls) >= 30:
        time.sleep(0.2)
    return y
"""


def terminated(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a verb until there is a file `ready`, and send it SIGTERM."""
    (folder / "temporary").mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "JAX_PLATFORMS": "cpu",
        "TMPDIR": str(folder / "temporary"),
    }
    command = [sys.executable, "-m", "explorer", *arguments]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        until = time.monotonic() + 120
        while not (folder / "ready").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "files"),
    [
        (["recompiles", "--save", "a.jsonl", "--html", "a.html"], ["a.jsonl", "a.html"]),
        (["hot", "--save", "a.json", "--html", "a.html"], ["a.json", "a.html"]),
        (["trace", "--dir", "."], ["trace_script.log"]),
    ],
    ids=lambda value: value[0],
)
def test_a_script_that_is_terminated_leaves_its_report(tmp_path, verb, files):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = terminated(tmp_path, *verb, "--format", "json", "script.py")
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    assert json.loads(done.stdout)["schema"].startswith("explorer/")
    assert (tmp_path / "cleaned").exists()
    assert all((tmp_path / file).stat().st_size for file in files)
    if verb[0] == "recompiles":
        assert "<lambda>" in {event.function for event in ex.Ledger.load(tmp_path / "a.jsonl").events}
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.slow
def test_a_profile_that_is_terminated_has_the_calls_before(tmp_path):
    (tmp_path / "train.py").write_text(PROFILED)
    verb = ["profile", "train.py:step", "--arg", "f32[8,8]", "--runs", "200", "-o", "a.html", "--format", "json"]
    done = terminated(tmp_path, *verb)
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    report = json.loads(done.stdout)
    assert report["schema"].startswith("explorer/profile/")
    assert "ended by SystemExit after" in done.stdout
    assert (tmp_path / "a.html").stat().st_size
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.slow
def test_a_verb_that_has_nothing_yet_ends_with_the_signals_status(tmp_path):
    (tmp_path / "train.py").write_text(
        "open('ready', 'w').close()\nimport time\ntime.sleep(60)\ndef step(x): return x\n"
    )
    done = terminated(tmp_path, "explore", "train.py:step", "--arg", "f32[3]")
    assert done.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in done.stderr
