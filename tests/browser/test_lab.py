"""The ground the view stands on: what JupyterLab does with HTML that carries a module script."""

import nbformat
import pytest
from lab import Browser, Lab
from playwright.sync_api import expect

HTML = """<div class="static">still here</div>
<script type="module">
  for (const box of document.querySelectorAll("div.static")) box.dataset.ran = "yes";
</script>"""


@pytest.fixture
def notebook(lab: Lab) -> str:
    return lab.write("tiny.ipynb", f"from IPython.display import HTML, display\nx = 41\ndisplay(HTML('''{HTML}'''))")


@pytest.mark.slow
def test_a_module_script_runs_live_and_again_after_save_shutdown_and_reopen(lab: Lab, browser: Browser, notebook: str):
    live = browser.open(lab, notebook)
    live.run_all()
    live.page.wait_for_selector("div.static[data-ran]")
    assert live.python("x + 1") == "42"
    live.save()
    live.shut_down()

    again = browser.open(lab, notebook)
    again.page.wait_for_selector("div.static[data-ran]")
    assert again.trusted()
    assert again.python("'x' in globals()") == "False"
    again.shut_down()


@pytest.mark.slow
def test_an_untrusted_notebook_keeps_the_html_and_drops_the_script(lab: Lab, browser: Browser):
    output = nbformat.v4.new_output("display_data", {"text/html": HTML, "text/plain": "static"})
    opened = browser.open(lab, lab.write("stranger.ipynb", "x = 41", outputs=[output]))
    opened.page.wait_for_selector("div.static")
    assert not opened.trusted()
    assert opened.page.locator("div.static[data-ran]").count() == 0
    opened.shut_down()


@pytest.mark.slow
def test_the_theme_can_be_switched(lab: Lab, browser: Browser, notebook: str):
    opened = browser.open(lab, notebook)
    body = opened.page.locator("body")
    expect(body).to_have_attribute("data-jp-theme-name", "JupyterLab Light")
    opened.set_theme("JupyterLab Dark")
    expect(body).to_have_attribute("data-jp-theme-name", "JupyterLab Dark")
    opened.shut_down()


@pytest.mark.slow
def test_a_cell_that_fails_fails_the_run(lab: Lab, browser: Browser):
    opened = browser.open(lab, lab.write("bad.ipynb", "1 / 0"))
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        opened.run_all()
    opened.shut_down()


@pytest.mark.slow
def test_a_request_to_the_network_is_seen_and_goes_nowhere(lab: Lab, browser: Browser, notebook: str):
    opened = browser.open(lab, notebook)
    fetched = "fetch('https://example.invalid/x').then(() => 'loaded', () => 'blocked')"
    with opened.page.expect_console_message(lambda message: message.type == "error"):
        assert opened.page.evaluate(fetched) == "blocked"
    assert browser.foreign == ["https://example.invalid/x"]
    assert browser.errors
    browser.forgive_requests(lambda url: url == "https://example.invalid/x")
    assert browser.foreign == browser.errors == []
    opened.shut_down()


@pytest.mark.slow
def test_an_error_in_the_script_of_an_output_is_seen(lab: Lab, browser: Browser):
    script = "<script type='module'>document.body.dataset.ran = 'yes'; throw new Error('from an output')</script>"
    opened = browser.open(
        lab, lab.write("throws.ipynb", f"from IPython.display import HTML, display\ndisplay(HTML({script!r}))")
    )
    with browser.context.expect_event("weberror"):
        opened.run_all()
    opened.page.wait_for_selector("body[data-ran]", state="attached")
    assert any("from an output" in error for error in browser.errors)
    browser.forgive("from an output")
    opened.shut_down()
