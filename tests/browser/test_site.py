"""The documentation site, as `make docs` left it, read by a newcomer in Chromium with the network off."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest
from axe import violations
from lab import Browser
from playwright.sync_api import Page, expect

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
LARGEST = 1_500_000  # bytes of a page with its pictures
VIEW = '.explorer[data-ready="true"]'

# What a newcomer wants: links to click from the front page, what to search for instead, the page, the answer on it.
TASKS = {
    "find why it recompiled": (["Recompiles"], "recompiles", "use/recompiles", "ledger.recompiles()"),
    "find the slow line": (["Measure"], "slow line", "use/measure", "the hottest line:"),
    "see the fused HLO": (["See the program"], "fused HLO", "use/explore", "print(cap.hlo.graph)"),
    "compile for a range": (["Compile for a range of sizes"], "compile range sizes", "use/compile", "NamedDimension("),
    "silence a rule": (["Pitfalls"], "silence rule", "use/pitfalls", "# explorer: ignore[EX001]"),
    "use it in CI": (["In CI"], "CI", "use/ci", "python -m explorer check step.golden"),
    "run on a GPU": (["On a GPU"], "GPU", "use/gpu", "pip install '.[lab,cuda]'"),
    "share a page": (["Share a page"], "share a page", "use/share", 'cap.to_html("report.html")'),
    "come from Tripy": (["Tripy"], "Tripy", "from/tripy", "tp.compile"),
    "come from torch.compile": (["torch.compile"], "torch.compile", "from/pytorch", "torch.compile"),
}
# The one word that a person types, and the page that is meant by it: the first result, whatever else has the word.
WORDS = {
    "recompile": "use/recompiles",
    "recompiles": "use/recompiles",
    "slow line": "use/measure",
    "HLO": "use/explore",
    "silence": "use/pitfalls",
    "share": "use/share",
    "ci": "use/ci",
    "gpu": "use/gpu",
    "TPU": "use/targets",
    "install": "start",
    "tripy": "from/tripy",
    "mlx": "from/mlx",
    "torch.compile": "from/pytorch",
}
GENERATED = re.compile(r"(reference|errors|rules|questions)/(?!index)")
# One of each kind; those that are generated are alike.
KINDS = (
    *(
        "index",
        "start",
        "gallery",
        "surfaces",
        "how_it_knows",
        "peers",
        "use/explore",
        "use/ci",
        "guides/04_recompiles",
    ),
    *("reference/index", "reference/explore", "errors/index", "rules/index", "questions/index"),
    *("from/tripy", "search"),
)


class Targets(HTMLParser):
    """What a page points to, what it loads, and the places in it that can be pointed to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.has_view = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.names |= {given[name] or "" for name in ("id", "name") if name in given}
        self.has_view |= "explorer" in (given.get("class") or "").split()
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        if given.get("src"):
            self.loaded.append(given["src"] or "")
        if tag == "link" and given.get("href") and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(given["href"] or "")


@pytest.fixture(scope="module")
def pages() -> dict[str, Targets]:
    if not (SITE / "index.html").exists():
        reason = "the site is not there: make docs builds it"
        pytest.fail(reason) if os.environ.get("EXPLORER_CI") == "1" else pytest.skip(reason)
    files = [file for file in SITE.rglob("*.html") if "_static" not in file.parts]
    return {file.relative_to(SITE).as_posix(): Targets(file.read_text(encoding="utf-8")) for file in files}


@pytest.fixture(scope="module")
def address(pages: dict[str, Targets]) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def opened(browser: Browser, address: str, name: str, dark: bool = False) -> Page:
    page = browser.context.new_page()
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto(f"{address}/{name}.html")
    return page


def test_every_link_within_the_site_leads_somewhere(pages: dict[str, Targets]):
    broken = []
    for name, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(name), unquote(parts.path))) if parts.path else name
            if not (SITE / path).exists():
                broken.append(f"{name}: {link}")
            elif parts.fragment and path in pages and unquote(parts.fragment) not in pages[path].names:
                broken.append(f"{name}: {link} has no such place")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[str, Targets]):
    far = {f"{name}: {source}" for name, page in pages.items() for source in page.loaded if urlsplit(source).netloc}
    sheets = [
        file for file in SITE.rglob("*.css") if re.search(r"url\(['\"]?https?:", file.read_text(encoding="utf-8"))
    ]
    assert (far, sheets) == (set(), [])


def test_no_page_is_larger_than_a_megabyte_and_a_half(pages: dict[str, Targets]):
    sizes = {}
    for name, page in pages.items():
        shown = {
            os.path.normpath(os.path.join(os.path.dirname(name), source))
            for source in page.loaded
            if "_images" in source
        }
        sizes[name] = (SITE / name).stat().st_size + sum((SITE / image).stat().st_size for image in shown)
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}


def test_what_a_shell_printed_is_shown_as_it_was(browser: Browser, address: str):
    shown = opened(browser, address, "use/ci").locator("article").inner_text()
    assert '\narguments = ["f32[64,128]"]\n' in shown  # it comes in pieces, which end anywhere
    assert "train.py:6" in shown or "line 6" in shown, "the line at fault"
    assert "\x1b" not in shown


def test_no_page_has_a_path_of_the_machine_that_built_it(pages: dict[str, Targets]):
    machine = re.compile(r"(?<![\w.:/=])/(?:home|tmp|root|work)/[\w.-]+")
    named = {name: machine.findall((SITE / name).read_text(encoding="utf-8")) for name in pages}
    assert {name: paths for name, paths in named.items() if paths} == {}


@pytest.mark.slow
def test_every_page_opens_without_a_network_or_an_error(browser: Browser, address: str, pages: dict[str, Targets]):
    """Every one that a person wrote or that has a view on it; of the generated ones without, which are alike, a few."""
    page = browser.context.new_page()
    alike = [name for name in sorted(pages) if GENERATED.match(name) and not pages[name].has_view]
    for name in sorted(set(pages) - set(alike)) + alike[::10]:
        page.goto(f"{address}/{name}")
        expect(page.locator("h1").first).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", KINDS)
def test_axe_finds_nothing(browser: Browser, address: str, name: str, dark: bool):
    page = opened(browser, address, name, dark)
    for view in page.locator(".explorer").all():
        view.scroll_into_view_if_needed()
    # A piece of a profile's bar is as narrow as what was measured while the page was built; the table below has it too.
    narrow = re.compile("^target-size.*pf-piece")
    assert [line for line in violations(page) if not narrow.match(line)] == []


def test_the_views_are_dark_when_the_page_is(browser: Browser, address: str):
    page = opened(browser, address, "index")
    view = page.locator(VIEW).first
    expect(view).to_be_visible(timeout=20_000)
    switch = page.locator("button.theme-toggle:visible").first
    for _ in range(3):  # as the system is, light, dark
        switch.click()
        theme = page.evaluate("document.body.dataset.theme")
        assert view.evaluate("view => view.classList.contains('dark')") == (theme == "dark")
        lightness = "element => getComputedStyle(element).backgroundColor.match(/\\d+/g).map(Number)[0] > 128"
        assert view.evaluate(lightness) == page.locator("body").evaluate(lightness) == (theme != "dark")


def test_a_page_with_many_views_stays_at_its_top(browser: Browser, address: str):
    page = opened(browser, address, "gallery")
    page.locator("article .explorer").last.scroll_into_view_if_needed()  # each view starts when it is near
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(2000)
    assert page.evaluate("scrollY") == 0


def test_the_front_page_is_the_thing_itself(browser: Browser, address: str):
    page = opened(browser, address, "index")
    view = page.locator(VIEW).first
    expect(view).to_be_visible(timeout=20_000)
    view.get_by_text("weights = jax.nn.softmax").first.click()
    expect(view.locator(".lit").first).to_be_visible()


@pytest.mark.parametrize("task", TASKS)
def test_a_newcomer_gets_there_in_two_clicks(browser: Browser, address: str, task: str):
    clicks, _, name, answer = TASKS[task]
    page = opened(browser, address, "index")
    for link in clicks:
        page.locator("article").get_by_role("link", name=re.compile(f"^{re.escape(link)}")).first.click()
    assert len(clicks) <= 2
    expect(page).to_have_url(re.compile(rf"{re.escape(f'{address}/{name}.html')}(#|$)"))
    expect(page.locator("article").get_by_text(answer).first).to_be_visible()


def search(page: Page, words: str) -> list[str]:
    """The addresses of the first results."""
    field = page.locator("input[name=q]:visible").first
    field.fill(words)
    field.press("Enter")
    # Results come one by one, and this when all are there.
    expect(page.locator("#search-results .search-summary")).to_contain_text("Search finished, found")
    return [link.get_attribute("href") or "" for link in page.locator("#search-results ul.search li > a").all()[:5]]


@pytest.mark.slow
@pytest.mark.parametrize("word", WORDS)
def test_one_word_leads_to_its_page_first(browser: Browser, address: str, word: str):
    page = opened(browser, address, "index")
    results = search(page, word)
    assert results[0].split(".html")[0] == WORDS[word], results
    page.locator("#search-results ul.search li > a").first.click()
    expect(page.locator("h1").first).to_be_in_viewport()


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_newcomer_gets_there_by_one_search(browser: Browser, address: str, task: str):
    _, words, name, answer = TASKS[task]
    page = opened(browser, address, "index")
    first = search(page, words)
    assert any(name in link for link in first), first
    page.locator(f"#search-results ul.search li > a[href*='{name}']").first.click()
    expect(page.locator("article").get_by_text(answer).first).to_be_visible()
