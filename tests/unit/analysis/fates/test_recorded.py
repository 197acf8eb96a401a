"""Which pass ended an operation, with the lines before and after it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import explorer as ex
from explorer.model.fates import Fate
from tests.corpus_fates.programs import program
from tests.corpus_fates.score import Score, scores, table

X = jnp.ones((13, 17))


def fates_of(function, *arguments):
    """By primitive, in program order."""
    capture = ex.explore(function, *arguments)
    found: dict[str, list[Fate]] = {}
    for node in capture.jaxpr.graph.nodes:
        found.setdefault(node.op, []).append(capture.fate(node))
    return capture, found


def test_what_the_import_takes_away_never_meets_a_pass():
    _, found = fates_of(lambda x: jnp.sum(((x * 1.0).T.T + 0) * 0.25), X)
    gone = [found["mul"][0], *found["transpose"], found["add"][0]]
    assert [(fate.kind, fate.pass_name, fate.pass_number) for fate in gone] == [("eliminated", "import", 0)] * 4
    assert repr(gone[0]) == "eliminated by import (pass 0): x × 1.0 → x"
    assert gone[0].before == "%1 = stablehlo.multiply %arg0, %0 : tensor<13x17xf32>"
    assert "parameter(0)" in gone[0].after
    assert found["mul"][1].kind == "fused"


def test_a_constant_array_that_the_import_folded_is_no_line_of_another_constant():
    x = jnp.ones((3, 4))  # the import folds small ones
    _, found = fates_of(lambda x: x * jnp.full(x.shape, 2.0) + jnp.sin(x) * jnp.full(x.shape, 5.0), x)
    assert {fate.kind for fate in found["broadcast_in_dim"]} <= {"folded", "fused"}
    assert {fate.after for fate in found["broadcast_in_dim"]} == {""}


def test_each_of_several_runs_of_a_pass_is_named_for_what_it_took_away():
    capture, found = fates_of(lambda x: jnp.where(True, x + 2 - 2, 0) * 8 / 8, X)
    if "0.125" in capture.hlo.text:
        pytest.skip("this XLA keeps `x + 2 - 2` and `x * 8 / 8`")
    gone = {op: found[op][0] for op in ("add", "sub", "select_n", "mul", "div")}
    assert {fate.kind for fate in gone.values()} == {"eliminated"}
    assert {fate.pass_name for fate in gone.values()} == {"algsimp"}
    assert gone["select_n"].pass_number < gone["add"].pass_number < gone["sub"].pass_number
    for fate in gone.values():
        step = capture.passes[fate.pass_number - 1]
        assert step.name == "algsimp"
        assert fate.before in step.before
        assert fate.before not in step.after
        assert not fate.after or fate.after in step.after
    assert gone["sub"].why.endswith("+ 0 → x.1")


def test_the_equal_one_that_stands_for_another_is_named():
    _, found = fates_of(lambda x: jnp.tanh(x) * jnp.tanh(x), X)
    assert found["tanh"][0].kind == "fused"
    assert repr(found["tanh"][1]) == "merged by cse (pass 1): the same as b, which stands for both"


def test_what_is_computed_while_compiling_is_folded_by_the_pass_that_did_it():
    values = np.linspace(1, 2, X.size, dtype=np.float32).reshape(X.shape)
    capture, found = fates_of(
        lambda x: lax.scan(lambda c, _: (c + jnp.log(jnp.asarray(values)), None), x, None, 3)[0], X
    )
    killer = "constant_folding" if " log(" in capture.passes[0].before else "import"  # the newest XLA's import does it
    assert [(fate.kind, fate.pass_name) for fate in found["log"]] == [("folded", killer)]


def test_what_another_operation_does_now_is_rewritten_and_its_kernel_has_that_one():
    capture, found = fates_of(lambda x: 1 / jnp.sqrt(x), X)
    alive = [*found["sqrt"], *found["div"]]
    assert {(fate.kind, fate.pass_name) for fate in alive} == {("rewritten", "algsimp")}
    rewritten = alive[0]
    assert "rsqrt(" in rewritten.after
    (kernel,) = rewritten.kernels
    inside = {node.op for node in capture.hlo.graph.nodes if node.group and node.group.caller == kernel.index}
    assert "rsqrt" in {kernel.op, *inside}


def test_an_operation_that_is_there_by_another_name_is_rewritten_not_fused():
    _, found = fates_of(lambda x: jnp.sin(x) / 4 - 3, X)
    assert repr(found["div"][0]).endswith("by algsimp (pass 1): sin.1 ÷ 4 → sin.1 × 0.25")
    assert {found[op][0].kind for op in ("div", "sub")} == {"rewritten"}
    assert found["div"][0].kernels == found["sin"][0].kernels


def test_of_several_that_the_import_made_one_of_the_last_is_left():
    _, found = fates_of(lambda x: jnp.sin(x.reshape(-1).reshape(17, 13).reshape(1, 17, 13)).sum(0), X)
    assert [fate.pass_name for fate in found["reshape"][:2]] == ["import"] * 2


def test_a_function_that_is_called_twice_is_alive_for_both_calls():
    inner = jax.jit(lambda x: jnp.sin(x) @ x.T)
    _, found = fates_of(lambda x: inner(x) + inner(x + 1), X)
    assert not {fate.kind for fate in found["sin"] + found["dot_general"]} & {"eliminated", "unknown"}


def test_a_name_that_an_instruction_took_over_is_no_sign_of_life():
    """XLA gives what replaces an instruction that one's metadata: a select bears the names of two negations."""
    _, found = fates_of(lambda x: lax.select(~~(x > 0), x, x * 3), X)
    assert [(fate.kind, fate.pass_name) for fate in found["not"]] == [("eliminated", "import")] * 2
    assert found["select_n"][0].kind == "fused"


def test_a_result_that_a_caller_does_not_take_is_left_out_by_the_lowering():
    inner = jax.jit(lambda x: (jnp.ceil(x), jnp.sin(x)))
    _, found = fates_of(lambda x: inner(x)[1], X)
    (fate,) = found["ceil"]
    assert (fate.kind, fate.pass_name, fate.pass_number) == ("eliminated", "lowering", None)


def test_what_a_pass_did_to_each_line_is_a_table():
    def f(x):
        y = x + 2 - 2
        return jnp.tanh(y) * jnp.tanh(y)

    capture = ex.explore(f, X)
    table = capture.fate_table(by="cse")
    assert [(row.op, row.kind, row.line - capture.line) for row in table] == [("tanh", "merged", 2)]
    assert "the same as" in repr(table)
    number = capture.fate_table()[1].pass_number
    assert {row.line - capture.line for row in capture.fate_table(by=number)} == {1}
    frame = capture.fate_table().to_frame()
    assert frame["op"].tolist() == ["add", "sub", "tanh", "tanh", "mul"]
    assert len(capture.fate_table()) == sum(capture.fates().values())


def _shared_layers():
    layer = jax.jit(lambda x, w: jnp.tanh(x @ w) + x)

    def loss(ws, x):
        for i in range(12):
            x = layer(x, ws[i % 3])
        return (x * x).sum()

    return jax.value_and_grad(loss), [jnp.full((16, 16), 0.1 + k) for k in range(3)], jnp.ones((16, 16))


def _linear_solve():
    matrix = jnp.eye(6) * 2 + 0.1

    def solved(b):
        conjugate = jax.scipy.sparse.linalg.cg
        return lax.custom_linear_solve(lambda v: matrix @ v, b, lambda mv, b: conjugate(mv, b)[0], symmetric=True).sum()

    return jax.value_and_grad(solved), jnp.ones(6)


@pytest.mark.parametrize("program", [_shared_layers, _linear_solve])
def test_what_an_instruction_does_that_is_of_it_beyond_doubt_is_never_gone(program):
    """Only by the names of the operations in the optimised module: a product that runs is not eliminated."""
    function, *arguments = program()
    capture, _ = fates_of(function, *arguments)
    links = capture.links
    for node in (node for node in capture.jaxpr.graph.nodes if node.op in ("dot_general", "tanh", "add_any", "mul")):
        own = {"dot_general": "dot", "add_any": "add", "mul": "multiply"}.get(node.op, node.op)
        runs = [at for at in links.linked(node, "hlo") if at.op == own and links.grade(at, "jaxpr") == "exact"]
        assert not runs or capture.fate(node).kind not in ("eliminated", "folded"), node


def test_a_convolution_that_is_done_in_another_layout_is_not_gone():
    def loss(x, w):
        axes = ("NHWC", "HWIO", "NHWC")
        return (lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=axes) ** 2).sum()

    _, found = fates_of(jax.grad(loss, (0, 1)), jnp.ones((2, 8, 8, 3)), jnp.ones((3, 3, 3, 4)))
    convolutions = found["conv_general_dilated"]
    assert {fate.kind for fate in convolutions} <= {"kept", "rewritten"}
    # Newer XLAs fuse one with the copy that it needs.
    assert {kernel.op for fate in convolutions for kernel in fate.kernels} <= {"convolution", "fusion"}
    assert len({fate.kernels for fate in convolutions}) == 3  # each its own, whatever XLA called it


def test_what_is_left_under_the_name_of_another_is_not_that_one():
    """Of `abs(abs(x))` XLA keeps the inner one, and gives it the outer one's name."""
    _, found = fates_of(lambda x: jnp.cos(jnp.abs(jnp.abs(jnp.sin(x)))), X)
    assert [(fate.kind, fate.pass_name) for fate in found["abs"]] == [("fused", ""), ("eliminated", "algsimp")]


@pytest.mark.parametrize(
    ("square", "ends"),
    [(lambda y: y * y, "eliminated"), (lambda y: y**2, "eliminated"), (lambda y: y * jnp.cos(y), "fused")],
)
def test_the_absolute_of_a_square_is_the_square_and_that_of_another_product_stays(square, ends):
    _, found = fates_of(lambda x: jnp.exp(jnp.abs(square(jnp.sin(x)))), X)
    assert [fate.kind for fate in found["abs"]] == [ends]


def test_what_gives_its_operand_is_gone_though_another_bears_its_name():
    """`(y · c) / 3` gets the metadata of the reversals that stood around it."""
    turned = jax.grad(lambda x: jnp.sum(jnp.cos(lax.rev(lax.rev(jnp.sin(x), (0, 1)), (1, 0)) / 3)))
    _, found = fates_of(turned, X)
    assert [(fate.kind, fate.pass_name) for fate in found["rev"]] == [("eliminated", "algsimp")] * 4


def test_the_square_of_a_constant_is_folded_though_the_product_that_reads_it_bears_its_name():
    capture, found = fates_of(lambda x: jnp.sin(x) * lax.square(jnp.float32(3)), X)
    assert [(fate.kind, fate.pass_name) for fate in found["square"]] == [("folded", "import")]
    assert "constant(9)" in capture.passes[0].before


def test_two_versions_of_a_function_are_each_alive():
    """JAX lowers a function twice if two calls take other results of it, as a differentiated one's do."""
    inner = jax.jit(lambda x: jnp.cos(jnp.maximum(jnp.sin(x), jnp.sin(x))))
    capture, found = fates_of(jax.grad(lambda x: jnp.sum(inner(inner(x)))), X)
    assert not {fate.pass_name for op in ("sin", "cos", "max", "eq") for fate in found[op]} & {"import"}
    assert " maximum(" in capture.passes[0].before


def test_a_call_whose_result_nobody_takes_is_left_out_by_the_lowering():
    inner = jax.jit(lambda x: jnp.cos(jnp.sin(x)))
    _, found = fates_of(lambda x: jax.jit(lambda y: (inner(y), inner(inner(y))))(x)[0], X)
    assert [(fate.kind, fate.pass_name) for fate in found["sin"]][1:] == [("eliminated", "lowering")] * 2


def test_a_defect_is_seen_and_costs_nobody_the_fates(monkeypatch):
    capture = ex.explore(lambda x: jnp.tanh(x) * 2, X)
    assert capture.passes

    def broken(*_):
        raise TypeError("a defect")

    monkeypatch.setattr("explorer.analysis.origins.follow", broken)
    with pytest.warns(RuntimeWarning, match="could not be followed .TypeError: a defect"):
        fates = [capture.fate(node) for node in capture.jaxpr.graph.nodes if node.op == "tanh"]
    assert [(fate.kind, fate.inferred) for fate in fates] == [("fused", True)]


def test_a_loaded_capture_tells_the_same(tmp_path):
    capture, _ = fates_of(lambda x: jnp.where(True, x + 2 - 2, 0) * 8 / 8, X)
    capture.save(tmp_path / "f.capture")
    loaded = ex.load(tmp_path / "f.capture")
    for stage in ("jaxpr", "stablehlo"):
        mine, theirs = ([c.fate(n) for n in c.stage(stage).graph.nodes] for c in (capture, loaded))
        assert list(map(repr, mine)) == list(map(repr, theirs))
        assert [(fate.before, fate.after) for fate in mine] == [(fate.before, fate.after) for fate in theirs]


@pytest.mark.slow
def test_every_end_is_the_pass_that_the_dumps_say_and_nothing_is_fused_that_no_kernel_has():
    """A sample of the corpus; `python -m tests.corpus_fates` has all of it."""
    total = sum(scores(range(0, 320, 9)), Score())
    assert not total.wrong, table(total, 36)
    assert total.named >= 0.97 * total.ended


@pytest.mark.parametrize("program", [lambda x: jnp.cumsum(x * 2) + jnp.cumsum(x), lambda x: lax.cumsum(x) * 2])
def test_a_primitive_that_jax_lowers_through_a_function_of_its_own_is_not_gone(program):
    _, found = fates_of(program, jnp.ones(64))
    assert not {fate.kind for fate in found["cumsum"]} & {"eliminated", "folded"}


def _diamonds(x, count):
    for _ in range(count):
        x = x * 2 + x * 3
    return x


def test_diamonds_that_are_computed_twice_are_merged_in_a_time_that_does_not_double_with_each():
    """Every path through forty diamonds would be 2 to the 40."""
    _, found = fates_of(lambda x: _diamonds(x, 40) + _diamonds(x, 40), X)
    assert [fate.kind for fate in found["add"]] == ["fused"] * 40 + ["merged"] * 40 + ["fused"]


def test_transposes_that_kernels_do_are_there_and_not_eliminated():
    """The transposition is done by copies of the results, which are in another layout; newer XLAs keep one as it is."""
    capture, found = fates_of(lambda a: (a.T + 1, jnp.swapaxes(a, 0, 1)), jnp.ones((8, 16)))
    assert {fate.kind for fate in found["transpose"]} <= {"moved", "kept"}
    kernel = capture.hlo.graph.kernel
    copies = {node for node in capture.hlo.graph.nodes if "copy" in node.name and kernel[node.index] == node.index}
    assert {kernel for fate in found["transpose"] for kernel in fate.kernels} >= copies
    assert all(fate.kernels for fate in found["transpose"])


def test_an_operation_that_a_pass_makes_several_of_is_split_and_they_are_its_kernels():
    capture, found = fates_of(lambda a: jnp.cumsum(a) * 2 + 1, jnp.ones(4096))
    (fate,) = found["cumsum"]
    if fate.kind == "kept":
        pytest.skip("this XLA leaves the window whole")
    assert (fate.kind, fate.pass_name) == ("split", "reduce-window-rewriter")
    windows = {node for node in capture.hlo.graph.nodes if "reduce-window" in node.name and node.op == "fusion"}
    assert set(fate.kernels) == windows
    assert len(windows) > 1


def test_what_a_product_takes_in_is_folded_into_it():
    _, found = fates_of(lambda a, b: (a @ b).T, jnp.ones((16, 8)), jnp.ones((8, 32)))
    (transpose,), (product,) = found["transpose"], found["dot_general"]
    if transpose.kind == "moved":
        pytest.skip("this XLA leaves the transpose to a copy")
    assert transpose.kind == "folded into"
    assert transpose.kernels == product.kernels


def test_a_constant_that_another_takes_in_is_no_formula_of_equals():
    """`(x + 2) + −2` is `x + 0`, and `x + 2` is not `x`."""
    _, found = fates_of(lambda x: jnp.sin(x + 2 - 2), X)
    assert not any(fate.why.endswith("+ 2 → x.1") for fate in found["add"])


def test_of_a_result_it_is_not_said_that_nothing_needs_it():
    _, found = fates_of(lambda a: jnp.array(a, copy=True), X)
    (fate,) = [fate for fates in found.values() for fate in fates if fate.kind not in ("", "inlined")]
    assert "nothing" not in fate.why


def test_a_sum_over_one_that_a_negation_takes_the_place_of_is_folded_into_it():
    _, found = fates_of(lambda x: jnp.sum(jnp.sum(-jnp.sin(x), 1)[:, None], 1) * 1.5, jnp.ones((64, 64, 3)))
    assert found["reduce_sum"][0].kernels
    assert found["reduce_sum"][1].kind in ("folded into", "eliminated")


def test_a_sum_over_one_under_a_root_is_eliminated_and_not_the_root():
    _, found = fates_of(lambda x: 1 / jnp.sqrt(jnp.sum(jnp.sin(x)[:, None], 1)), jnp.ones(64))
    assert [fate.kind for fate in found["reduce_sum"]] == ["eliminated"]


def test_what_jax_makes_nothing_of_is_so_beside_an_argument_that_is_a_key():
    """StableHLO constrains a key's sharding by an operation that no equation asks for."""
    _, found = fates_of(lambda key, x: (key, x**1 * 2), jax.random.key(0), X)
    assert repr(found["integer_pow"][0]) == "eliminated by lowering: JAX lowered it to no operation"


def test_a_pass_that_puts_lines_in_another_order_makes_none_of_them_another():
    """Newer XLAs put the loop of this program before what does not need it."""
    strands = program(9)
    _, found = fates_of(strands, *strands.arguments)
    assert [fate.kind for fate in found["atan2"]] == ["fused", "merged", "merged"]


def test_a_formula_of_many_operands_names_the_first():
    def whole(x):
        return lax.concatenate([x[i : i + 1] for i in range(30)], 0)

    _, found = fates_of(whole, jnp.ones((30, 4)))
    (fate,) = found["concatenate"]
    assert fate.kind == "eliminated"
    assert fate.why.count("slice(") == 8
    assert ", …) → " in fate.why
