"""The sentences that sum a capture up are so, and speak of the nodes that they name."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex


def relaid(x, w):
    products = jnp.einsum("bsd,df->fbs", x, w)
    return jnp.tanh(products).T * 2


def product(x, w):
    return jnp.tanh(x @ w)


def wasteful(x):
    y = x * 1.0 + 0.0
    return jnp.sin(y)


def facts(function, *args, passes=False):
    capture = ex.explore(function, *args)
    if passes:
        assert len(capture.passes)
    return capture, {fact.kind: fact for fact in capture.summary}


def first_line(function):
    return function.__code__.co_firstlineno


def test_the_first_fact_counts_the_kernels_and_names_the_line_that_costs_most():
    capture, found = facts(relaid, jnp.ones((4, 32, 64)), jnp.ones((64, 128)))
    kernels = [node for node in capture.hlo.graph.nodes if node.graph.kernel[node.index] == node.index]
    assert found["cost"].text.startswith(f"{len(kernels)} kernels; line {first_line(relaid) + 1} ")
    assert capture.summary[0] is found["cost"]
    row = max(capture.lines(), key=lambda row: row.bytes)
    assert found["cost"].text.endswith(f"moves {row.bytes_share:.0%} of the bytes.")


def test_copies_are_kernels_with_nothing_but_copies_inside():
    capture, found = facts(relaid, jnp.ones((4, 32, 64)), jnp.ones((64, 128)))
    graph = capture.hlo.graph
    assert found["copies"].nodes
    for kernel in found["copies"].nodes:
        inside = {node.op for node in graph.nodes if graph.kernel[node.index] == kernel} - {"fusion"}
        assert inside & {"copy", "transpose"}
        assert inside <= {"copy", "transpose", "bitcast", "reshape", "parameter"}
    assert "copies" not in facts(product, jnp.ones((64, 64)), jnp.ones((64, 64)))[1]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_narrow_product_that_runs_in_f32_is_told_once_the_links_are_exact(dtype):
    x = jnp.ones((128, 128), dtype)
    # jaxlib 0.10 widens it for a CPU, and 0.11 has a library's kernel for bf16.
    is_wide = "f32[128,128]{1,0} dot(" in jax.jit(product).lower(x, x).compile().as_text()
    found = facts(product, x, x, passes=True)[1]
    assert ("precision" in found) == (dtype == "bfloat16" and is_wide)
    if "precision" in found:
        assert found["precision"].text == f"The bf16 product runs in f32 here, of line {first_line(product) + 1}."


def test_memory_and_donation_are_told_from_a_megabyte_on():
    update = jax.jit(lambda w, g: w - 0.1 * g)
    found = facts(update, jnp.ones((512, 1024)), jnp.ones((512, 1024)))[1]
    assert found["memory"].text.startswith("Memory peaks at 6.3 MB; the largest buffer then, 2.1 MB, is")
    assert found["donation"].text.startswith("The argument w of 2.1 MB could be donated")
    donating = jax.jit(lambda w, g: w - 0.1 * g, donate_argnums=0)
    assert "donation" not in facts(donating, jnp.ones((512, 1024)), jnp.ones((512, 1024)))[1]
    assert "memory" not in facts(update, jnp.ones(8), jnp.ones(8))[1]


def test_what_the_compiler_says_it_eliminated_is_told_with_its_line():
    found = facts(wasteful, jnp.ones(64), passes=True)[1]
    assert found["eliminated"].text == f"2 of 3 equations were eliminated, on line {first_line(wasteful) + 1}."
    assert found["eliminated"].stage == "jaxpr"


def test_of_what_was_not_compiled_nothing_is_said():
    assert len(ex.open_hlo(jax.jit(product).lower(jnp.ones((8, 8)), jnp.ones((8, 8))).as_text()).summary) == 0


def test_the_sentences_are_the_first_lines_of_the_text():
    capture = ex.explore(product, jnp.ones((64, 64)), jnp.ones((64, 64)))
    assert capture.to_text().splitlines()[1].startswith(str(capture.summary)[:40])
    assert str(capture.summary) in capture._repr_mimebundle_()["text/html"]
