"""Rules on how jax.jit is used: static arguments, functions made anew, methods, lists of numbers."""

import dataclasses
import functools
import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from flax import nnx

import explorer as ex
from explorer.pitfalls.lint import lint

X = jnp.ones(3)
RULES = ("unhashable-static", "rejit-in-loop", "jit-on-method", "list-of-scalars")


def found(function, *args, **kwargs):
    findings = lint(function, *args, **kwargs)
    assert not findings.faults
    return [one for one in findings if one.rule in RULES]


def only(function, *args, **kwargs):
    (one,) = found(function, *args, **kwargs)
    return one


def line_of(text):
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.rstrip().endswith(f"# {text}"))


class Config:
    size = 3


@dataclasses.dataclass(frozen=True)
class Frozen:
    size: object = 3


@dataclasses.dataclass
class Thawed:
    size: int = 3


@functools.partial(jax.jit, static_argnums=1)  # scaled
def scaled(x, sizes):
    return x * len(sizes)


@functools.partial(jax.jit, static_argnames=("config",))
def configured(x, config):
    return x


jitted_elsewhere = jax.jit(lambda x, kind: x, static_argnums=(1,))  # elsewhere


@pytest.mark.parametrize(
    ("value", "kind"), [([1, 2], "list"), ({"a": 1}, "dict"), ({1}, "set"), (np.ones(2), "array"), (Thawed(), "Thawed")]
)
def test_a_static_argument_without_a_hash_is_an_error_at_the_jit(value, kind):
    one = only(scaled, X, value)
    assert (one.rule, one.severity, one.code, one.line) == ("unhashable-static", "error", "EX021", line_of("scaled"))
    assert "`sizes` of scaled" in one.message
    assert kind in one.message


def test_what_has_no_hash_inside_of_a_static_tuple_or_dataclass_is_named():
    assert "`sizes[1]`" in only(scaled, X, (1, [2])).message
    assert "`config.size`" in only(configured, X, config=Frozen([3])).message


def test_a_static_argument_hashed_by_identity_is_a_warning():
    one = only(configured, X, config=Config())
    assert (one.severity, one.line > 0) == ("warning", True)
    # Of a class without fields a dataclass would make all objects equal.
    assert one.fix.text.startswith("__eq__ and __hash__ in class Config")


def test_the_place_is_the_parameter_where_the_jit_is_elsewhere():
    assert only(jitted_elsewhere, X, [1]).line == line_of("elsewhere")


@pytest.mark.parametrize("value", [3, "relu", None, (1, 2), Frozen(), jnp.float32, jax.nn.relu, frozenset({1})])
def test_a_static_argument_with_a_hash_by_value_is_none_of_these(value):
    assert not found(configured, X, config=value)


def test_statics_of_calls_inside_are_judged_by_their_text():
    def step(x):
        config = Config()
        x = configured(x, config=config)
        config.size = 4  # changed
        x = configured(x, config=config)
        x = configured(x, config=lambda: 3)  # lambda
        x = configured(x, config=Config())  # anew
        return configured(x, config=[1])  # list

    lines = {one.line: one for one in found(step, X)}
    assert set(lines) == {line_of(text) for text in ("changed", "lambda", "anew", "list")}
    assert lines[line_of("list")].severity == "error"
    assert all(lines[line_of(text)].severity == "warning" for text in ("changed", "lambda", "anew"))


def test_a_change_before_the_call_or_of_another_object_is_no_mutation_after_use():
    def step(x):
        config = Config()
        config.size = 4
        x = configured(x, config=config)
        config = Config()
        config.size = 5
        return configured(x, config=config)

    assert not found(step, X)


@pytest.mark.parametrize("made", ["lambda y: y * 2", "partial(jnp.add, 2)", "jax.grad(total)", "jax.vmap(jnp.sin)"])
def test_a_function_made_anew_and_jitted_in_a_loop_is_found(made, tmp_path):
    text = (
        "import jax, jax.numpy as jnp\nfrom functools import partial\ndef total(x): return x.sum()\n"
        f"def f(x):\n    for i in range(3):\n        x = jax.jit({made})(x)\n    return x\n"
    )
    one = only(loaded(text, tmp_path).f, X)
    assert (one.rule, one.line, one.column, one.code) == ("rejit-in-loop", 6, 12, "EX022")
    assert "the loop in line 5" in one.message
    assert one.evidence == "jax.jit was called 3 times here"


def loaded(text, folder):
    import importlib.util

    path = folder / f"users_{next(_numbers)}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_numbers = iter(range(1000))


class Model:
    def __init__(self):
        self.scale = 2.0

    def forward(self, x):
        return x * self.scale

    @jax.jit  # traced self
    def traced(self, x):
        return x * self.scale

    @functools.partial(jax.jit, static_argnums=0)  # static self
    def static(self, x):
        return x * self.scale


def test_a_bound_method_jitted_in_a_loop_is_found():
    model = Model()

    def f(x):
        for _ in range(2):
            x = jax.jit(model.forward)(x)  # bound
        return x

    one = only(f, X)
    assert (one.line, "bound method model.forward" in one.message) == (line_of("bound"), True)


def test_a_function_defined_and_jitted_in_what_is_called_per_step_is_found():
    def layer(x):
        @jax.jit  # per step
        def inner(y):
            return y + 1

        return inner(x)

    def f(x):
        return layer(layer(x))

    one = only(f, X)
    assert (one.line, "every call of layer" in one.message) == (line_of("per step"), True)


def test_what_is_jitted_and_called_at_once_is_a_note_where_the_function_may_be_called_once():
    def main(x):
        return jax.jit(lambda y: y * 2)(x)  # at once

    one = only(main, X)
    assert (one.severity, one.line) == ("note", line_of("at once"))


def test_one_function_jitted_again_and_again_is_none_of_these():
    double = jax.jit(lambda y: y * 2)

    def f(x):
        for _ in range(3):
            x = jax.jit(jnp.sin)(double(x))
        return x

    assert not found(f, X)


def test_what_a_watch_saw_compiled_for_another_function_object_is_found():
    def run(x):
        for _ in range(3):
            x = jax.jit(lambda y: y * 1.5)(x)  # watched
        return x

    with ex.watch() as ledger:
        run(X)
    findings = lint(lambda x: x, X, ledger=ledger).of("rejit-in-loop")
    assert [(one.line, "compiled again 2 times" in one.message) for one in findings] == [(line_of("watched"), True)]


def test_a_jitted_method_whose_self_is_no_pytree_is_an_error_at_the_decorator():
    one = only(Model().traced, X)
    assert (one.rule, one.severity, one.line) == ("jit-on-method", "error", line_of("traced self"))
    assert "Model.traced" in one.message


def test_a_jitted_method_with_a_static_self_is_a_warning_called_directly_or_inside():
    model = Model()
    for one in (only(model.static, X), only(lambda x: model.static(x) + 1, X)):
        assert (one.severity, one.line) == ("warning", line_of("static self"))
        assert "self.scale" in one.evidence


class ByValue(Model):
    def __hash__(self):
        return hash(self.scale)

    def __eq__(self, other):
        return isinstance(other, ByValue) and self.scale == other.scale


def test_a_static_self_with_a_hash_by_value_is_fine():
    assert not found(ByValue().static, X)


def test_a_list_of_numbers_is_found_at_its_parameter_with_its_length():
    def f(x, weights):  # weights
        return x * weights[0]

    one = only(f, X, list(range(100)))
    assert (one.rule, one.line) == ("list-of-scalars", line_of("weights"))
    assert "100 numbers" in one.message
    assert "jnp.asarray(weights)" in one.fix.text
    assert "`weights['a'][1]`" in only(f, X, {"a": [1.0, [float(i) for i in range(20)]]}).message
    assert "list of lists of 400 numbers" in only(f, X, [[0.0] * 20 for _ in range(20)]).message


@pytest.mark.parametrize("value", [(3, 4, 5), [jnp.ones(2)] * 50, "text" * 30, [1.0] * 10])
def test_short_lists_and_lists_of_arrays_are_fine(value):
    if isinstance(value, str):
        assert not found(functools.partial(configured, config=value), X)
    else:
        assert not found(lambda x, v: x, X, value)


def test_clean_code_of_libraries_is_left_alone():
    class Net(nnx.Module):
        def __init__(self, rngs):
            self.layer = nnx.Linear(3, 3, rngs=rngs)

        def __call__(self, x):
            return jax.nn.relu(self.layer(x))

    linear = eqx.nn.Linear(3, 3, key=jax.random.key(0))
    dense = nn.Dense(3)
    params = dense.init(jax.random.key(0), X)
    adam = optax.adam(1e-3)
    state = adam.init(params)

    def train(params, state, x):
        gradients = jax.grad(lambda p: dense.apply(p, x).sum())(params)
        updates, state = adam.update(gradients, state)
        return optax.apply_updates(params, updates), state

    for function, args in (
        (nnx.jit(lambda model, x: model(x)), (Net(nnx.Rngs(0)), X)),
        (eqx.filter_jit(lambda model, x: model(x)), (linear, X)),
        (jax.jit(linear), (X,)),
        (train, (params, state, X)),
        (jax.nn.gelu, (X,)),
        (jnp.linalg.norm, (X,)),
    ):
        assert not found(function, *args)
