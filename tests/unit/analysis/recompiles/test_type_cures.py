"""What to write where an array changes its type, its number of dimensions or its place, to the letter."""

import jax
import jax.numpy as jnp
import pytest

from explorer.analysis.recompiles.fixes import RESHAPES
from explorer.analysis.recompiles.reasons import explain
from explorer.model.events.key import Key
from tests.support.calls import LOWERED, STEP, cure, cure_of_sizes, leaf, number

# Dimensions and types ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ((1,), (), "x = jnp.reshape(x, ())  # where its shape is (1,)"),
        ((3,), (), "x = jnp.full((3,), x, jnp.float32)  # where it is a number"),
        ((1, 1), (), "x = jnp.full((1, 1), x, jnp.float32)  # where it is a number"),
        ((1, 8), (8,), "x = x[None]  # where its shape is (8,)"),
        ((8,), (2, 8), "x = jnp.pad(x[None], [(0, 1), (0, 0)])  # where its shape is (8,); mask what is added"),
        (
            (16, 8, 2), (8, 2),
            "x = jnp.pad(x[None], [(0, 15), (0, 0), (0, 0)])  # where its shape is (8, 2); mask what is added",
        ),
        (
            (17, 8), (8,),
            "`x[None]`, where its shape is (8,), would still have another size: "
            "use jax.vmap on a function of one example",
        ),
        (
            ("b", 8), (8,),
            "`x[None]`, where its shape is (8,), would still have another size: "
            "use jax.vmap on a function of one example",
        ),
        ((8,), (8, 1), "x = x[..., None]  # where its shape is (8,)"),
        ((8, 2), (8,), "give `x` one number of dimensions in all calls: 2 or 1"),
        ((9,), (8, 1), "give `x` one number of dimensions in all calls: 1 or 2"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_later", [False, True])
def test_of_two_numbers_of_dimensions_the_smaller_is_made_the_larger(old, new, fix, is_later):
    shapes = (new, old) if is_later else (old, new)
    if fix.startswith("give"):
        fix = fix.partition(": ")[0] + f": {len(shapes[0])} or {len(shapes[1])}"
    is_code = not fix.startswith(("give", "`"))
    assert cure_of_sizes(*shapes) == (f"{RESHAPES}\n{fix}" if is_code else fix)


def test_numpys_own_example_is_padded_by_numpy():
    fix = cure([leaf("x", (4, 8))], [leaf("x", (8,), given="numpy")])
    assert fix == f"{RESHAPES}\nx = np.pad(x[None], [(0, 3), (0, 0)])  # where its shape is (8,); mask what is added"


@pytest.mark.parametrize(("count", "more"), [(3, ""), (5, "\n# likewise 2 more")])
def test_several_arrays_of_another_number_of_dimensions_get_a_line_each(count, more):
    calls = [[leaf(f"x{i}", shape) for i in range(count)] for shape in ((1, 8), (8,))]
    lines = [RESHAPES, *(f"x{i} = x{i}[None]  # where its shape is (8,)" for i in range(3))]
    assert cure(*calls) == "\n".join(lines) + more


WEAK = "from the first call on: a Python {} has a weak type"


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        # Two of Python's numbers: the one that can hold both, but what was a truth stays one.
        (number("n", "int", "int32"), number("n", "float", "float32"), "n = float(n)  # before each call"),
        (number("n", "float", "float32"), number("n", "int", "int32"), "n = float(n)  # before each call"),
        (number("n", "complex", "complex64"), number("n", "float", "float32"), "n = complex(n)  # before each call"),
        (number("n", "bool", "bool"), number("n", "int", "int32"), "n = bool(n)  # before each call"),
        (number("n", "int", "int32"), number("n", "bool", "bool"), "n = int(n)  # before each call"),
        (number("n", "bool", "bool"), number("n", "float", "float32"), "n = float(n)  # before each call"),
        # A number and an array: the array's type, from the first call on if that had the number.
        (number("n", "float", "float32"), leaf("n", ()), f"n = jnp.float32(n)  # {WEAK.format('float')}"),
        (number("n", "int", "int32"), leaf("n", ()), f"n = jnp.float32(n)  # {WEAK.format('int')}"),
        (leaf("n", ()), number("n", "float", "float32"),
         "n = jnp.float32(n)  # before this call: a Python float has a weak type"),
        # Two arrays: the earlier type, but a weak one gives way.
        (leaf("n", ()), leaf("n", (), weak=True), "n = jnp.asarray(n, jnp.float32)  # before this call"),
        (leaf("n", (), weak=True), leaf("n", ()), "n = jnp.asarray(n, jnp.float32)  # from the first call on"),
        (leaf("n", (), weak=True), leaf("n", (), "int32", weak=True),
         "n = jnp.asarray(n, jnp.float32)  # before this call"),
        (leaf(dtype="float32"), leaf(dtype="float16"), "x = x.astype(jnp.float32)  # before this call"),
        (leaf(dtype="bool"), leaf(dtype="int8"), "x = x.astype(jnp.int8)  # in every call"),
        # Keys.
        (leaf("k", (), "key<fry>"), leaf("k", (), "key<rbg>"),
         'jax.config.update("jax_default_prng_impl", …)  # one kind of key: key<fry> or key<rbg>'),
        (leaf("k", (2,), "uint32"), leaf("k", (), "key<fry>"),
         "k = jax.random.key(…)  # everywhere, in place of jax.random.PRNGKey(…)"),
        (leaf("k", (), "key<fry>"), leaf("k", (2,), "uint32"),
         "k = jax.random.key(…)  # everywhere, in place of jax.random.PRNGKey(…)"),
    ],
)  # fmt: skip
def test_one_type_is_kept(old, new, fix):
    assert cure([old], [new]) == fix


def test_the_type_that_a_cure_gives_is_the_one_that_jax_would_compare():
    """Why the table above writes asarray for a weak array, and calls the type on a number."""
    weak, strong = jax.jit(lambda: 1.0)(), jnp.zeros((), jnp.float32)
    assert weak.aval != strong.aval
    assert jnp.asarray(weak, jnp.float32).aval == jnp.float32(1.0).aval == strong.aval


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        (("float32",) * 2, ("float16",) * 2,
         "hp = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), hp)  # before this call"),
        (("float32", "int32"), ("float16", "int16"),
         "hp['0'] = hp['0'].astype(jnp.float32)  # before this call\n"
         "hp['1'] = hp['1'].astype(jnp.int32)  # before this call"),
        (("float32", "float32", "int32"), ("float16", "float16", "int32"),
         "hp['0'] = hp['0'].astype(jnp.float32)  # before this call\n"
         "hp['1'] = hp['1'].astype(jnp.float32)  # before this call"),
    ],
)  # fmt: skip
def test_a_whole_argument_of_another_type_is_cast_at_once(old, new, fix):
    def leaves(types):
        return [leaf(f"hp['{at}']", (2,), dtype) for at, dtype in enumerate(types)]

    assert cure(leaves(old), leaves(new)) == fix


def test_a_tree_of_numbers_is_made_arrays_of_their_type():
    numbers = [number(f"hp['{at}']", "float", "float32") for at in range(2)]
    arrays = [leaf(f"hp['{at}']", ()) for at in range(2)]
    assert cure(numbers, arrays) == "hp = jax.tree.map(jnp.float32, hp)  # from the first call on"
    assert cure(arrays, numbers) == "hp = jax.tree.map(jnp.float32, hp)  # before this call"


# Places --------------------------------------------------------------------------------------------------------------

ONE = {"committed": True, "devices": ("gpu:0",)}
TWO = {"committed": True, "devices": ("gpu:0", "gpu:1")}
SPREAD = {**TWO, "sharding": "S", "spread": ("P('data')", "data=2", "")}
HOST = {**ONE, "sharding": "H", "spread": ("", "", "pinned_host")}
PLAIN = {"committed": False, "devices": ("gpu:0",)}
NUMPY = {"committed": None, "devices": (), "given": "numpy"}


@pytest.mark.parametrize(
    ("old", "new", "where", "when"),
    [
        (PLAIN, {**ONE, "devices": ("gpu:1",)}, 'jax.devices("gpu")[1]', "once, before the first call"),
        ({**ONE, "devices": ("gpu:1",)}, PLAIN, 'jax.devices("gpu")[1]', "once, before the first call"),
        ({**ONE, "devices": ("gpu:2",)}, ONE, 'jax.devices("gpu")[0]', "once, before the first call"),
        (PLAIN, ONE, 'jax.devices("gpu")[0]', "once, before the first call"),
        (NUMPY, {**ONE, "devices": ("tpu:3",)}, 'jax.devices("tpu")[3]', "in every call"),
        ({**ONE, "devices": ("tpu:3",)}, NUMPY, 'jax.devices("tpu")[3]', "in every call"),
        (PLAIN, {**ONE, "devices": ("odd",)}, "device", "once, before the first call"),
        (PLAIN, SPREAD, "NamedSharding(mesh, P('data'))", "once, before the first call"),
        (SPREAD, PLAIN, "NamedSharding(mesh, P('data'))", "once, before the first call"),
        (PLAIN, {**TWO, "sharding": "S"}, "sharding", "once, before the first call"),
        ({**TWO, "sharding": "S"}, PLAIN, "sharding", "once, before the first call"),
        (ONE, HOST, 'x.sharding.with_memory_kind("device")', "once, before the first call"),
    ],
)
def test_an_array_is_put_where_it_will_be(old, new, where, when):
    calls = [leaf("x", (8,), **old)], [leaf("x", (8,), **new)]
    assert cure(*calls, happened=LOWERED) == f"x = jax.device_put(x, {where})  # {when}"


@pytest.mark.parametrize(("count", "more"), [(3, ""), (5, "\n# likewise 2 more")])
def test_arguments_that_moved_together_are_moved_a_line_each(count, more):
    calls = [[leaf(f"x{i}['w']", **place) for i in range(count)] for place in (PLAIN, ONE)]
    first, *rest = [f'x{i} = jax.device_put(x{i}, jax.devices("gpu")[0])' for i in range(3)]
    remark = "  # once, before the first call"
    assert cure(*calls, happened=LOWERED) == "\n".join([first + remark, *rest]) + more


@pytest.mark.parametrize(
    ("shape", "old", "order"),
    [((8, 4), "", "(0, 1)"), ((8, 4), "{0,1}", "(1, 0)"), ((8, 4, 2), "{1,0,2}", "(2, 0, 1)")],
)
def test_a_layout_is_named_from_the_major_dimension_on(shape, old, order):
    """XLA's `{0,1}` names the minor dimension first; JAX's `Layout((1, 0))` the major one."""
    calls = [leaf("x", shape, layout=old)], [leaf("x", shape, layout="{9}")]
    fix = f"x = jax.device_put(x, Format(Layout({order}), x.sharding))  # as in the first call"
    assert cure(*calls, happened=LOWERED) == fix
    both = [[first, first._replace(path="y")] for (first,) in calls]
    assert cure(*both, happened=LOWERED) == f"{fix}; likewise those that changed with it"


def test_how_a_jit_places_its_arguments_is_to_be_one_thing():
    calls = [Key(STEP, (leaf(),), wrapping=(("in_shardings", text),)) for text in ("a", "b")]
    fix = explain(calls[1], calls[:1], LOWERED).fix
    assert fix == "make one jax.jit(step, …) and call that everywhere, with one in_shardings"
