"""Findings as a person sees them: the cure is written into a new cell, which runs; with a kernel and without."""

from __future__ import annotations

import re
from pathlib import Path

import hosts
import jax.numpy as jnp
import nbformat
import numpy as np
import pytest
from axe import THEMES, violations
from lab import Browser, Lab, Notebook
from playwright.sync_api import Locator, Page, expect
from view import View

import explorer as ex
from explorer.model.findings import Finding, Findings, Fix
from explorer.view.findings.html import fragment
from tests.support.quick import quick

SETUP = """
import jax, jax.numpy as jnp
import explorer as ex
%load_ext explorer

def loss(x):
    c = jnp.sin(x)
    print(c)
    return c.sum()
""".strip()
CALLS = "step = jax.jit(loss)\nfor _ in range(3):\n    step(jnp.ones(2)).block_until_ready()"
SHOWN = ".explorer-findings[data-started]"


def opened(lab: Lab, browser: Browser, name: str, *cells: str) -> Notebook:
    return browser.open(lab, lab.write(name, *cells))


def shown(page: Page) -> Locator:
    page.wait_for_selector(SHOWN, timeout=60_000)
    return page.locator(SHOWN).last


def sources(notebook: Notebook) -> list[str]:
    return notebook._do("return panel.context.model.toJSON().cells.map(cell => cell.source);")


def printed(notebook: Notebook, cell: int) -> str:
    outputs = notebook._do("return panel.context.model.toJSON().cells[arg].outputs;", cell)
    return "".join("".join(one["text"]) for one in outputs if one["output_type"] == "stream")


def write_cure(notebook: Notebook, view: Locator) -> None:
    cure = view.locator(".xf-warning", has_text="print()")
    cure.get_by_role("button", name="write it into a new cell").click()
    expect(cure.locator(".xf-said")).to_contain_text("in the cell below", timeout=60_000)


@pytest.mark.parametrize("server", quick(["lab", "notebook7"], ["notebook7"]))
def test_the_cure_is_written_into_a_new_cell_and_prints_in_every_call(
    request: pytest.FixtureRequest, browser: Browser, server: str
):
    live = opened(request.getfixturevalue(server), browser, "cured.ipynb", SETUP, "%lint loss(jnp.ones(2))", CALLS)
    live.run_all()
    view = shown(live.page)
    expect(view.locator(".xf-head")).to_contain_text("1 warning")
    expect(view).to_contain_text("print() ran while loss was traced, and runs in no call after that")
    expect(view.locator(".xf-line mark")).to_have_text("print(c)")
    assert printed(live, 2).count("Tracer") == 1, "as the finding says: once, while it was traced"
    write_cure(live, view)
    assert sources(live)[:2] == [SETUP, "%lint loss(jnp.ones(2))"]
    assert sources(live)[2].splitlines()[:3] == ["def loss(x):", "    c = jnp.sin(x)", '    jax.debug.print("{}", c)']
    assert sources(live)[3] == CALLS
    expect(view.locator(".xf-diff .xf-plus")).to_contain_text('jax.debug.print("{}", c)')
    browser.keep(live.page, f"findings-cured-{server}")
    live._do("panel.content.activeCellIndex = 2;")
    live._do("await window.jupyterapp.commands.execute('notebook:run-cell');")
    live._do("panel.content.activeCellIndex = 3;")
    live._do("await window.jupyterapp.commands.execute('notebook:run-cell');")
    live.idle()
    assert printed(live, 3).split("\n") == ["[0.84147096 0.84147096]"] * 3 + [""]
    live.shut_down()


@pytest.mark.slow
def test_the_keyboard_writes_it_too_and_what_the_proof_prints_is_in_no_cell(lab: Lab, browser: Browser):
    live = opened(lab, browser, "silent.ipynb", SETUP, "%lint loss(jnp.ones(2))")
    live.run_all()
    live.set_theme("JupyterLab Dark")
    before = len(live.outputs())
    view = shown(live.page)
    expect(view).to_contain_class("dark")
    view.get_by_role("button", name="write it into a new cell").focus()
    live.page.keyboard.press("Enter")
    expect(view.locator(".xf-said")).to_contain_text("in the cell below", timeout=60_000)
    expect(live.page.locator(".jp-Cell.jp-mod-active .cm-content")).to_be_focused()  # the new cell has the keyboard
    live.page.keyboard.type("# mine\n")
    assert sources(live)[2].startswith("# mine\ndef loss(x):")
    browser.keep(live.page, "findings-cured-dark")
    assert len(live.outputs()) == before
    live.shut_down()


@pytest.mark.slow
def test_saved_and_opened_without_a_kernel_the_proven_cure_is_still_written(lab: Lab, browser: Browser):
    live = opened(lab, browser, "later.ipynb", SETUP, "%lint --fix loss(jnp.ones(2))", "%lint loss(jnp.ones(2))")
    live.run_all()
    live.save()
    live.shut_down()
    again = browser.open(lab, "later.ipynb")
    again._do("await panel.sessionContext.shutdown();")
    again.page.wait_for_selector(SHOWN)
    views = again.page.locator(SHOWN)
    expect(views).to_have_count(2)
    expect(views.last.locator(".xf-write")).to_have_count(0)  # nobody is there to prove it
    expect(views.last).to_contain_text('jax.debug.print("{}", c) prints in each call')
    write_cure(again, views.first)
    assert sources(again)[2].startswith("def loss(x):")
    again.page.close()


@pytest.mark.slow
def test_in_an_untrusted_notebook_everything_is_there_to_be_read(lab: Lab, browser: Browser):
    live = opened(lab, browser, "theirs.ipynb", SETUP, "%lint --fix loss(jnp.ones(2))")
    live.run_all()
    live.save()
    live.shut_down()
    notebook = nbformat.read(lab.root / "theirs.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_markdown_cell("from elsewhere"))  # another text is not signed
    nbformat.write(notebook, lab.root / "untrusted.ipynb")
    again = browser.open(lab, "untrusted.ipynb")
    assert not again.trusted()
    output = again.page.locator(".jp-OutputArea-output", has_text="1 warning").first
    for text in ("print() ran while loss was traced", "print(c)", 'jax.debug.print("{}", c)', "ignore[EX001]"):
        expect(output).to_contain_text(text)
    assert "--xf-" not in output.inner_text(), "a style sheet that isn't applied is no text"
    expect(again.page.locator(".xf-write")).to_have_count(0)
    browser.keep(again.page, "findings-untrusted")
    again.shut_down()


BADGES = """
import jax, jax.numpy as jnp, numpy as np
import explorer as ex
%load_ext explorer
table = np.ones((512, 512), np.float32)

def pick(x):
    y = x @ table
    return y[:, 600]
""".strip()


def test_a_finding_sits_under_its_line_in_every_stage_and_without_a_kernel(lab: Lab, browser: Browser):
    live = opened(lab, browser, "badges.ipynb", BADGES, "%explore pick(jnp.ones((4, 512)))")
    live.run_all()
    for _ in range(2):
        view = View(live.page)
        line = view.line("return y[:, 600]")
        badge = line.locator("xpath=following-sibling::*[1]")
        expect(badge).to_contain_class("pit error")
        expect(badge.locator("summary")).to_contain_text("y[:, 600] is outside of y")
        expect(badge.locator("p").first).not_to_be_visible()
        badge.locator("summary").click()
        expect(badge).to_contain_text("an index from 0 to 511")
        expect(badge.locator("a")).to_have_attribute("href", re.compile("^https://docs.jax.dev/"))
        view.root.locator('button[data-stage="jaxpr"]').click()
        expect(badge.locator("p").first).to_be_visible()  # it stays as it was
        expect(line.locator("xpath=following-sibling::*[1]")).to_contain_class("pit error")
        live.save()
        live.shut_down()
        live = browser.open(lab, "badges.ipynb")
    live.set_theme("JupyterLab Dark")
    tool = View(live.page).root.get_by_role("button", name="2 pitfalls")
    expect(tool).to_contain_text("✖ 1 ▲ 1")
    tool.click()
    expect(View(live.page).root.locator(".pit details[open]")).to_have_count(1)
    expect(View(live.page).root.locator(".pit summary").first).to_be_focused()
    live.screenshot("badges-dark", ".explorer")
    live.shut_down()


def careful(x):
    return (x @ TABLE)[:, 600]


TABLE = np.ones((512, 512), np.float32)


@THEMES
def test_axe_finds_nothing_in_badges(browser: Browser, tmp_path: Path, dark: bool):
    capture = ex.explore(careful, jnp.ones((4, 512)))
    page = browser.open_file(capture.to_html(tmp_path / "badges.html"), dark=dark)
    view = View(page)
    for summary in view.root.locator(".pit summary").all():
        summary.click()
    assert view.root.locator(".pit details[open]").count() == 2
    assert violations(page) == []
    browser.keep(page, f"badges-{'dark' if dark else 'light'}-page")


def page_of(browser: Browser, tmp_path: Path, findings: Findings, dark: bool = False) -> Page:
    page = browser.open_file(findings.to_html(tmp_path / "findings.html"), dark=dark)
    page.wait_for_selector(SHOWN)
    return page


def noisy(x):
    print("seen", x)
    return x * 2


@THEMES
def test_axe_finds_nothing(browser: Browser, tmp_path: Path, dark: bool):
    findings = Findings([*ex.lint(noisy, jnp.ones(3), fixes=True), *several(120)], "noisy")
    page = page_of(browser, tmp_path, findings, dark)
    for folded in page.locator("details:not([open]) > summary").all()[:10]:
        folded.click()
    page.locator(".xf-rest > summary").click()
    assert violations(page) == []
    assert page.locator(".explorer-findings.dark").count() == dark
    browser.keep(page, f"findings-{'dark' if dark else 'light'}")


def several(count: int) -> list[Finding]:
    rules = [("impure-print", "error"), ("unrolled-loop", "warning"), ("weak-type", "note")]
    return [
        Finding(
            *rules[i % 3], f"print() of number {i}", f"f{i % 4}.py", i + 1, text=f"print(x{i})", code=f"EX{i % 29:03}"
        )
        for i in range(count)
    ]


def test_three_hundred_are_folded_and_open_at_once(browser: Browser, tmp_path: Path):
    page = page_of(browser, tmp_path, Findings(several(300), "step"))
    expect(page.locator(".xf-one")).to_have_count(100)
    expect(page.locator(".xf-one[open]")).to_have_count(4)
    expect(page.locator(".xf-rest summary")).to_have_text("and 200 more")
    expect(page.locator(".xf-rest tbody tr")).to_have_count(200)


def test_a_page_has_no_cells_so_the_cure_goes_to_the_clipboard(browser: Browser, tmp_path: Path):
    browser.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = page_of(browser, tmp_path, ex.lint(noisy, jnp.ones(3), fixes=True))
    page.get_by_role("button", name="copy the fixed function").click()
    expect(page.locator(".xf-said")).to_contain_text("clipboard")
    assert 'jax.debug.print("seen {}", x)' in page.evaluate("navigator.clipboard.readText()")


@pytest.mark.parametrize("policed", [False, True], ids=["as it is", "with its policy"])
def test_in_an_editors_webview_it_looks_the_same_and_the_cure_goes_to_the_clipboard(
    browser: Browser, tmp_path: Path, policed: bool
):
    browser.context.grant_permissions(["clipboard-read", "clipboard-write"])
    body = '<body class="vscode-dark" data-vscode-theme-kind="vscode-dark"><div id="output"></div></body>'
    page = hosts.page_of(browser, tmp_path, hosts.policy(hosts.EDITORS_POLICY) if policed else "", body)
    page.evaluate(hosts.EDITOR, fragment(ex.lint(noisy, jnp.ones(3), fixes=True)))
    expect(shown(page)).to_contain_class("dark")
    page.get_by_role("button", name="copy the fixed function").click()
    expect(page.locator(".xf-said")).to_contain_text("clipboard")
    browser.keep(page, f"findings-editor-{'policed' if policed else 'free'}")


def test_a_page_that_forbids_style_sheets_in_the_text_has_them_all_the_same(browser: Browser, tmp_path: Path):
    html = fragment(ex.lint(noisy, jnp.ones(3)))
    page = hosts.page_of(browser, tmp_path, hosts.policy("style-src 'none'"), f"<body>{html}</body>")
    expect(shown(page)).to_have_css("border-radius", "8px")
    browser.forgive("inline style")


def test_where_no_script_may_run_everything_is_there_but_the_button(browser: Browser, tmp_path: Path):
    html = fragment(ex.lint(noisy, jnp.ones(3), fixes=True))
    page = hosts.page_of(browser, tmp_path, hosts.policy("script-src 'none'"), f"<body>{html}</body>")
    view = page.locator(".explorer-findings")
    expect(view).to_have_css("border-radius", "8px")
    expect(view).to_contain_text('jax.debug.print("seen {}", x)')
    expect(page.get_by_role("button")).to_have_count(0)
    browser.forgive("inline script")


def test_hostile_texts_are_texts(browser: Browser, tmp_path: Path):
    attack = (
        "</script></style></pre><script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
    )
    fix = Fix(attack, attack, f"--- a\n+++ b\n@@ -1 +1 @@\n-{attack}\n+{attack}")
    one = Finding("impure-print", "error", attack, attack, 1, attack, fix, attack, attack, attack)
    page = page_of(browser, tmp_path, Findings([one] * 101, attack, [attack], failure=attack))
    expect(page.locator(".xf-one")).to_have_count(100)
    page.wait_for_timeout(300)
    assert page.title() != "owned"
    assert page.locator(".explorer-findings img, .explorer-findings script").count() == 0
    expect(page.locator(".xf-text").first).to_have_text(attack)


@pytest.mark.parametrize("width", [380, 1500])
def test_nothing_sticks_out(browser: Browser, tmp_path: Path, width: int):
    long = Finding("weak-type", "note", "word" * 200, "f.py", 3, "x" * 900, Fix("y" * 900, "z" * 900), text="w" * 900)
    page = page_of(browser, tmp_path, Findings([long, *several(3)], "step"))
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
