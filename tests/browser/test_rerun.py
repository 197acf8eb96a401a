"""A cell that is run again and again leaves nothing behind: no nodes, listeners, documents, wires or comms."""

from __future__ import annotations

import pytest
from lab import Browser, Lab, Notebook
from playwright.sync_api import CDPSession, expect
from view import READY

CODE = """
import jax.numpy as jnp
import explorer as ex

def f(x):
    y = jnp.tanh(x)
    return y @ y.T

ex.explore(f, jnp.ones((8, 16)))
""".strip()
COMMS = "len(__import__('comm').get_comm_manager().comms)"
KINDS = ("Nodes", "JSEventListeners", "Documents")
WARM = 3  # runs in which the page and the compiler of its scripts come to rest


def run(notebook: Notebook) -> None:
    notebook.run_all()
    expect(notebook.page.locator(READY)).to_have_count(1)


def left(notebook: Notebook, session: CDPSession) -> dict[str, float]:
    """What the page and the kernel hold once what is no longer used has gone: two looks in a row see the same."""
    found = held(notebook, session)
    for _ in range(20):
        before, found = found, held(notebook, session)
        if all(found[kind] == before[kind] for kind in found if kind != "heap"):
            break
    return found


def held(notebook: Notebook, session: CDPSession) -> dict[str, float]:
    """What they hold now, without garbage; the heap in bytes."""
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
        notebook.page.wait_for_timeout(100)
    found = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return {
        **{kind: found[kind] for kind in KINDS},
        "wires": notebook.page.evaluate("window.explorerModels.size"),
        "comms": float(notebook.python(COMMS)),
        "heap": found["JSHeapUsedSize"],
    }


def growth(notebook: Notebook, runs: int) -> dict[str, float]:
    """How many times as much is there after so many more runs of the notebook."""
    session = notebook.page.context.new_cdp_session(notebook.page)
    session.send("Performance.enable")
    for _ in range(WARM):
        run(notebook)
    before = left(notebook, session)
    for _ in range(runs):
        run(notebook)
    after = left(notebook, session)
    return {kind: after[kind] / before[kind] for kind in before}


@pytest.mark.slow
def test_a_cell_that_is_run_again_leaves_nothing_behind(lab: Lab, browser: Browser):
    notebook = browser.open(lab, lab.write("again.ipynb", CODE))
    grown = growth(notebook, 6)
    heap = grown.pop("heap")
    assert max(grown.values()) <= 1.02, grown
    assert heap <= 1.05  # a megabyte and a half: JupyterLab itself keeps 46 kB of each run
    notebook.shut_down()
