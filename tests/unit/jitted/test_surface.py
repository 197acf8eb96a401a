"""What code around jax.jit asks of its result: each beside jax.jit's own answer."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.jitted import jit

X = jnp.arange(6.0).reshape(2, 3)


def scaled(x: jax.Array, by: float = 2.0) -> jax.Array:
    """Scale."""
    return x * by


scaled.version = 3


class Scale:
    """By a factor."""

    def __init__(self):
        self.by = 3.0

    def __call__(self, x):
        return x * self.by


NAMES = ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__")


@pytest.mark.parametrize(
    "function", [scaled, lambda x: x, jnp.sin, Scale().__call__], ids=["def", "lambda", "jnp", "method"]
)
def test_names_are_those_of_the_function(function):
    ours, theirs = jit(function), jax.jit(function)
    # Without documentation, jax.jit says "".
    assert [getattr(ours, name) or "" for name in NAMES] == [getattr(theirs, name) or "" for name in NAMES]
    assert ours.__wrapped__ == function


@pytest.mark.parametrize("function", [partial(scaled, by=3.0), partial(partial(scaled), by=3.0)])
def test_a_partial_has_the_name_of_what_it_is_of_also_in_the_module(function):
    ours, theirs = jit(function), jax.jit(function)
    assert (ours.__name__, ours.__qualname__) == (theirs.__name__, scaled.__qualname__) == ("scaled", "scaled")
    assert "module @jit_scaled" in ours.lower(X).as_text()
    np.testing.assert_array_equal(ours(X), 3 * X)


def test_a_partial_of_an_inner_function_says_where_that_is():
    def inner(x, by):
        return x * by

    assert jit(partial(inner, by=2.0)).__qualname__ == inner.__qualname__ != "inner"


def test_a_partial_that_was_named_keeps_its_name():
    named = partial(scaled, by=3.0)
    named.__name__ = "tripled"
    assert jit(named).__name__ == jax.jit(named).__name__ == "tripled"


def test_attributes_of_the_function_are_read_where_they_are():
    assert jit(scaled).version == jax.jit(scaled).version == 3
    model = Scale()
    step = jit(model)
    model.by = 5.0
    assert step.by == 5.0
    assert not hasattr(step, "nothing")


def test_lower_is_jax_jits():
    ours, theirs = jit(scaled).lower(X, by=1.0), jax.jit(scaled).lower(X, by=1.0)
    assert isinstance(ours, jax.stages.Lowered)
    assert ours.as_text() == theirs.as_text()
    assert (ours.in_tree, ours.out_info) == (theirs.in_tree, theirs.out_info)
    np.testing.assert_array_equal(ours.compile()(X, by=4.0), 4 * X)
    lowered = jit(scaled).lower(jax.ShapeDtypeStruct((2, 3), jnp.float32))
    assert lowered.compile(compiler_options={"xla_embed_ir_in_executable": True})(X).shape == (2, 3)


def test_lower_of_a_function_with_state_gives_what_reads_and_writes_it():
    state = {"n": jnp.zeros(())}

    @jit(inputs=state, outputs=state)
    def count(x):
        state["n"] += 1
        return x + state["n"]

    lowered = count.lower(X)
    assert "func.func" in lowered.as_text()
    compiled = lowered.compile()
    assert float(state["n"]) == 0
    np.testing.assert_array_equal(compiled(X), X + 1)
    state["n"] = jnp.float32(10)
    np.testing.assert_array_equal(compiled(X), X + 11)
    assert float(state["n"]) == 11
    assert compiled.cost_analysis() is not None
    state["n"] = jnp.zeros(2)
    with pytest.raises(TypeError):
        compiled(X)


def test_eval_shape_runs_nothing_and_leaves_the_state():
    assert jit(scaled).eval_shape(X) == jax.jit(scaled).eval_shape(X)
    state = [jnp.zeros(3)]

    @jit(inputs=state, outputs=state)
    def add(x):
        state[0] = state[0] + x[0]
        return state[0] > 0

    before = state[0]
    assert add.eval_shape(X) == jax.ShapeDtypeStruct((3,), jnp.bool_)
    assert state[0] is before


def test_clear_cache_traces_anew():
    runs = []
    step = jit(lambda x: runs.append(1) or x + 1)
    step(X), step(X)
    assert (len(runs), step._cache_size()) == (1, 1)
    step.clear_cache()
    step(X)
    assert len(runs) == 2


def test_shardings_are_jax_jits():
    mesh = jax.make_mesh((1,), ("d",))
    rows = jax.NamedSharding(mesh, jax.P("d"))
    whole = jax.NamedSharding(mesh, jax.P())
    for given in ({"in_shardings": rows, "out_shardings": whole}, {"in_shardings": (rows,), "out_shardings": whole}):
        out = jit(lambda x: x * 2, **given)(np.asarray(X))
        assert out.sharding == whole
        np.testing.assert_array_equal(out, 2 * X)


@pytest.mark.parametrize("is_one", [True, False], ids=["one", "one-for-each"])
def test_shardings_of_a_function_with_state_are_of_its_arguments_and_result(is_one):
    mesh = jax.make_mesh((1,), ("d",))
    rows, whole = jax.NamedSharding(mesh, jax.P("d")), jax.NamedSharding(mesh, jax.P())
    state = {"n": jnp.zeros(3)}

    def add(x, y):
        state["n"] = state["n"] + y
        return x + state["n"]

    given = whole if is_one else (rows, whole)
    step = jit(add, inputs=state, outputs=state, in_shardings=given, out_shardings=rows)
    assert step.lower(X, X[0]).compile().input_shardings[0][1:] == ((whole, whole) if is_one else given)
    out = step(np.asarray(X), np.ones(3, "float32"))
    assert out.sharding == rows
    np.testing.assert_array_equal(out, X + 1)
    np.testing.assert_array_equal(state["n"], np.ones(3))
    with pytest.raises(ex.errors.OptionError, match="one sharding for all arguments"):
        jit(lambda *args: args, inputs=state, in_shardings=rows)


def test_options_of_jax_jit_reach_it():
    kept = jit(lambda x, y: x, keep_unused=True).lower(X, X)
    assert kept.as_text().count("%arg") > jit(lambda x, y: x).lower(X, X).as_text().count("%arg")
    for inline in (True, False):
        ours, theirs = (wrap(lambda x: x + 1, inline=inline) for wrap in (jit, jax.jit))
        assert ("jit" in str(jax.make_jaxpr(ours)(X))) == ("jit" in str(jax.make_jaxpr(theirs)(X)))
    with pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option"):
        jit(lambda x: x + 1, compiler_options={"no_such": 1})(X)


def test_a_device_is_taken_as_jax_takes_it():
    device = jax.devices()[0]
    with pytest.warns(DeprecationWarning, match="device"):
        assert jit(lambda x: x + 1, device=device)(X).devices() == {device}
    with pytest.warns(DeprecationWarning, match="device"):
        assert jit(lambda x: x + 2, backend="cpu")(X).devices() == {device}


def test_the_same_options_find_what_was_compiled_and_others_don_t():
    runs = []

    def f(x):
        runs.append(1)
        return x

    options = {"xla_embed_ir_in_executable": True}
    for _ in range(2):
        jit(f, compiler_options=dict(options), keep_unused=True)(X)
    assert len(runs) == 1
    assert jit(f, compiler_options=options).specializations == ()
    assert repr(jit(f, keep_unused=True)) == "jit(f, keep_unused=True)"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"static_argnums": 2}, "static_argnums has 2; the positions are 0 (`x`), 1 (`by`) in scaled(x"),
        ({"static_argnums": -3}, "static_argnums has -3"),
        ({"donate_argnums": (0, 5)}, "donate_argnums has 5"),
        ({"static_argnames": "bye"}, "static_argnames has 'bye'; the names are x, by"),
        ({"donate_argnames": ("x", "z")}, "donate_argnames has 'z'"),
        ({"static_argnames": "by", "donate_argnames": "by"}, "'by' is in static_argnames and in donate_argnames"),
    ],
)
@pytest.mark.parametrize("state", [None, [jnp.zeros(2)]], ids=["plain", "state"])
def test_a_static_or_donated_argument_that_is_none_is_refused_when_it_is_jitted(options, says, state):
    with pytest.raises(ValueError, match="arg"):
        jax.jit(scaled, **options)
    with pytest.raises(ex.errors.OptionError) as caught:
        jit(scaled, inputs=state, **options)
    assert says in str(caught.value)
    assert "called at  test_surface.py" in str(caught.value)


def test_what_can_not_be_jitted_is_refused_with_the_cure():
    def generator(x):
        yield x

    for function, says in (
        (3, "it got int"),
        (generator, "generator function generator"),
        (staticmethod(scaled), "@static"),
    ):
        with pytest.raises(ex.errors.NotCallableError, match=says):
            jit(function)


def test_an_error_of_a_trace_is_also_of_jaxs_class():
    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        jit(lambda x: x if x > 0 else -x)(1.0)
    assert isinstance(caught.value, ex.errors.TracedValueError)
    assert type(caught.value).__name__ == "TracedValueError"
    assert (
        "`if x > 0`" in str(caught.value) or "`x if x > 0 else -x`" in str(caught.value) or "x > 0" in str(caught.value)
    )


def test_export_takes_it():
    exported = jax.export.export(jit(scaled))(jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 3"), jnp.float32))
    np.testing.assert_array_equal(exported.call(X), 2 * X)


def test_donation_by_name_wants_a_signature():
    class Unsigned:
        @property
        def __signature__(self):
            raise TypeError

        def __call__(self, *args):
            return args[0] * 2

    with pytest.raises(ex.errors.OptionError, match="Unsigned has no signature"):
        jit(Unsigned(), donate_argnames="x")
    given = jnp.ones(3)
    np.testing.assert_array_equal(jit(Unsigned(), donate_argnums=0)(given), [2, 2, 2])
    assert given.is_deleted()
