"""Nothing runs that the command line did not name, and what it named gets no network and writes in one folder."""

import asyncio
import json
import os
import platform
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.assistants.child import unconfined
from explorer.assistants.named import Named
from explorer.assistants.tools import Limits, Tools
from tests.unit.assistants.test_mcp import ask

TRAIN = """\
import os
import socket
import subprocess
import threading

import jax
import jax.numpy as jnp
import tasks
from jax import jit
from os import abort
from tasks import wipe as clean

alias = os.abort
wiped = tasks.wipe


class Model:
    stop = os.abort
    wipe = tasks.wipe

    def __init__(self):
        self.size = 3
        self.inner = tasks.Tools()

    def step(self, x):
        return x * self.size

    def _hidden(self, x):
        return x


model = Model()
helper = tasks.Tools()


def step(x):
    return jnp.tanh(x)


def apply(f, x):
    return f(x)
"""
TASKS = """\
from pathlib import Path

def wipe(*args):
    Path(__file__).with_name("ran").write_text("wipe")

class Tools:
    def wipe(self, *args):
        wipe()

    def __call__(self, x):
        return x
"""

FUNCTIONS = [
    # Modules and what they hold
    *("jax._src.profiler.http.server.test", "tasks.wipe", "tasks", "os.abort", "os.fork", "os.system", "os"),
    *("jax", "jnp.tanh", "jax.jit", "subprocess.run", "subprocess.call", "socket.create_server", "jit", "abort"),
    *("clean", "threading.Thread", "alias", "wiped", "tasks.Tools", "tasks.Tools.wipe"),
    # Names with underscores, and attributes of attributes
    *("__builtins__.exec", "__builtins__", "__loader__.exec_module", "__name__", "step.__globals__", "step.__call__"),
    *("step.__code__", "Model.__init__", "Model.__subclasses__", "model._hidden", "model.__class__", "Model._hidden"),
    *("model.inner.wipe", "Model.step.__globals__", "model.step.__func__", "model.step.__self__.inner.wipe"),
    *("Model.stop", "Model.wipe", "Model.mro", "helper.wipe", "helper.clear"),
    # No names
    *("step()", "step;tasks.wipe()", "step\nimport tasks", " step", "step ", "step.", ".step", "", "*", "-o"),
    *("ｓｔｅｐ", "step,tasks.wipe", "[step]", "(step)", "a" * 100_000, "step." * 5_000 + "x"),
]  # fmt: skip
PLACES = [
    "os:abort", "tasks:wipe", "tasks.py:wipe", "./train.py:step", "train:step", "train.py", ":step", "--help", "",
    "train.py:step:step", "/etc/passwd:step", "train.py\0:step", "explorer.__main__:main", "../train.py:step",
]  # fmt: skip
ARGUMENTS = [
    "tasks.wipe", "os.abort", "abort", "clean", "tasks", "jax", "exec", "print", "__builtins__", "tasks.wipe()",
    "alias", "wiped", "x=tasks.wipe()", "model.inner.wipe", "step.__globals__", "[tasks.wipe()]",
    "lambda x: tasks.wipe()", "helper.wipe", "__import__('tasks').wipe()", "9" * 5_000, "(" * 3_000, "-o=/tmp/x",
    "--output=x", "step if 1 else 2", "f'{tasks.wipe()}'",
]  # fmt: skip


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


@pytest.mark.slow
def test_nothing_runs_that_the_named_file_does_not_define(project):
    pytest.importorskip("mcp", reason="needs the SDK of the Model Context Protocol (the extra mcp)")
    calls = [
        *(("lint", {"function": f"train.py:{name}", "arguments": ["f32[3]"]}) for name in FUNCTIONS),
        *(("explore", {"function": name, "arguments": ["f32[3]"]}) for name in PLACES),
        *(("profile", {"function": "train.py:apply", "arguments": [argument, "f32[3]"]}) for argument in ARGUMENTS),
        *(("diff", {"a": side, "b": "train.py:step"}) for side in ("train.py:os.abort", "tasks:wipe", "/x.capture")),
        ("diff", {"a": "train.py:step", "b": "\0.capture"}),
        ("recompiles", {"script": "tasks.py"}),
        ("recompiles", {"script": "train.py --x; rm -r ."}),
        ("recompiles", {"script": "-c"}),
    ]  # fmt: skip
    assert len(calls) >= 60
    _, _, answers = ask(["train.py"], *calls)
    ran = [call for call, (failed, _) in zip(calls, answers, strict=True) if not failed]
    assert ran == []
    assert all(len(text) < 2_000 for _, text in answers)
    assert not (project / "ran").exists()
    assert list(Path("pages").iterdir()) == []  # no process was started: it would have left a log


@pytest.mark.slow
def test_what_the_file_defines_is_still_looked_at(project):
    pytest.importorskip("mcp", reason="needs the SDK of the Model Context Protocol (the extra mcp)")
    _, _, answers = ask(
        ["train.py"],
        ("lint", {"function": "train.py:model.step", "arguments": ["f32[3]"]}),
        ("lint", {"function": "train.py:apply", "arguments": ["step", "x=f32[3]"]}),
    )
    assert [failed for failed, _ in answers] == [False] * 2, answers


def confined(code, folder):
    """What code prints, as JSON, that runs in a process which may write in a folder alone."""
    start = f"from pathlib import Path; from explorer.assistants.child import confine; confine(Path({str(folder)!r}))\n"
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


needs_confinement = pytest.mark.skipif(bool(unconfined()), reason=f"here a process may {unconfined()}")

SOCKETS = """
import json, socket, subprocess, sys, threading
kinds = [(family, kind) for family in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_UNIX")
         for kind in ("SOCK_STREAM", "SOCK_DGRAM", "SOCK_RAW")]
opened, ports = [], []
def open_one(family, kind):
    try:
        one = socket.socket(getattr(socket, family), getattr(socket, kind))
        opened.append((family, kind))
        one.bind(("127.0.0.1", 0))
        one.listen()
        ports.append(one.getsockname()[1])
    except (OSError, TypeError, AttributeError):
        pass
for pair in kinds:
    open_one(*pair)
    threading.Thread(target=open_one, args=pair).start()
child = "import socket; socket.create_server(('127.0.0.1', 0))"
others = [subprocess.run([sys.executable, "-c", child], capture_output=True).returncode]
for port in %s:
    try:
        socket.create_connection(("127.0.0.1", port), 1)
        ports.append(port)
    except OSError:
        pass
try:
    local = socket.socket(socket.AF_UNIX)
    local.connect(%r)
    opened.append("local")
except OSError:
    pass
a, b = socket.socketpair()  # as asyncio's, between threads of one process
a.send(b"x")
print(json.dumps([sorted(set(map(tuple, opened))), ports, others, b.recv(1).decode()]))
"""


@needs_confinement
def test_a_confined_process_opens_no_port_and_reaches_none(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        path = f"/tmp/explorer-test-{os.getpid()}"
        local.bind(path)
        local.listen()
        try:
            opened, ports, others, sent = confined(SOCKETS % ([server.getsockname()[1]], path), tmp_path)
        finally:
            os.unlink(path)
    assert {tuple(pair) for pair in opened} <= {("AF_UNIX", "SOCK_STREAM"), ("AF_UNIX", "SOCK_RAW")}
    assert ports == []
    assert others == [1]
    assert sent == "x"
    for port in (8000, *ports):
        with pytest.raises(OSError, match=r".*"):
            socket.create_connection(("127.0.0.1", port), 0.2)


WRITES = """
import json, os, subprocess, sys
outside, own = Path(%r), Path(%r)
attempts = {
    "write": lambda: (outside / "file").write_text("x"),
    "append": lambda: (outside / "file").open("a"),
    "truncate": lambda: os.truncate(outside / "file", 0),
    "new": lambda: (outside / "new").write_text("x"),
    "unlink": lambda: (outside / "file").unlink(),
    "rename": lambda: (outside / "file").rename(outside / "other"),
    "take": lambda: (outside / "file").rename(own / "taken"),
    "give": lambda: (own / "mine").rename(outside / "given"),
    "link": lambda: (own / "hard").hardlink_to(outside / "file"),
    "symlink": lambda: (outside / "soft").symlink_to(own),
    "through a link": lambda: (own / "soft").write_text("x"),
    "mkdir": lambda: (outside / "folder").mkdir(),
    "rmdir": lambda: (outside / "empty").rmdir(),
    "fifo": lambda: os.mkfifo(outside / "fifo"),
    "device": lambda: os.mknod(own / "device", 0o20666, os.makedev(1, 1)),
    "memory of another": lambda: open(f"/proc/{os.getppid()}/mem", "r+b"),
    "signal": lambda: os.kill(os.getppid(), 0),
    "shell": lambda: subprocess.run(["sh", "-c", f"echo x > {outside}/shell"], check=True, capture_output=True),
}
(own / "mine").write_text("x")
(own / "soft").symlink_to(outside / "file")
done = []
for name, attempt in attempts.items():
    try:
        attempt()
        done.append(name)
    except (OSError, subprocess.CalledProcessError):
        pass
(own / "folder").mkdir()
(own / "mine").rename(own / "folder" / "moved")
open(os.devnull, "w").write("x")
print(json.dumps(done))
"""


@needs_confinement
def test_a_confined_process_writes_in_its_folder_alone(tmp_path):
    outside, own = tmp_path / "outside", tmp_path / "own"
    (outside / "empty").mkdir(parents=True)
    own.mkdir()
    (outside / "file").write_text("before")
    allowed = confined(WRITES % (str(outside), str(own)), own)
    # Landlock knows signals since Linux 6.12, and files that are cut off since 6.2.
    newer = {"signal", "truncate"} if tuple(map(int, platform.release().split(".")[:2])) < (6, 12) else set()
    assert {*allowed} <= newer
    assert sorted(path.name for path in outside.iterdir()) == ["empty", "file"]
    assert (outside / "file").read_text() == "before" or newer
    assert (own / "folder" / "moved").read_text() == "x"


@pytest.mark.slow
@needs_confinement
def test_the_code_that_a_server_runs_is_confined(project):
    pytest.importorskip("mcp", reason="needs the SDK of the Model Context Protocol (the extra mcp)")
    (project / "train.py").write_text(
        "import socket, tempfile\n"
        "def denied(act, *args):\n"
        "    try:\n"
        "        act(*args)\n"
        "    except OSError:\n"
        "        return True\n"
        "def step(x):\n"
        "    assert denied(open, 'written', 'w')\n"
        "    assert denied(socket.create_server, ('127.0.0.1', 8000))\n"
        "    tempfile.NamedTemporaryFile().write(b'x')\n"
        "    return x\n"
    )
    _, _, ((failed, text),) = ask(["train.py"], ("lint", {"function": "train.py:step", "arguments": ["f32[3]"]}))
    assert not failed, text
    assert "not confined" not in text
    assert not (project / "written").exists()
    assert {path.suffix for path in Path("pages").iterdir()} == {".json", ".log"}


@pytest.mark.slow
def test_an_answer_says_what_the_system_can_not_keep_code_from(project, monkeypatch):
    tools = Tools(Named.of(["train.py"]), project, Limits(60.0, 8_000_000_000))
    for where, name, value in ((platform, "machine", lambda: "vax"), (sys, "platform", "darwin")):
        with monkeypatch.context() as patched:
            patched.setattr(where, name, value)
            assert unconfined() == "write any of the user's files, and use the network"
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    assert "write any of the user's files, and use the network." in asyncio.run(tools.targets())
