"""`python -m explorer mcp` in a process of its own, asked by the client of the protocol's SDK."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import explorer as ex
from explorer.__main__ import main
from explorer.files.reports import KINDS

pytest.importorskip("mcp", reason="needs the SDK of the Model Context Protocol (the extra mcp)")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

TRAIN = """\
import time
import jax, jax.numpy as jnp
import numpy as np

def step(w, x):
    print("traced")
    h = jnp.tanh(x @ w)
    return jnp.mean(h ** 2)

def plain(w, x):
    return jnp.mean((x @ w) ** 2)

def forever(x):
    time.sleep(600)
    return x

def huge(x):
    return x + np.ones(1 << 30).sum()

if __name__ == "__main__":
    double = jax.jit(lambda x: x * 2)
    for size in (3, 4, 5):
        double(jnp.ones(size))
"""
SHAPES = ["f32[32,32]", "f32[8,32]"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def ask(names, *calls):
    """What a server that was started with some names answers to each call: whether it's an error, and its text."""

    async def run():
        path = os.pathsep.join(filter(None, sys.path))
        environment = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
        arguments = ["-m", "explorer", "mcp", *names, "-o", "pages"]
        server = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
        async with Client(stdio_client(server)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            answers = [await client.call_tool(name, given) for name, given in calls]
            return tools, client.instructions, [(one.is_error, one.content[0].text) for one in answers]

    return asyncio.run(run())


def files_of(text):
    """The paths that an answer names, by what they are."""
    lines = [line.partition(": ") for line in text.splitlines()]
    return {kind: Path(path) for kind, _, path in lines if kind in ("page", "capture", "report")}


@pytest.mark.slow
def test_the_tools_say_what_they_do_and_run_what_was_named(project):
    step = {"function": "train.py:step", "arguments": SHAPES}
    tools, instructions, answers = ask(
        ["train.py:step"],
        ("explore", step),
        ("explore", {"function": "os:system", "arguments": ["'ls'"]}),
        ("explore", {"function": "train.py:plain", "arguments": SHAPES}),
        ("lint", {"function": "train.py:step", "arguments": ["open('a', 'w')", "f32[8,32]"]}),
        ("check", {}),
    )
    assert [*tools] == ["explore", "lint", "recompiles", "profile", "diff", "targets", "check"]
    assert all(tool.description for tool in tools.values())
    assert "Code that may run: train.py:step." in instructions
    (failed, text), *refused = answers
    assert not failed
    files = files_of(text)
    opened = ex.load(files["capture"])
    assert opened.function == "step"
    assert text.startswith(str(opened.summary[0]))
    assert "note, line 6: print() ran while step was traced" in text
    assert "<html" in files["page"].read_text()[:500].lower()
    report = json.loads(files["report"].read_text())
    assert report["schema"] == "explorer/explore/1"
    assert sum(row["flops"] for row in report["lines"]) == opened.lines().flops
    assert [failed for failed, _ in refused] == [True] * 4
    assert "not named on the command line" in refused[0][1]
    assert "not named on the command line" in refused[1][1]
    assert "is code" in refused[2][1]
    assert not Path("a").exists()
    assert "no golden file was named" in refused[3][1]
    assert {file.suffix for file in Path("pages").iterdir()} == {".html", ".capture", ".json", ".log"}


@pytest.mark.slow
def test_each_tool_answers_in_few_lines_with_what_its_verb_says(project, capsys):
    assert main(["record", "train.py:step", "--arg", SHAPES[0], "--arg", SHAPES[1]]) == 0
    step = {"function": "train.py:step", "arguments": SHAPES}
    _, _, answers = ask(
        ["train.py", "step.golden"],
        *[("lint", step), ("recompiles", {"script": "train.py"}), ("profile", step), ("targets", {}), ("check", {})],
        ("diff", {"a": "train.py:step", "b": "train.py:plain", "arguments": SHAPES}),
    )
    kinds = [json.loads(files_of(text)["report"].read_text())["schema"].split("/")[1] for _, text in answers]
    assert kinds == ["lint", "recompiles", "profile", "targets", "check", "diff"]
    assert {*kinds} <= {*KINDS}
    texts = dict(zip(kinds, (text for _, text in answers), strict=True))
    assert not any(failed for failed, _ in answers), texts
    assert all(len(text.splitlines()) <= 16 for text in texts.values())
    assert "<lambda>: x.shape[0] changed twice" in texts["recompiles"]
    assert "% of the device's time: " in texts["profile"]
    assert "step.golden: as recorded" in texts["check"]
    assert "fusion changed" in texts["diff"] or "fusion lost" in texts["diff"]


@pytest.mark.slow
def test_a_capture_from_before_an_edit_is_compared_with_the_function_as_it_is(project):
    step = {"function": "train.py:step", "arguments": SHAPES}
    _, _, ((_, before),) = ask(["train.py:step"], ("explore", step))
    capture = str(files_of(before)["capture"])
    Path("train.py").write_text(TRAIN.replace("jnp.tanh(x @ w)", "jnp.exp(x @ w)"))
    elsewhere = project / "elsewhere.capture"
    elsewhere.write_bytes(Path(capture).read_bytes())
    same = {"b": "train.py:step", "arguments": SHAPES}
    _, _, answers = ask(["train.py:step"], ("diff", {"a": capture, **same}), ("diff", {"a": str(elsewhere), **same}))
    assert "tanh" in answers[0][1]
    assert "exp" in answers[0][1]
    assert answers[1][0]  # not a capture that `explore` wrote


@pytest.mark.slow
def test_what_takes_too_long_or_too_much_is_ended_and_the_server_goes_on(project):
    limits = ["train.py", "--seconds", "12", "--memory", "3"]
    _, _, answers = ask(
        limits,
        ("lint", {"function": "train.py:forever", "arguments": ["f32[3]"]}),
        ("explore", {"function": "train.py:huge", "arguments": ["f32[3]"]}),
        ("lint", {"function": "train.py:plain", "arguments": SHAPES}),
    )
    assert answers[0][0]
    assert "ended after 12 s, its limit" in answers[0][1]
    assert answers[1][0]
    assert "MemoryError" in answers[1][1] or "Unable to allocate" in answers[1][1]
    assert answers[2] == (False, answers[2][1])
    assert "plain: nothing was found." in answers[2][1]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_at_once_with_what_it_runs(project, number):
    Path("train.py").write_text(
        "import os, time\n"
        "def step(x):\n"
        "    with open(os.path.join(os.environ['TMPDIR'], 'pid'), 'w') as file:\n"
        "        file.write(str(os.getpid()))\n"
        "    time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "explorer", "mcp", "train.py", "-o", "pages"]
    server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        call = {"name": "lint", "arguments": {"function": "train.py:step", "arguments": ["3"]}}
        for message in (
            {"id": 1, "method": "initialize", "params": client},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            server.stdin.flush()
        until = time.monotonic() + 60
        while not (files := [file for file in Path("pages").glob("*/pid") if file.stat().st_size]):
            assert time.monotonic() < until
            time.sleep(0.05)
        child = int(files[0].read_text())
        server.send_signal(number)
        assert server.wait(30) == 128 + number
    finally:
        server.kill()
        server.communicate()
    while Path(f"/proc/{child}").exists() and "Z" not in Path(f"/proc/{child}/stat").read_text().split(")")[1][:3]:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert not list(Path("pages").glob("temporary-*"))


def test_without_the_sdk_it_says_what_to_install(project, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    assert main(["mcp", "train.py:step"]) == 1
    assert "pip install" in capsys.readouterr().err
