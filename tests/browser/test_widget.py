"""`.widget()`: the same viewer as an ipywidget; what is selected in it is a Python value."""

from __future__ import annotations

import re

import pytest
from lab import Browser, Lab
from playwright.sync_api import expect
from view import View

CODE = """
import jax.numpy as jnp
import explorer as ex

def f(x):
    y = jnp.tanh(x)
    return y * 2

cap = ex.explore(f, jnp.ones((8, 16)))
widget = cap.widget()
widget
""".strip()


def test_a_selection_in_the_widget_is_a_trait(lab: Lab, browser: Browser):
    live = browser.open(lab, lab.write("widget.ipynb", CODE))
    live.run_all()
    view = View(live.page)
    view.click_line("jnp.tanh")
    expect(view.root.locator(".explorer-details")).to_contain_text("line 5")
    live.wait_until("any('tanh' in name for name in widget.selection)")
    live.wait_until("cap.selection == cap.nodes_at(5) != ()")
    live.shut_down()


LARGE = """
import jax.numpy as jnp
import explorer as ex
from explorer.capture import recording
{as_if}

def f(x):
    y = jnp.tanh(x)
    return y * 2

cap = ex.explore(f, jnp.ones((8, 16)))
cap
""".strip()


def shows_passes(view: View):
    view.root.locator('[data-mode="passes"], [data-stage="passes"]').locator("visible=true").first.click()
    expect(view.root.locator(".explorer-passes")).to_contain_text("that changed something", timeout=60_000)


def test_passes_that_a_display_does_not_wait_for_come_by_themselves(lab: Lab, browser: Browser):
    live = browser.open(lab, lab.write("read.ipynb", LARGE.format(as_if="recording._READ_IN_A_SECOND = 1")))
    live.run_all()
    view = View(live.page)
    expect(view.root.get_by_role("button", name="record the passes")).to_have_count(0)
    live.wait_until("cap.has_passes")
    shows_passes(View(live.page))
    live.shut_down()


@pytest.mark.slow
def test_passes_that_are_too_large_to_keep_are_recorded_on_request(lab: Lab, browser: Browser):
    as_if = 'recording.dump_place = lambda size, always=False: "" if always else None'
    live = browser.open(lab, lab.write("record.ipynb", LARGE.format(as_if=as_if)))
    live.run_all()
    view = View(live.page)
    expect(view.root.locator(".explorer-foot")).to_contain_text("source mapping exact 100%")
    assert live.python("cap.has_passes") == "False"
    view.root.get_by_role("button", name=re.compile(r"record the passes \(≈ [\d.]+ m?s\)")).click()
    anew = View(live.page)
    expect(anew.root.locator(".record")).to_have_text(
        "read the machine code", timeout=60_000
    )  # what is next to ask for
    shows_passes(anew)
    live.shut_down()


def test_with_a_kernel_the_text_of_the_module_is_copied(lab: Lab, browser: Browser):
    live = browser.open(lab, lab.write("extract.ipynb", CODE))
    live.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    live.run_all()
    view = View(live.page)
    view.click_line("jnp.tanh")
    view.root.locator(".explorer-details .list button").first.click()
    view.root.get_by_role("button", name="copy as HLO module").click()
    expect(view.root.locator(".acts")).to_contain_text("copied")
    module = live.page.evaluate("navigator.clipboard.readText()")
    assert module.startswith("HloModule extract_")
    assert live.python(f"len(ex.open_hlo({module!r}).hlo.graph) > 0") == "True"
    live.shut_down()
