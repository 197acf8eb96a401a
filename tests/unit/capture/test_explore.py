"""explore(): from a function to its stages, linked to the user's lines."""

import weakref
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import explorer as ex
from explorer.capture.readers.hlo import read_hlo
from explorer.model.stage import Stage
from tests.support.functions import loss

WEIGHTS, X = jnp.ones((3, 16, 16)), jnp.ones((4, 16))
MODEL = eqx.nn.MLP(16, 2, 4, 1, key=jax.random.key(0))


def test_the_function_runs_once_and_every_stage_is_there():
    runs = []

    def double(x):
        runs.append(1)
        return x * 2

    capture = ex.explore(double, X)
    assert repr(capture) == "Capture(double: jaxpr → stablehlo → hlo)"
    assert len(capture.jaxpr.graph) == 2
    assert len(capture.hlo.graph) > 1
    assert len(runs) == 1
    assert capture.durations.trace > 0
    assert capture.durations.compile > 0


def test_what_jax_had_already_is_no_cost_of_the_compile(tmp_path):
    function = jax.jit(lambda x: jnp.sin(x) * 3)
    first, again, other = (ex.explore(function, jnp.ones(n)) for n in (8, 8, 9))
    assert (first.durations.reused, again.durations.reused, other.durations.reused) == (
        (),
        ("trace", "lower", "compile"),
        (),
    )
    again.save(tmp_path / "again.capture")
    assert ex.load(tmp_path / "again.capture").durations == again.durations
    assert "compiled before" in again._repr_mimebundle_()["text/html"]
    assert "compiled before" not in first._repr_mimebundle_()["text/html"]
    assert ex.diff(first, again).durations == ()
    assert [value.name for value in ex.diff(first, other).durations] == ["trace", "lower", "compile"]


def test_a_source_line_leads_to_its_equation_and_to_its_instructions():
    capture = ex.explore(jax.value_and_grad(loss), WEIGHTS, X)
    tanh_line = loss.__code__.co_firstlineno + 2
    assert "tanh" in {node.op for node in capture.nodes_at(tanh_line, "jaxpr", file=loss.__code__.co_filename)}
    assert "tanh" in {node.op for node in capture.nodes_at(tanh_line, file=loss.__code__.co_filename)}
    assert "stablehlo.tanh" in {
        node.op for node in capture.nodes_at(tanh_line, "stablehlo", file=loss.__code__.co_filename)
    }
    assert 0.5 < capture.coverage("hlo") <= 1


def test_shapes_are_enough():
    assert len(ex.explore(loss, jax.ShapeDtypeStruct((3, 16, 16), "float32"), X).hlo.graph)


def test_something_that_is_no_function_is_refused_with_a_hint():
    with pytest.raises(ex.errors.NotCallableError, match=r"explore\(f, x\), not explore\(f\(x\)\)"):
        ex.explore(X)


def test_a_trace_that_fails_keeps_the_users_own_error():
    def branch(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(ex.errors.ExploreError, match=r"branch could not be explored: .* needs a value") as caught:
        ex.explore(branch, X)
    assert isinstance(caught.value.__cause__, jax.errors.TracerBoolConversionError)
    assert caught.value.capture.failure.startswith("trace failed")
    with pytest.raises(KeyError, match="it has: none"):
        caught.value.capture.stage("hlo")


def test_a_trace_that_fails_points_at_the_users_own_line():
    def branch(x):
        return x if x.sum() > 0 else -x

    line = branch.__code__.co_firstlineno + 1
    with pytest.raises(
        ex.errors.ExploreError, match=rf"test_explore.py, line {line}:   return x if x.sum\(\) > 0 else -x"
    ):
        ex.explore(branch, X)


def test_arguments_that_do_not_fit_are_refused_before_any_work():
    runs = []

    def f(x, y):
        runs.append(1)
        return x + y

    with pytest.raises(ex.errors.ArgumentsError, match=r"f\(x, y\) can't take these arguments: missing .* 'y'"):
        ex.explore(f, X)
    with pytest.raises(ex.errors.ArgumentsError, match="z"):
        ex.explore(f, X, z=X)
    assert not runs


def test_a_compile_that_fails_keeps_the_stages_before_it():
    def callback_nobody_knows(x):
        return jax.ffi.ffi_call("no_such_target", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    with pytest.raises(ex.errors.ExploreError, match="compile failed") as caught:
        ex.explore(callback_nobody_knows, X)
    capture = caught.value.capture
    assert repr(capture).startswith("Capture(callback_nobody_knows: jaxpr → stablehlo (compile failed")
    assert "ffi_call" in {node.op for node in capture.jaxpr.graph.nodes}


def test_a_query_finds_nodes_by_all_its_words_in_any_field_or_in_one():
    graph = ex.explore(loss, WEIGHTS, X).jaxpr.graph
    tanh = next(node for node in graph.nodes if node.op == "tanh")
    assert tanh in graph.where("op:tanh")
    assert graph.where("op:TANH f32[") == graph.where("op:tanh")
    assert {node.op for node in graph.where("op:tanh")} == {"tanh"}
    assert tanh in graph.where(f"line:{tanh.source[0].line}")
    assert graph.where("op:tanh type:bf16") == ()
    assert len(graph.where("")) == len(graph)


def test_a_stage_lets_go_of_what_it_was_read_from():
    class Compiled:
        text = "ENTRY %main () -> f32[] {\n  ROOT %c = f32[] constant(1)\n}\n"

    compiled = Compiled()
    held = weakref.ref(compiled)
    stage = Stage("hlo", lambda read=compiled: (read.text, read_hlo(read.text)))
    del compiled
    assert len(stage.graph) == 1
    assert held() is None
    assert stage.text.startswith("ENTRY")


def test_a_partial_has_its_functions_name():
    assert repr(ex.explore(partial(loss, WEIGHTS), X)) == "Capture(loss: jaxpr → stablehlo → hlo)"


def numbers(x):
    yield x


class Layer:
    weight = jnp.eye(16)

    def __call__(self, x):
        return x @ self.weight

    def method(self, x):
        return x @ self.weight

    @partial(jax.jit, static_argnums=0)
    def jitted(self, x):
        return x @ self.weight


@pytest.mark.parametrize(
    ("function", "args", "name"),
    [
        (jax.jit(lambda x, n: x * n, static_argnums=1), (X, 3), "<lambda>"),
        (lambda: jnp.zeros(3), (), "<lambda>"),
        (lambda x: None, (X,), "<lambda>"),
        (lambda x: 1.0, (X,), "<lambda>"),
        (Layer(), (X,), "Layer"),
        (Layer().method, (X,), "method"),
        (Layer().jitted, (X,), "jitted"),
        (
            eqx.filter_jit(lambda model, x: jax.vmap(model)(x)),
            (eqx.nn.MLP(16, 2, 4, 1, key=jax.random.key(0)), X),
            "<lambda>",
        ),
        (nnx.jit(lambda model, x: model(x)), (nnx.Linear(16, 2, rngs=nnx.Rngs(0)), X), "<lambda>"),
        (jnp.matmul, (X, X.T), "matmul"),
        (jax.vmap(jnp.sin), (X,), "sin"),
        (lambda key: jax.random.normal(key, (3,)), (jax.random.key(0),), "<lambda>"),
        (lambda x: x * float("nan"), (X,), "<lambda>"),
    ],
)
def test_any_callable_is_explored_and_shown(function, args, name):
    capture = ex.explore(function, *args)
    assert capture.function == name
    assert [stage.name for stage in capture.stages] == ["jaxpr", "stablehlo", "hlo"]
    assert "text/html" in capture._repr_mimebundle_()


XS = jnp.ones((1, 3, 3))


@pytest.mark.parametrize("wrap", [eqx.filter_jit, jax.pmap])
@pytest.mark.parametrize(("args", "kwargs"), [((XS, XS), {}), ((XS,), {"a": XS}), ((), {"a": XS, "b": XS})])
def test_an_array_that_is_passed_twice_has_both_names(wrap, args, kwargs):
    def product(b, a):
        return (a * 2) @ b

    capture = ex.explore(wrap(product), *args, **kwargs)
    doubled = next(node for node in capture.stablehlo.graph.nodes if node.op == "stablehlo.multiply").operands[0]
    while doubled.op != "parameter":
        (doubled,) = doubled.operands
    first, second = ("a", "b") if doubled.name == "%arg0" else ("b", "a")
    assert capture.signature == f"({first}: f32[1,3,3], {second}: f32[1,3,3])"


@pytest.mark.parametrize(("function", "args"), [(numbers, (X,)), (lambda x: x, ("text",)), (max, (1, 2))])
def test_what_jax_refuses_is_one_clear_error(function, args):
    with pytest.raises(
        ex.errors.ExploreError, match=r"could not be explored: (trace failed|it needs a value)"
    ) as caught:
        ex.explore(function, *args)
    assert caught.value.__cause__ is not None


def test_an_interrupt_keeps_the_stages_before_it():
    def f(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        ex.explore(f, jnp.ones(3))
    assert raised.value.capture.function == "f"
    assert raised.value.__notes__ == ["f: interrupted in trace; `sys.last_value.capture` has: no stage"]
