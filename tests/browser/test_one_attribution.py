"""Every line of several programs: what the page gives for it is what Python gives, on each surface of the page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from lab import Browser
from playwright.sync_api import expect
from view import View

import explorer as ex
from tests.examples import line_examples
from tests.support.quick import quick

FILE = line_examples.__file__
LINES = range(1, len(Path(FILE).read_text(encoding="utf-8").splitlines()) + 1)
STAGES = ("hlo", "stablehlo", "jaxpr")


@pytest.fixture(scope="module", params=quick(line_examples.EXAMPLES, {"attention", "update"}))
def capture(request: pytest.FixtureRequest) -> ex.Capture:
    function, *arguments = line_examples.EXAMPLES[request.param]
    return ex.explore(function, *arguments)


@pytest.fixture
def view(capture: ex.Capture, browser: Browser, tmp_path: Path) -> View:
    page = browser.open_file(capture.to_html(tmp_path / "page.html"))
    page.set_viewport_size({"width": 1400, "height": 5_000})  # so that a table draws all its rows
    # The height of the page follows the window's only up to a limit.
    page.add_style_tag(content=".explorer { height: 4800px !important; max-height: none !important }")
    return View(page)


def lit(view: View) -> set[int]:
    """The nodes that the table shows as found."""
    rows = view.root.locator(".explorer-table .rows .row.lit")
    return {int(node) for node in rows.evaluate_all("rows => rows.map(row => row.dataset.at)")}


def search(view: View, query: str) -> None:
    field = view.root.locator("input[type=search]")
    field.fill(query)
    field.press("Enter")


def choose_stage(view: View, stage: str) -> None:
    view.root.locator(f'button[data-stage="{stage}"]').click()
    expect(view.root).to_have_attribute("data-stage", stage)


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_click_on_any_line_and_its_search_give_what_belongs_to_it(view: View, capture: ex.Capture, stage: str):
    choose_stage(view, stage)
    view.show("table")
    clicked, searched, used = {}, {}, set()
    for line in LINES:
        row = view.root.locator(f'.explorer-source [data-line="{line}"]')
        row.click()
        expect(row).to_contain_class("lit")
        clicked[line] = lit(view)
        if "used" in (row.get_attribute("class") or "").split() and row.locator(".marks i").count():
            used.add(line)
    for line in LINES:
        search(view, f"line:{Path(FILE).name}:{line}")
        searched[line] = lit(view)
    expected = {line: {node.index for node in capture.nodes_at(line, stage, file=FILE)} for line in LINES}
    assert clicked == expected
    assert searched == expected
    assert used == {line for line in LINES if expected[line]}


@pytest.mark.slow
def test_the_line_table_counts_and_chooses_what_belongs_to_each_line(view: View, capture: ex.Capture):
    view.show("lines")
    rows = view.root.locator(".explorer-lines .body [data-file]")
    counts = {}
    for row in rows.all():
        if row.get_attribute("data-file") == FILE:
            cells = row.locator(".counted").all_inner_texts()
            counts[int(row.get_attribute("data-line") or 0)] = tuple(map(int, cells))
    kernel, is_equation = capture.hlo.graph.kernel, capture.jaxpr.graph.is_equation
    expected = {}
    for line in LINES:
        nodes = [node.index for node in capture.nodes_at(line, file=FILE)]
        equations = [node.index for node in capture.nodes_at(line, "jaxpr", file=FILE)]
        count = int(is_equation[equations].sum()), sum(kernel[node] == node for node in nodes)
        if any(count):
            expected[line] = count
    assert counts == expected
    for line in expected:
        view.show("lines")
        view.root.locator(f'.explorer-lines .body [data-file="{FILE}"][data-line="{line}"]').click()
        view.show("table")
        assert lit(view) == {node.index for node in capture.nodes_at(line, file=FILE)}


def test_the_details_of_a_line_count_its_kernels_as_the_table_does(view: View, capture: ex.Capture):
    for row in capture.lines():
        if row.file == FILE and row.kernels:
            view.root.locator(f'.explorer-source [data-line="{row.line}"]').click()
            kernels = f"in {row.kernels} kernel{'s' * (row.kernels > 1)}"
            expect(view.root.locator(".explorer-details .note").first).to_contain_text(kernels)


def test_memory_is_made_by_the_lines_that_its_makers_belong_to(view: View, capture: ex.Capture):
    view.show("memory")
    rows = view.root.locator(".explorer-memory .memory-rows .row")
    shown = Counter()
    for row in rows.all():
        title, count = row.locator('[role="cell"]').first.inner_text(), row.locator('[role="cell"]').last.inner_text()
        place = title.split("  ")[0].rpartition(":")[2]
        shown[int(place) if place.isdecimal() else 0] += int(count)
    places = [buffer.node.place for buffer in capture.live_memory.at()]
    assert shown == Counter(place.line if place is not None else 0 for place in places)


def test_a_line_that_only_calls_offers_what_it_leads_to(browser: Browser, tmp_path: Path):
    function, *arguments = line_examples.EXAMPLES["update"]
    capture = ex.explore(function, *arguments)
    view = View(browser.open_file(capture.to_html(tmp_path / "page.html")))
    view.root.locator(".explorer-source [data-line]", has_text="x = block(w, x)").click()
    details = view.root.locator(".explorer-details")
    expect(details).to_contain_text("No node of this stage comes from this line itself.")
    call = line_examples.objective.__code__.co_firstlineno + 2
    through = capture.nodes_at(call, file=FILE, through=True)
    assert through
    details.get_by_role("button", name="with what it calls").click()
    expect(details).to_contain_text("All that the calls on this line compiled to.")
    expect(details.locator(".note").first).to_contain_text(f"{len(through)} instructions")
    browser.keep(view.page, "line_of_a_call")
