"""Twelve things that a person asks, each typed once into the field of a page whose truth is known by construction.

The judge is the program's own text: what was written, and what XLA printed of it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from lab import Browser
from playwright.sync_api import Locator, expect
from view import View

import explorer as ex
from explorer.analysis.question_catalogue import QUESTIONS


@partial(jax.jit, donate_argnames="state")
def step(state, q, k):
    scores = jnp.einsum("sd,td->st", q, k)
    mask = jnp.tril(jnp.ones((96, 96), bool))
    scores = jnp.where(mask, scores, -jnp.inf) * 1.0
    print("traced", scores)
    weights = jax.nn.softmax(scores)
    ordered = jnp.sort(weights, axis=0)
    return state - 0.1 * ordered, jnp.transpose(q @ k[:32, :].T)


def line_of(text: str) -> int:
    lines, first = inspect.getsourcelines(step.__wrapped__)
    return next(first + i for i, line in enumerate(lines) if text in line)


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    x = jnp.ones((96, 32), jnp.bfloat16)
    capture = ex.explore(step, jnp.ones((96, 96), jnp.bfloat16), x, x)
    assert len(capture.passes)
    return capture


@pytest.fixture(scope="module")
def page(capture: ex.Capture, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(capture.to_html(tmp_path_factory.mktemp("asked") / "step.html"))


@pytest.fixture
def view(page: Path, browser: Browser) -> View:
    return View(browser.open_file(page))


def field(view: View) -> Locator:
    return view.root.locator(".ask input")


def ask(view: View, question: str) -> str:
    """One typed question, as a person types it: the answer's text."""
    view.root.press("Control+k")
    field(view).press_sequentially(question)
    field(view).press("Enter")
    expect(view.root.locator(".answer .sentence")).to_be_visible()
    return view.root.locator(".answer").inner_text()


def entry(capture: ex.Capture) -> str:
    return capture.hlo.text.split("ENTRY")[1]


def copies(capture: ex.Capture, answer: str) -> None:
    made = {op: capture.hlo.text.count(f" {op}(") for op in ("transpose", "copy")}
    for op, count in made.items():
        counted = re.search(rf"(\d+) {op[:-1]}", answer)
        assert (int(counted[1]) if counted else 0) == count
    if any(made.values()):
        assert re.search(rf"lines? .*({line_of('einsum')}|{line_of('jnp.transpose')})", answer)


def biggest(capture: ex.Capture, answer: str) -> None:
    width = {"bf16": 2, "f32": 4, "pred": 1, "s32": 4}
    arrays = re.findall(r"%([\w.-]+) = (bf16|f32|pred|s32)\[(\d+),(\d+)\]\S* (?!bitcast|get-tuple)", entry(capture))
    size = max(width[dtype] * int(rows) * int(columns) for _, dtype, rows, columns in arrays)
    largest = {name for name, dtype, m, n in arrays if width[dtype] * int(m) * int(n) == size}
    assert f"{size / 1000:.1f} kB" in answer
    assert any(name in answer for name in largest)


def product(capture: ex.Capture, answer: str) -> None:
    types = set(re.findall(r"= \w+\[[\d,]*\]\S* dot\(%([\w.-]+)", capture.hlo.text))
    runs = {re.search(rf"%{re.escape(name)} = (\w+)\[", capture.hlo.text)[1] for name in types}  # pyright: ignore[reportOptionalSubscript]
    assert "bf16" in answer
    assert all(f"in {dtype}" in answer for dtype in runs) if runs else "not known" in answer


def mask(capture: ex.Capture, answer: str) -> None:
    written = re.search(r"= pred\[96,96\]\S* (?!parameter|bitcast)", entry(capture))
    assert ("Yes: the mask" in answer) == (written is not None)
    squares = re.findall(r"= (?:f32|bf16|s32)\[(\d+),\1\]\S* (?!parameter|bitcast|get-tuple)\w", entry(capture))
    counted = re.search(r"(\d+) N×N array", answer)
    assert int(counted[1] if counted else 0) == len(squares)


def multiplication(capture: ex.Capture, answer: str) -> None:
    assert f"mul on line {line_of('* 1.0')} was eliminated by" in answer
    assert f"multiply({'%where'}" not in capture.hlo.text


TYPED: dict[str, Callable[[ex.Capture, str], None]] = {
    "why are there transposes": copies,
    "biggest buffer and its maker": biggest,
    "which pass removed my multiplication": multiplication,
    "is my product in bf16": product,
    "is the mask materialised": mask,
}


@pytest.mark.slow
@pytest.mark.parametrize("question", TYPED)
def test_an_answer_is_what_the_program_s_own_text_says(view: View, capture: ex.Capture, question: str):
    TYPED[question](capture, ask(view, question))
    expect(field(view)).to_be_focused()
    assert view.root.locator("g.lit").count() or view.root.get_attribute("data-stage") == "jaxpr"


def test_which_line_made_this_fusion_is_asked_of_the_one_that_is_chosen(view: View, capture: ex.Capture):
    sort = next(node for node in capture.hlo.graph.nodes if node.op == "sort")
    answer = ask(view, f"which line made {sort.name}")
    assert f"{sort.name} is made of line {line_of('jnp.sort')}" in answer
    # By two clicks: the kernel, whose details name the line.
    field(view).press("Escape")
    view.show("table")
    view.root.locator(".explorer-table .row", has_text=sort.name).first.click()
    expect(view.root.locator(f'.explorer-source [data-line="{line_of("jnp.sort")}"]').first).to_contain_class("lit")
    assert ask(view, "which line made this fusion").startswith("which line made this kernel?")
    expect(view.root.locator(".answer")).to_contain_text(f"{sort.name} is made of line {line_of('jnp.sort')}")


def test_did_my_print_run(view: View):
    answer = ask(view, "did my print run")
    assert f"line {line_of('print(')}" in answer
    assert "runs in no call after that" in answer


def test_was_donation_used(view: View, capture: ex.Capture):
    aliased = "input_output_alias={" in capture.hlo.text
    assert ("Yes: state is donated" in ask(view, "was donation used")) == aliased


def test_which_fusion_is_slow_is_by_bytes_until_it_is_measured(view: View):
    answer = ask(view, "which fusion is slow")
    assert "No time was measured" in answer
    assert "inferred" in answer
    assert "ex.profile" in answer


def test_what_is_not_fused_and_why(view: View, capture: ex.Capture):
    answer = ask(view, "what isn't fused and why")
    assert re.search(r"%\S+ = f32\[96,96\]\S* sort\(", entry(capture))
    assert "a sort runs alone" in answer


@pytest.mark.parametrize("question", ["why did it recompile", "what would remat bring"])
def test_what_a_page_cannot_know_is_said_to_be_unknown_with_what_to_run(view: View, question: str):
    answer = ask(view, question)
    assert "not known" in answer
    assert "ex." in answer


def test_what_is_no_question_gets_no_answer(view: View, browser: Browser):
    view.root.press("Control+k")
    field(view).press_sequentially("what is the weather in Paris today")
    field(view).press("Enter")
    expect(view.root.locator(".ask-list")).to_contain_text("can't answer that yet")
    expect(view.root.locator(".ask-list [role=option]")).to_have_count(len(QUESTIONS))
    expect(view.root.locator(".answer")).to_have_count(0)


def test_questions_are_proposed_while_one_types_and_chosen_by_keyboard(view: View, browser: Browser):
    view.root.press("Control+k")
    options = view.root.locator(".ask-list [role=option]")
    expect(options).to_have_count(len(QUESTIONS))
    field(view).press_sequentially("bufer")
    expect(options).to_have_count(1)
    field(view).press("ArrowDown")
    expect(field(view)).to_have_attribute("aria-activedescendant", re.compile("-0$"))
    field(view).press("Enter")
    expect(view.root.locator(".answer")).to_contain_text("kB")
    browser.keep(view.page, "ask")
    view.root.locator(".answer .sentence").click()
    expect(view.root.locator(".ask-list")).to_be_hidden()


def test_on_a_page_of_its_own_the_keys_need_no_click_and_an_unfinished_word_finds_its_question(view, browser):
    view.page.keyboard.press("Control+k")
    expect(field(view)).to_be_focused()
    view.page.keyboard.type("why are there trans")
    options = view.root.locator(".ask [role=option]")
    expect(options).to_have_text(["why are there transposes and copies?"])
    view.page.keyboard.press("Enter")
    expect(view.root.locator(".ask .answer small")).to_have_text("why are there transposes and copies?")


def test_a_search_says_which_of_how_many_and_proposes_a_spelling(view: View, capture: ex.Capture):
    found = len(capture.hlo.graph.where("op:convert"))
    field(view).fill("op:convert")
    expect(view.root.locator(".hits")).to_have_text(f"{found} found")
    field(view).press("Enter")
    expect(view.root.locator(".hits")).to_have_text(f"1 of {found}")
    view.root.locator(".explorer-foot").click()
    view.root.press("n")
    expect(view.root.locator(".hits")).to_have_text(f"2 of {found}")
    view.root.press("Shift+N")
    view.root.press("Shift+N")
    expect(view.root.locator(".hits")).to_have_text(f"{found} of {found}")
    field(view).fill("brodcast")
    expect(view.root.locator(".ask-list")).to_contain_text("did you mean broadcast")
    field(view).press("Enter")
    expect(field(view)).to_have_value("broadcast")
