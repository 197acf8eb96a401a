"""Why a call compiled and what to write, to the letter, of settings, places and arrays: each worked out by hand."""

import pytest

from explorer.analysis.recompiles.reasons import explain
from explorer.model.events.key import Function, Key
from tests.support.calls import LOWERED, STEP, TRACED, leaf, number


def reason(*calls, happened=TRACED):
    *earlier, last = calls
    return explain(last, earlier, happened)


# Settings, options, places -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("jax_enable_x64", "True", "True"),
        ("jax_numpy_rank_promotion", "None", "None"),
        ("jax_default_matmul_precision", "highest", '"highest"'),
        ("jax_default_matmul_precision", "'highest'", "'highest'"),
        ("jax_level", "-1.5", "-1.5"),
        ("jax_level", "12", "12"),
        ("jax_level", "1.", '"1."'),
        ("jax_default_device", "cpu:1", 'jax.devices("cpu")[1]'),
    ],
)
def test_a_setting_of_jax_is_set_once(name, value, fix):
    given = reason(*(Key(STEP, (leaf(),), context=((name, text),)) for text in ("before", value)))
    assert (given.kind, given.text) == ("context", f"the setting `{name}` was before and is now {value}")
    update = f'jax.config.update("{name}", {fix})'
    assert given.fix == f"keep one value in all calls: {update} once, at the start, if that is right for all results"


def test_other_settings_are_set_once_too():
    given = reason(Key(STEP, (leaf(),)), Key(STEP, (leaf(),), context=(("numerics", "7"),)))
    assert given.text == "the setting `numerics` was not set and is now 7"
    assert given.fix == "set `numerics` once, at the start, so that all calls have the same"
    mesh = reason(Key(STEP, (leaf(),)), Key(STEP, (leaf(),), context=(("abstract_mesh", "a=2"), ("mesh", "data=2"))))
    assert (mesh.leaf, mesh.text) == ("mesh", "the setting `mesh` was not set and is now data=2")
    assert mesh.fix == "jax.set_mesh(mesh)  # once, at the start, or one `with` around all calls"


@pytest.mark.parametrize(
    ("old", "new", "text", "names"),
    [
        ((), ("x",), "`x` was kept and is now donated", '"x",'),
        (("x",), (), "`x` was donated and is now kept", '"x",'),
        (("x",), ("y['a']", "y['b']"), "`y['a']` was kept and is now donated", '"y", "x",'),
    ],
)
def test_donation_is_said_once(old, new, text, names):
    given = reason(*(Key(STEP, (leaf(),), donated=donated) for donated in (old, new)), happened=LOWERED)
    assert given.text == f"{text}: another jax.jit(…) of the same function"
    assert given.fix == f"step = jax.jit(step, donate_argnames=({names}))  # once, and call this one everywhere"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("in_shardings", "sharding"), ("out_shardings", "sharding"), ("device", "device"), ("backend", "device"),
     ("in_layouts", "layout"), ("out_layouts", "layout"), ("inline", "options"), ("xla_flag", "options")],
)  # fmt: skip
def test_an_option_of_the_jit_is_one_in_all_calls(name, kind):
    where = "options" if name == "xla_flag" else "wrapping"
    given = reason(*(Key(STEP, (leaf(),), **{where: ((name, text),)}) for text in "ab"), happened=LOWERED)
    assert (given.kind, given.text) == (kind, f"the jax.jit option `{name}` was a and is now b")
    assert given.fix == f"make one jax.jit(step, …) and call that everywhere, with one {name}"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ({}, {"devices": ("cpu:1",)}, "the device of `x` was cpu:0 and is now cpu:1"),
        ({}, {"committed": True}, "`x` was uncommitted and is now committed to cpu:0"),
        ({"committed": True}, {"committed": None, "given": "numpy", "devices": ()},
         "`x` was committed to cpu:0 and is now uncommitted (numpy)"),
        ({}, {"layout": "{0,1}"}, "the layout of `x` was default and is now {0,1}"),
        ({"layout": "{0,1}"}, {}, "the layout of `x` was {0,1} and is now default"),
        ({}, {"sharding": "S", "spread": ("P('d')", "d=2", "")},
         "the sharding of `x` was cpu:0 and is now P('d') over d=2"),
    ],
)  # fmt: skip
def test_where_an_array_lies(old, new, text):
    assert reason(*(Key(STEP, (leaf(**more),)) for more in (old, new)), happened=LOWERED).text == text


# What else changed ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ([leaf("n", ())], [number("n", "float", "float32")],
         "`n` was float32 and is now float32, weak: it is now a Python float, whose type is weak"),
        ([number("n", "int", "int32")], [leaf("n", (), "int32")],
         "`n` was int32, weak and is now int32: it was a Python int, whose type is weak"),
        ([leaf("n", ())], [leaf("n", (), weak=True)], "`n` was float32 and is now float32, weak"),
        ([leaf("x", (3,))], [leaf("x", ())], "`x` had shape (3,) and now has ()"),
        ([leaf("a"), leaf("b")], [leaf("a", (9,)), leaf("b", (9,))],
         "`a.shape[0]` was 8 and is now 9, and 1 more leaf likewise"),
        ([leaf(p) for p in "abc"], [leaf(p, (9,)) for p in "abc"],
         "`a.shape[0]` was 8 and is now 9, and 2 more leaves likewise"),
        ([leaf("a"), leaf("b")], [leaf("a", (9,)), leaf("b", (7,))],
         "`a.shape[0]` was 8 and is now 9; `b.shape[0]` changed too"),
        ([leaf("a", (8, 2)), *(leaf(p) for p in "bcde")], [leaf("a", (8,)), *(leaf(p, (9,)) for p in "bcde")],
         "`a` had shape (8, 2) and now has (8,); "
         "`b.shape[0]`, `c.shape[0]`, `d.shape[0]` and `e.shape[0]` changed too"),
        ([leaf("a", (8, 2)), *(leaf(p) for p in "bcdef")], [leaf("a", (8,)), *(leaf(p, (9,)) for p in "bcdef")],
         "`a` had shape (8, 2) and now has (8,); `b.shape[0]`, `c.shape[0]`, `d.shape[0]` and 2 more changed too"),
        ([leaf("a", (8, 2)), *(leaf(p) for p in "bcd")],
         [leaf("a", (8,)), *(leaf(p, (9, ), "int8") for p in "bcd")],
         "`a` had shape (8, 2) and now has (8,); `b.shape[0]`, `c.shape[0]`, `d.shape[0]` and 3 more changed too"),
    ],
)  # fmt: skip
def test_arrays_that_changed_with_one_are_named_or_counted(old, new, text):
    assert reason(Key(STEP, tuple(old)), Key(STEP, tuple(new))).text == text


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((8, 9), ""),
        ((8, 9, 10), ": its 3rd size (8, 9, 10)"),
        ((8, 9, 10, 7), ": its 4th size (8, 9, 10, 7)"),
        ((8, 9, 10, 7, 6), ": its 5th size (8, 9, 10, 7, …)"),
        ((8, 9, 10, 7, 6, 5, 4, 3), ": its 8th size (8, 9, 10, 7, …)"),
        ((8, 9, 10, 7, 6, 5, 4, 3, 2), ": one of at least 9 sizes (8, 9, 10, 7, …)"),
    ],
)
def test_sizes_so_far_are_listed_and_counted_while_that_is_sure(sizes, text):
    calls = [Key(STEP, (leaf(shape=(size,)),)) for size in sizes]
    nearest = sizes[-2]  # of equals the latest
    assert reason(*calls).text == f"`x.shape[0]` was {nearest} and is now {sizes[-1]}{text}"


def test_a_function_of_another_kind_is_another_function():
    """A hot function's copy and a jitted function of one name share no cache."""
    hot = Function("step", "train.py", 3, ("auto_compile",))
    assert reason(Key(STEP, (leaf(),)), Key(hot, (leaf(shape=(9,)),))).kind == "first"
    assert reason(Key(Function("a"), (leaf(),)), Key(hot, (leaf(),))).text == (
        "the first call of `step` that hot paths compile"
    )
