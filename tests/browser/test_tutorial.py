"""The main job, as a person does it: open the tutorial in JupyterLab, run it, click from a line to its kernels."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
from lab import Browser, Lab
from playwright.sync_api import expect
from view import READY, View

NAME = "00_start_here.ipynb"
LINE = "scores = "


def test_the_tutorial_runs_links_lines_to_kernels_and_survives_its_kernel(lab: Lab, browser: Browser, notebooks: Path):
    shutil.copy(notebooks / NAME, lab.root / NAME)
    live = browser.open(lab, NAME)
    live.run_all()
    view = View(live.page).link()
    expect(view.root).to_have_attribute("data-stage", "hlo")

    fusion = view.open_fusion()
    expect(view.graph.locator("g[data-node]").first).to_be_visible()
    live.screenshot("tutorial-fusion", READY)
    assert int(fusion.get_attribute("data-node") or -1) >= 0

    lit = view.light(LINE)
    live.screenshot("tutorial-line", READY)
    # What the view lights and what Python answers are the same instructions, or the kernels that hold them.
    nodes = f"cap.nodes_at({view.line(LINE).get_attribute('data-line')})"
    assert live.python(f"{{*{lit}}} <= {{i for node in {nodes} for i in (node.index, node.group.caller)}}") == "True"
    live.wait_until(f"cap.selection == {nodes} != ()")

    view.show("text")
    expect(view.root.locator(".explorer-text [data-row].lit").first).to_be_visible()
    live.screenshot("tutorial-text", READY)

    live.wait_until("cap.bookmark.pane == 'text'")
    live.save()
    live.shut_down()
    saved = nbformat.read(lab.root / NAME, as_version=4)
    assert "widgets" not in saved.metadata

    again = browser.open(lab, NAME)
    reopened = View(again.page)
    assert again.python("'cap' in globals()") == "False"
    assert "Error displaying widget" not in again.page.inner_text("body")
    expect(reopened.root.locator(".explorer-text")).to_be_visible()  # where it was left
    reopened.show("graph")
    assert reopened.light(LINE)
    again.screenshot("tutorial-reopened", READY)
    again.shut_down()
