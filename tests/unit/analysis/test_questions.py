"""Questions in a person's own words: which one is meant, and that the answer is what the program's own text says."""

import inspect
import json
import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.analysis.question_catalogue import HARDWARE, QUESTIONS, SILENT, distance, meant, rank
from explorer.analysis.questions import answers
from explorer.errors import ForeignNodeError, UnknownNameError
from explorer.hardware.names import all_hardware

CASES = json.loads((Path(ex.__file__).parent / "view/js/test/questions.json").read_text(encoding="utf-8"))


def product_and_sort(x, w):
    scaled = (x @ w) * 1.0
    return jnp.sort(jnp.tanh(scaled), axis=0)


def line_of(function, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, line in enumerate(lines) if text in line)


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    capture = ex.explore(product_and_sort, jnp.ones((64, 128)), jnp.ones((128, 32)))
    assert len(capture.passes)
    return capture


@pytest.mark.parametrize(("text", "key"), CASES["cases"], ids=[text for text, _ in CASES["cases"]])
def test_a_question_is_known_by_its_words(text: str, key: str | None):
    question = meant(rank(text, CASES["names"].__contains__))
    assert (question and question.key) == key


def test_the_view_is_tested_with_the_questions_of_the_catalogue():
    assert CASES["questions"] == [[q.key, q.title, *map(list, (q.words, q.hints, q.slots))] for q in QUESTIONS]
    assert CASES["silent"] == sorted(SILENT)


def test_the_hardware_that_a_question_may_name_is_that_of_the_targets():
    assert {key.split("-")[0] for key in all_hardware()} == HARDWARE


def test_letters_that_are_swapped_are_one_mistake():
    assert distance("trasnpose", "transpose", 2) == 1
    assert distance("bufer", "buffer", 1) == 1
    assert distance("sum", "transpose", 2) > 2


def test_what_removed_a_multiplication_is_the_pass_whose_module_lacks_it(capture: ex.Capture):
    answer = capture.ask("which pass removed my multiplication")
    line = line_of(product_and_sort, "* 1.0")
    assert f"mul on line {line} was eliminated by" in answer.text
    assert answer.certainty == "exact"
    # The truth: JAX wrote it, and XLA's import already had it gone or the pass that is named took it away.
    assert " multiply(" not in capture.hlo.text
    assert capture.ask(f"who removed line {line}?").nodes == answer.nodes
    assert [capture.jaxpr.graph.ops[capture.jaxpr.graph.op[node]] for node in answer.nodes] == ["mul"]
    assert capture.ask("who removed line 1?").text == "There is no equation of line 1."


def test_the_biggest_buffer_is_the_largest_array_of_the_text(capture: ex.Capture):
    answer = capture.ask("biggest buffer?")
    sizes = {
        name: int(rows) * int(columns) * 4
        for name, rows, columns in re.findall(r"%([\w.-]+) = f32\[(\d+),(\d+)\]", capture.hlo.text.split("ENTRY")[1])
    }
    nodes = [capture.hlo.graph.names[node] for node in answer.nodes]
    assert max(sizes.values()) == sizes[nodes[0]] == 64 * 128 * 4
    assert "32.8 kB is an argument, x" in answer.text
    maker = nodes[1]
    assert f"8.2 kB is made by {maker} on line {line_of(product_and_sort, '@')}" in answer.text


def test_a_kernel_is_made_of_the_lines_that_are_written_in_it(capture: ex.Capture):
    sort = next(node for node in capture.hlo.graph.nodes if node.op == "sort")
    line = line_of(product_and_sort, "jnp.sort")
    for answer in (capture.ask("which line made this", sort), capture.ask(f"which line made {sort.name}?")):
        assert answer.text.startswith(f"{sort.name} is made of line {line} (")
    assert capture.ask("which line made this?").certainty == "unknown"
    with pytest.raises(ForeignNodeError):
        capture.ask("which line made this?", next(capture.jaxpr.graph.nodes))


def test_what_runs_alone_by_what_it_is_is_told_and_nothing_else_is(capture: ex.Capture):
    assert "a sort runs alone" in capture.ask("what is not fused and why?").text
    one = ex.explore(lambda x: jnp.tanh(x) * 2, jnp.ones(64))
    assert one.ask("what isn't fused").text == "Everything is fused: one kernel runs."


KERNELS_APART = """HloModule m

ENTRY main {
  p = f32[8]{0} parameter(0)
  a = f32[8]{0} exponential(p)
  view = f32[8]{0} bitcast(a)
  again = f32[8]{0} bitcast(view)
  b = f32[8]{0} sine(again)
  c = f32[8]{0} sort(b)
  d = f32[8]{0} cosine(a)
  e = f32[8]{0} add(d, d)
  ROOT out = (f32[8]{0}, f32[8]{0}) tuple(c, d)
}
"""


def test_kernels_stay_apart_also_where_a_bitcast_is_between_them():
    answer = ex.open_hlo(KERNELS_APART).ask("what isn't fused")
    # a → b by two bitcasts, b → c, a → d, d → e; c is a sort, `view` and d read a, `out` returns d.
    assert answer.text == (
        "In 4 places a kernel reads what another wrote: in 2 several read it; in 1 a sort runs alone; "
        "in 1 it is a result of the program too."
    )
    assert answer.nodes == (1, 4, 5, 6, 7)


def test_kernels_of_a_text_that_goes_in_circles_are_counted_once():
    text = KERNELS_APART.replace("bitcast(a)", "bitcast(again)")
    assert "In 3 places a kernel reads what another wrote" in ex.open_hlo(text).ask("what isn't fused").text


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_the_precision_of_a_product_is_that_of_the_instruction(dtype: str):
    x = jnp.ones((64, 64), dtype)
    capture = ex.explore(lambda a, b: jnp.tanh(a @ b), x, x)
    assert len(capture.passes)
    dots = [node for node in capture.hlo.graph.nodes if node.op == "dot"]
    answer = capture.ask("is my product in bf16?")
    short = {"bfloat16": "bf16", "float32": "f32"}[dtype]
    if not dots:
        assert answer.certainty == "unknown"
        return
    run = dots[0].operands[0].type.partition("[")[0]
    assert ("but runs in" in answer.text) == (run != short)
    assert f"takes {short}" in answer.text
    assert f"in {run}" in answer.text
    assert "no matrix product" in ex.explore(jnp.tanh, x).ask("in bf16?").text


@jax.tree_util.register_dataclass
@dataclass
class Module:
    w: jax.Array


def test_donation_is_used_refused_or_possible():
    w = jnp.ones((64, 64))
    step = lambda w, g: w - 0.1 * g  # noqa: E731
    used = ex.explore(jax.jit(step, donate_argnums=0), w, w).ask("was donation used?")
    assert used.text.startswith("Yes: w is donated, and results are written over 16.4 kB of it.")
    possible = ex.explore(jax.jit(step), w, w).ask("donated?")
    assert possible.text.startswith("No argument is donated. w of 16.4 kB could be")
    assert possible.hint == "jax.jit(f, donate_argnames='w')"
    nested = ex.explore(jax.jit(lambda m, g: m.w - 0.1 * g), Module(w), w).ask("donated?")
    assert nested.text.startswith("No argument is donated. m.w of 16.4 kB could be")
    assert nested.hint == "jax.jit(f, donate_argnames='m')"
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        refused = ex.explore(jax.jit(lambda w: w.sum(), donate_argnums=0), w).ask("donated?")
    assert "no result can take its memory" in refused.text
    assert "could be" not in refused.text


def test_prints_that_ran_while_tracing_and_those_that_run(capsys: pytest.CaptureFixture[str]):
    def noisy(x):
        print("once", x)
        jax.debug.print("each time {}", x.sum())
        return x * 2

    answer = ex.explore(noisy, jnp.ones(4)).ask("did my print run?")
    assert "once" in capsys.readouterr().out
    assert f"(line {line_of(noisy, 'print(')})" in answer.text
    assert f"jax.debug.print on line {line_of(noisy, 'jax.debug')} runs in every call" in answer.text

    def seldom(x):
        return jax.lax.cond(x.sum() > 9, lambda x: jax.debug.print("large {}", x) or x, lambda x: x, x)

    conditional = ex.explore(seldom, jnp.ones(4)).ask("did my print run?")
    assert conditional.text.endswith("runs as often as the branch or loop around it.")
    quiet = ex.explore(lambda x: x * 2, jnp.ones(4)).ask("did my print run?")
    assert quiet.certainty == "inferred"
    assert quiet.text.startswith("No print was seen")


def causal(q, k):
    scores = q @ k.T
    mask = jnp.tril(jnp.ones((96, 96), bool))
    return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf))


def test_a_mask_is_in_memory_where_its_array_is_written_by_the_entry():
    x = jnp.ones((96, 32))
    capture = ex.explore(causal, x, x)
    entry = capture.hlo.text.split("ENTRY")[1]
    written = re.findall(r"= pred\[96,96\]\S* (?!parameter)", entry)
    answer = capture.ask("is the mask materialised?")
    assert answer.text.startswith("Yes: the mask" if written else "No boolean mask is in memory")
    squares = re.findall(r"= f32\[96,96\]\S* (?!parameter|bitcast)(\w+)", entry)
    counted = re.search(r"(\d+) N×N array", answer.text)
    assert counted is not None
    assert int(counted[1]) == len(squares)
    given = ex.explore(partial(jnp.where), jnp.ones((96, 96), bool), jnp.ones((96, 96)), 0.0)
    assert "The mask is an argument: pred[96,96]" in given.ask("mask materialised?").text


def transposed(x, w):
    return jnp.einsum("bsd,df->fbs", x, w) + 1


def test_copies_are_counted_and_named_for_the_line_they_serve():
    capture = ex.explore(transposed, jnp.ones((4, 32, 64)), jnp.ones((64, 128)))
    assert len(capture.passes)
    text = capture.hlo.text
    copies, transposes = text.count(" copy("), text.count(" transpose(")
    answer = capture.ask("why are there transposes?")
    if not copies + transposes:
        assert answer.text.startswith("No instruction")
        return
    assert (f"{copies} cop" in answer.text) == (copies > 0)
    assert (f"{transposes} transpose" in answer.text) == (transposes > 0)
    assert f"line {line_of(transposed, 'einsum')}" in answer.text
    assert "No instruction" in ex.explore(jnp.tanh, jnp.ones(4)).ask("why copies?").text


def test_what_a_capture_does_not_know_is_not_known(capture: ex.Capture):
    for question in ("why did it recompile?", "what would remat bring?"):
        answer = capture.ask(question)
        assert answer.certainty == "unknown"
        assert "ex." in answer.hint
    slow = capture.ask("which fusion is slow?")
    assert (slow.certainty, "No time was measured" in slow.text) == ("inferred", True)
    with pytest.raises(UnknownNameError, match="which line or kernel is slow"):
        capture.ask("what is the weather in Paris today?")


def test_a_page_carries_the_same_answers(capture: ex.Capture):
    plain = answers(capture)
    assert [key for key, *_ in plain["questions"]] == list(plain["answers"])
    for key, title, *_ in plain["questions"]:
        # What is chosen, compiled or measured makes these others.
        if key not in ("made", "removed", "remat", "hardware", "duration", "compiling", "passes"):
            assert plain["answers"][key][0] == capture.ask(title).text
    lines = {line: text for _, line, text, *_ in plain["removed_lines"]}
    line = line_of(product_and_sort, "* 1.0")
    assert lines[line] == capture.ask(f"who removed line {line}").text
    opened = ex.open_hlo(capture.hlo.text)
    assert opened.ask("biggest buffer").nodes == capture.ask("biggest buffer").nodes
    assert opened.ask("who removed line 3").certainty == "unknown"


def test_why_it_recompiled_is_what_a_running_watch_saw():
    @jax.jit
    def double(x):
        return x * 2

    capture = ex.explore(double, jnp.ones(2))
    with ex.watch():
        arrays = [jnp.ones(n) for n in (2, 3, 4)]
        assert capture.ask("why did it recompile?").text == "double was not compiled since the watch began."
        for array in arrays:
            double(array)
        answer = capture.ask("why did it recompile?")
        assert answer.certainty == "exact"
        assert re.search(r"compiled \d times since .*The last time: `x.shape\[0\]` was 3 and is now 4", answer.text)
    assert capture.ask("why did it recompile?").certainty == "unknown"


def rolled(w, x):
    for _ in range(6):
        x = jnp.tanh(jnp.sin(x @ w))
    return x.sum()


@pytest.mark.slow
def test_what_remat_brings_is_what_xla_reserves_for_the_derivative_with_and_without():
    w, x = jnp.ones((64, 64)), jnp.ones((256, 64))

    def reserved(function) -> int:
        memory = jax.jit(jax.value_and_grad(function)).lower(w, x).compile().memory_analysis()
        return memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes

    answer = ex.explore(rolled, w, x).ask("what would remat bring?")
    assert answer.certainty == "exact"
    assert ("saves" in answer.text) == (reserved(jax.checkpoint(rolled)) < 0.99 * reserved(rolled))
    assert ex.explore(jax.grad(rolled), w, x).ask("what would remat bring?").certainty == "unknown"


def test_what_runs_for_a_line_is_its_kernel_with_the_facts_of_its_code():
    capture = ex.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(800))
    line = next(place.line for place in capture.hlo.graph.attribution.places)
    (kernel,) = [node for node in capture.hlo.graph.nodes if node.op == "fusion"]
    before = capture.ask(f"what runs on the cpu for line {line}?")
    assert (before.certainty, before.nodes) == ("unknown", (kernel.index,))
    code = capture.machine_code[kernel.name]
    after = capture.ask(f"what runs on the cpu for line {line}?")
    assert after.text.startswith(f"On the cpu for line {line} {kernel.name}: vectors ")
    assert (f"{code.vector_bits} bits" in after.text) == bool(code.vector_bits)
    assert answers(capture)["machine_lines"][0][2] == after.text


def test_a_program_of_one_device_gathers_and_sends_nothing(capture: ex.Capture):
    assert capture.ask("what is gathered?").text.startswith("Nothing is gathered")
    assert "one device" in capture.ask("how is x sharded?").text
    assert "no collective" in capture.ask("which collectives cost most?").text


def test_an_integer_type_has_one_name_in_both_programs():
    x = jnp.ones((8, 8), jnp.int8)
    answer = ex.explore(lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32), x, x).ask(
        "is my product in bf16?"
    )
    assert "s8" not in answer.text
    assert " takes i8" in answer.text


@pytest.mark.parametrize(
    ("backend", "precision", "text", "certainty"),
    [
        ("cpu", None, "takes f32 and runs in f32.", "exact"),
        ("cuda", None, "takes f32, but runs in tf32 here.", "inferred"),
        ("cuda", "highest", "takes f32 and runs in f32.", "exact"),
        ("tpu", None, "takes f32, but runs in bf16 here.", "inferred"),
        ("tpu", "high", "takes f32, but runs in bf16 in 3 passes here.", "inferred"),
        ("cpu", "BF16_BF16_F32_X3", "runs in the algorithm dot_bf16_bf16_f32_x3 here.", "inferred"),
    ],
)
def test_the_precision_of_a_product_is_that_of_its_operands_its_algorithm_and_its_backend(
    backend: str, precision: str | None, text: str, certainty: str
):
    capture = ex.explore(lambda a: jnp.matmul(a, a, precision=precision), jnp.ones((64, 64)))
    answer = replace(capture, environment={**capture.environment, "backend": backend}).ask("in which precision?")
    assert answer.text.endswith(text)
    assert answer.certainty == certainty
