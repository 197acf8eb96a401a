"""The live link: what Python sets is seen in every live view of the capture, and what is clicked is known in Python."""

from __future__ import annotations

from lab import Browser, Lab, Notebook
from playwright.sync_api import expect
from view import View

SETUP = """
import jax.numpy as jnp
import explorer as ex

def f(x):
    y = jnp.tanh(x) @ jnp.cos(x).T
    return jnp.sin(y) * 2

cap = ex.explore(f, jnp.ones((8, 16)))
cap.view.highlight = cap.jaxpr.graph.where("op:tanh")
""".strip()


def opened(lab: Lab, browser: Browser, *cells: str) -> Notebook:
    live = browser.open(lab, lab.write("link.ipynb", *cells))
    live.run_all()
    return live


def test_python_steers_every_live_view_of_a_capture(lab: Lab, browser: Browser):
    live = opened(lab, browser, SETUP, "cap", "widget = cap.widget()\nwidget")
    views = View(live.page, 0), View(live.page, 1)
    for view in views:  # what was set before they were displayed
        expect(view.root).to_have_attribute("data-stage", "jaxpr")
        expect(view.lit_nodes).to_have_count(1)
        expect(view.lit_nodes).to_contain_text("tanh")
    live.python("setattr(cap.view, 'highlight', 'op:cos or op:sin')")
    for view in views:
        expect(view.lit_nodes).to_have_count(2)
    live.python("setattr(widget, 'stage', 'stablehlo')")
    for view in views:
        expect(view.root).to_have_attribute("data-stage", "stablehlo")
    live.python("setattr(widget, 'filter', 'op == sine')")
    for view in views:
        kept = view.graph.locator("g.box:not(.dimmed)[data-node]")
        expect(kept).to_have_count(1)
        expect(kept).to_contain_text("sine")
    live.python("setattr(widget, 'filter', None)")
    for view in views:
        expect(view.graph.locator("g.dimmed")).to_have_count(0)
    assert live.python("cap.view.stage") == "'stablehlo'"
    live.shut_down()


def test_what_is_searched_in_the_view_is_the_selection_in_python(lab: Lab, browser: Browser):
    live = opened(lab, browser, SETUP, "cap")
    view = View(live.page)
    expect(view.lit_nodes).to_have_count(1)  # what was set before is shown, and no longer on its way
    view.root.locator('button[data-stage="hlo"]').click()
    query = "bytes >= 256 and not op:parameter"
    view.root.locator('input[type="search"]').fill(query)
    expect(view.root.locator(".explorer-details .title")).to_contain_text(query)
    live.wait_until(f"cap.selection == cap.view.selection == cap.hlo.graph.where({query!r}) != ()")
    view.root.locator('input[type="search"]').fill("bytes > many")
    expect(view.root.locator(".hint")).to_contain_text("bytes is a number, but many is not")
    live.shut_down()


def test_a_sentence_on_top_leads_to_what_it_speaks_of(lab: Lab, browser: Browser):
    live = opened(lab, browser, SETUP, "cap")
    view = View(live.page)
    expect(view.lit_nodes).to_have_count(1)
    facts = view.root.locator(".summary button")
    expect(facts.first).to_have_text(live.python("cap.summary[0].text").strip("'"))
    facts.first.click()
    expect(view.root).to_have_attribute("data-stage", "hlo")
    live.wait_until("[node.index for node in cap.selection] == list(cap.summary[0].nodes)")
    live.shut_down()
