"""%explore and %%explore in a real ipykernel: what a notebook's cells get, as they get it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from execution import execute, output_problems
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

SECONDS = 120
OUTPUTS = ("stream", "display_data", "execute_result", "error")  # what a notebook saves of a kernel's messages
DEFINE = "import jax, jax.numpy as jnp\nx = jnp.ones((4, 4))\ndef layer(x, scale=1):\n    return jnp.tanh(x) * scale"
BRANCH = "%%explore\ndef f(v):\n    return v if v.sum() > 0 else -v\nf(x)"


@dataclass
class Answer:
    """What a front end gets for one cell: the reply, and the outputs by kind."""

    reply: dict[str, Any]
    outputs: list[tuple[str, dict[str, Any]]]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [content for found, content in self.outputs if found == kind]

    @property
    def printed(self) -> str:
        return "".join(content["text"] for content in self.of("stream"))

    @property
    def displayed(self) -> list[str]:
        return [content["data"]["text/plain"] for content in self.of("execute_result") + self.of("display_data")]


class Kernel:
    """A front end's side of one kernel."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client

    def run(self, cell: str) -> Answer:
        messages: list[dict[str, Any]] = []
        reply = self.client.execute_interactive(cell, timeout=SECONDS, output_hook=messages.append)
        outputs = [(message["msg_type"], message["content"]) for message in messages]
        return Answer(reply["content"], [(kind, content) for kind, content in outputs if kind in OUTPUTS])

    def complete(self, line: str) -> list[str]:
        return self.client.complete(line, len(line), reply=True, timeout=SECONDS)["content"]["matches"]

    def help(self, name: str) -> str:
        return plain(self.client.inspect(name, len(name), reply=True, timeout=SECONDS)["content"]["data"]["text/plain"])


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    """A kernel with Explorer loaded. One for all: that each test finds it usable is part of what is tested."""
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=SECONDS)
    try:
        kernel = Kernel(client)
        assert kernel.run("%load_ext explorer").outputs == []
        kernel.run(DEFINE)
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_a_line_is_displayed_and_an_assigned_one_is_not(kernel: Kernel):
    answer = kernel.run("%explore layer(x, scale=2)")
    assert [content["data"]["text/plain"] for content in answer.of("execute_result")] == [
        "Capture(layer: jaxpr → stablehlo → hlo)"
    ]
    assert kernel.run("capture = %explore layer(x)").displayed == []
    assert kernel.run("print(capture)").printed == "Capture(layer: jaxpr → stablehlo → hlo)\n"


def test_a_cell_is_displayed_and_its_names_are_the_users(kernel: Kernel):
    answer = kernel.run("%%explore\ndef twice(v):\n    return layer(layer(v))\ny = twice(x)")
    assert answer.displayed == ["Capture(twice: jaxpr → stablehlo → hlo)"]
    assert kernel.run("print(twice(x).shape, y.shape)").printed == "(4, 4) (4, 4)\n"


def test_frames_lead_to_the_kernels_own_name_and_lines_of_the_cell(kernel: Kernel):
    cell = "%%explore\n\ndef sine(v):\n    return jnp.sin(v)\ndef around(v):\n    return sine(v) * 2\naround(x)\n"
    count = kernel.run(cell).reply["execution_count"]
    look = """
capture = _
file = around.__code__.co_filename
source = capture.sources[file]
stack = next(node.source for node in capture.jaxpr.graph.nodes if node.op == "sin")
print(source.label, [(frame.function, frame.line) for frame in stack], {frame.file == file for frame in stack})
print(file == get_ipython().compile.get_code_name(source.text, "", 0))
print([node.op for node in capture.nodes_at(4, "jaxpr")])
"""
    assert kernel.run(look).printed.splitlines() == [
        f"cell [{count}] [('sine', 4), ('around', 6)] {{True}}",
        "True",
        "['sin']",
    ]


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        ("%explore layer", "ExpressionError"),
        ("%explore --nothing 1 layer(x)", "ExpressionError"),
        ("%explore layer(x, 1, 2)", "ArgumentsError"),
        ("%explore x(layer)", "NotCallableError"),
        ("%%explore\nz = 1", "ExpressionError"),
        ("%%explore\nbroken +\nlayer(x)", "SyntaxError"),
        ("%%explore\nmissing\nlayer(x)", "NameError"),
        (BRANCH, "TracedValueError"),
    ],
)
def test_every_failure_is_an_error_reply_and_leaves_the_kernel_usable(kernel: Kernel, cell: str, error: str):
    answer = kernel.run(cell)
    assert (answer.reply["status"], answer.reply.get("ename")) == ("error", error)
    assert [content["ename"] for content in answer.of("error")] == [error]
    assert kernel.run("%explore layer(x)").displayed == ["Capture(layer: jaxpr → stablehlo → hlo)"]


@pytest.mark.parametrize("cell", ["%explore layer", BRANCH])
def test_who_runs_a_notebook_unattended_sees_a_failure(cell: str):
    with pytest.raises(CellExecutionError):
        execute(new_notebook(cells=[new_code_cell(source) for source in ("%load_ext explorer", DEFINE, cell)]))


def test_a_notebook_that_works_shows_nothing_wrong_unattended():
    cells = ["%load_ext explorer", DEFINE, "%explore layer(x)", "%%explore\ny = layer(x)", "%unload_ext explorer"]
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
    execute(notebook)
    assert output_problems(notebook) == []
    assert [len(cell.outputs) for cell in notebook.cells] == [0, 0, 1, 1, 0]


def test_a_trace_that_fails_says_so_once_and_ends_on_the_users_line(kernel: Kernel):
    answer = kernel.run(BRANCH)
    assert [shown for shown in answer.displayed if "is compiled" not in shown] == []  # but a bar on a busy machine
    (error,) = answer.of("error")
    assert "line 3:   return v if v.sum() > 0 else -v" in error["evalue"]
    traceback = plain("\n".join(error["traceback"])).splitlines()
    arrows = [line for line in traceback if re.match(r"-+> ", line)]
    assert arrows == ["----> 4 f(x)", "----> 3     return v if v.sum() > 0 else -v"]
    assert sum("Error" in line for line in traceback) == 2  # above the lines, and below them with the message


def test_completion_and_help_reach_the_front_end(kernel: Kernel):
    assert "layer" in kernel.complete("%explore la")
    assert {"--save", "--html"} <= set(kernel.complete("%%explore --"))
    for name in ("%explore", "%%explore"):
        assert "y = f(x)" in kernel.help(name)
        assert "--save FILE" in kernel.help(name)


def test_the_sessions_ledger_is_displayed_and_fills_while_cells_run(kernel: Kernel):
    kernel.run("step = jax.jit(lambda v, scale: v * scale, static_argnames='scale')")
    kernel.run("%recompiles off")
    answer = kernel.run("watching = %recompiles on")
    assert answer.printed.startswith("Now watching")
    assert kernel.run("step(x, scale=1)\nstep(x, scale=2)").of("error") == []
    (shown,) = kernel.run("%recompiles").displayed
    assert shown.startswith("Watch(2 compiles of 1 function")
    assert kernel.run("print(watching.recompiles()[0].reason)").printed.startswith("the static argument `scale` was ")
    (shown,) = kernel.run("%recompiles off").displayed
    assert shown.startswith("Watch(2 compiles of 1 function")


def test_a_cell_under_the_ledger_shows_its_own_lines_and_its_own_errors(kernel: Kernel):
    kernel.run("row = jnp.ones(3)")
    answer = kernel.run("%%recompiles\nstep = jax.jit(lambda v: v * 2)\nstep(x)\nstep(row);")
    assert answer.displayed == ["Watch(2 compiles of 1 function; <lambda>: v.ndim changed once)"]
    count = answer.reply["execution_count"]
    printed = kernel.run("print(_.recompiles()[0].call_site, _.recompiles()[0].reason.leaf, sep=' | ')").printed
    assert printed == f"cell [{count}], line 4 | v.ndim\n"
    answer = kernel.run("%%recompiles\nstep(jnp.ones(4))\n1 / 0")
    assert answer.reply["ename"] == "ZeroDivisionError"
    assert len(answer.of("display_data")) == 1
    answer = kernel.run("%recompiles --nothing")
    assert answer.reply["ename"] == "ExpressionError"
    assert kernel.run("%recompiles off").printed.startswith("Not watching")


DEEP = """
def deep(v):
    for i in range(150):
        v = jnp.tanh(v @ v) + i
    return v
"""


def shown_by(kernel: Kernel, cell: str) -> list[tuple[str, str, str]]:
    """What a cell displays and displays anew, but for bars: kind, name of the output, HTML."""
    messages: list[dict[str, Any]] = []
    kernel.client.execute_interactive(cell, timeout=SECONDS, output_hook=messages.append)
    kinds = ("display_data", "update_display_data", "execute_result")
    contents = [(message["msg_type"], message["content"]) for message in messages if message["msg_type"] in kinds]
    shown = [
        (kind, of.get("transient", {}).get("display_id", ""), of["data"].get("text/html", "")) for kind, of in contents
    ]
    return [each for each in shown if "<progress" not in each[2]]


def test_while_a_compile_lasts_its_first_stages_are_shown_until_the_whole_is(kernel: Kernel):
    first, *rest = shown_by(kernel, f"{STEPS}{DEEP}\nex.explore(deep, x)")
    kind, name, html = first
    assert kind == "display_data"
    assert 'data-explorer="compiling-' in html
    whole = [html for kind, _, html in rest if kind == "execute_result"]
    assert "compiling-" not in whole[0]
    emptied = [html for kind, other, html in rest if kind == "update_display_data" and other == name]
    assert emptied == [""]
    kernel.run("progress_bar._INTERIM_PATIENCE = 2.0")


def test_a_quick_compile_shows_nothing_but_itself(kernel: Kernel):
    assert [kind for kind, *_ in shown_by(kernel, "%explore layer(x, scale=5)")] == ["execute_result"]


STEPS = """
import time
import explorer as ex
from explorer.view import progress_bar
from explorer.view.progress_bar import step_progress
progress_bar._INTERIM_PATIENCE = 0.0
capture = ex.explore(layer, x)
"""


def test_where_nobody_looks_nothing_is_made_to_be_looked_at(kernel: Kernel):
    cell = f"{STEPS}\nwith step_progress('f is compiled', {{}}, 1) as show_partial:\n    if show_partial: 1 / 0"
    reply = kernel.client.execute_interactive(cell, timeout=SECONDS, allow_stdin=False, output_hook=lambda _: None)
    assert reply["content"]["status"] == "ok"
    assert kernel.run(cell).reply["ename"] == "ZeroDivisionError"


def test_an_interrupt_leaves_what_was_there_and_says_so(kernel: Kernel):
    stopped = f"""{STEPS}
with step_progress('f is compiled', {{}}, 1) as show_partial:
    show_partial(capture)
    while not progress_bar._last._html:
        time.sleep(0.01)
    raise KeyboardInterrupt
"""
    (_, name, html), (kind, same, left) = shown_by(kernel, stopped)[:2]
    assert 'data-explorer="compiling-' in html
    assert (kind, same) == ("update_display_data", name)
    assert 'data-explorer="interrupted-' in left
    assert "compiling-" not in left
    kernel.run("progress_bar._INTERIM_PATIENCE = 2.0")
