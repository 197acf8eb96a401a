"""Why a call compiled and what to write, to the letter, where it wasn't an array: each text worked out by hand."""

from dataclasses import replace

import pytest

from explorer.analysis.recompiles.reasons import explain
from explorer.model.events.key import Key, Static
from tests.support.calls import STEP, TRACED, leaf

ONCE = "once, before the loop: line 3 made 2 of them"
SO_FAR = "2 functions from there so far"
ANEW = f"was made again, a new function each time: {SO_FAR}"


def reason(*calls, happened=TRACED, value_counts=None):
    *earlier, last = calls
    return explain(last, earlier, happened, value_counts)


# The function --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "text", "fix"),
    [
        ({}, f"`step` was defined again at train.py, line 3: {SO_FAR}, and the caches treat each as a new function",
         f"step = jax.jit(step)  # {ONCE}; define it outside of the function that runs each time"),
        ({"file": "", "line": 0}, f"`step` was defined again: {SO_FAR}, and the caches treat each as a new function",
         "step = jax.jit(step)  # once, before the loop: its line made 2 of them; "
         "define it outside of the function that runs each time"),
        ({"file": "C:\\work\\train.py", "made": ("lambda",)},
         f"a lambda created again at train.py, line 3 is another function each time: {SO_FAR}",
         f"f = jax.jit(lambda …)  # {ONCE}"),
        ({"file": "/srv/app/train.py", "made": ("derived",)},
         f"what JAX derived from `step` at train.py, line 3, such as its gradient, is a new function: {SO_FAR}",
         "put the jax.grad(…) or jax.vmap(…) of `step` under one jax.jit, and call that"),
        ({"made": ("partial",)}, f"functools.partial(…) of `step` at train.py, line 3 {ANEW}",
         f"step_jit = jax.jit(functools.partial(step, …))  # {ONCE}"),
        ({"made": ("method",)}, f"a bound method of `step` at train.py, line 3 {ANEW}",
         f"step = jax.jit(obj.step)  # {ONCE}"),
        ({"made": ("grad",)}, f"jax.grad(…) of `step` at train.py, line 3 {ANEW}",
         f"grad_step = jax.jit(jax.grad(step))  # {ONCE}"),
        ({"made": ("jacfwd", "jacrev")}, f"jax.jacfwd(…) of `step` at train.py, line 3 {ANEW}",
         f"hessian_step = jax.jit(jax.hessian(step))  # {ONCE}"),
        ({"made": ("jacrev", "jacfwd")}, f"jax.jacrev(…) of `step` at train.py, line 3 {ANEW}",
         f"jacrev_step = jax.jit(jax.jacrev(step))  # {ONCE}"),
        ({"made": ("compile",)}, f"ex.compile(…) of `step` at train.py, line 3 {ANEW}",
         f"step_exe = ex.compile(step, …)  # {ONCE}"),
        ({"made": ("pmap",)}, f"jax.pmap(…) of `step` at train.py, line 3 {ANEW}",
         f"pmap_step = jax.pmap(step)  # {ONCE}"),
        ({"made": ("pmap",), "name": "<lambda>"}, f"jax.pmap(…) of `<lambda>` at train.py, line 3 {ANEW}",
         f"pmap_f = jax.pmap(lambda …)  # {ONCE}"),
        ({"made": ("_timed",)}, f"_timed(…) of `step` at train.py, line 3 {ANEW}",
         f"timed_step = jax.jit(_timed(step))  # {ONCE}"),
        ({"name": "Model()"}, f"a callable object at train.py, line 3 {ANEW}", f"f = jax.jit(obj)  # {ONCE}"),
        ({"file": "/tmp/ipykernel_7/1.py"},
         "`step` was defined again in a cell, line 3: a cell that is run again makes a new function",
         "define `step` in a cell of its own, and don't run that cell again unless it changed"),
        ({"file": "<stdin>", "made": ("grad",)}, f"jax.grad(…) of `step` in a cell, line 3 {ANEW}",
         f"grad_step = jax.jit(jax.grad(step))  # {ONCE}"),
        ({"made": ("auto_compile",)},
         f"`step` was defined again at train.py, line 3: {SO_FAR}, and the caches treat each as a new function",
         "define `step` once: each new definition is compiled separately"),
        ({"made": ("auto_compile", "method")}, f"a bound method of `step` at train.py, line 3 {ANEW}",
         "define `step` once: each new definition is compiled separately"),
        ({"name": "add", "eager": True},
         f"`add` was defined again at train.py, line 3: {SO_FAR}, and the caches treat each as a new function",
         "make what calls `add` once, outside of the loop, and call it inside of a jax.jit"),
    ],
)  # fmt: skip
def test_a_function_that_was_made_again(more, text, fix):
    functions = [replace(STEP, **more, identity=identity) for identity in (1, 2)]
    given = reason(*(Key(function, (leaf(),)) for function in functions))
    name = functions[0].name
    assert (given.kind, given.leaf, given.before, given.after) == ("function", "", name, f"{name}, made again")
    assert (given.text, given.fix) == (text, fix)


@pytest.mark.parametrize(("name", "called"), [("scan", "scan"), ("while", "while_loop"), ("cond", "cond")])
@pytest.mark.parametrize("path", ["jaxpr", "body_jaxpr", "branches"])
def test_a_body_that_was_made_again(name, called, path):
    function = replace(STEP, name=name, eager=True)
    calls = [Key(function, (leaf(),), statics=(Static(path, "{…}", "ClosedJaxpr", 0, token),)) for token in (1, 2)]
    given = reason(*calls)
    assert given.text == (
        f"`{name}` was given a new function to run: a lambda or function defined there is a new object each time"
    )
    assert given.fix == (
        f"define what jax.lax.{called} runs once, outside of the loop, or call it inside of a jax.jit function"
    )


@pytest.mark.parametrize(
    ("identities", "count"),
    [(range(8), "8"), (range(9), "at least 9"), ((0, *range(9)), "9"), (range(30), "at least 30")],
)
def test_of_more_functions_than_are_remembered_no_exact_count_is_given(identities, count):
    """What is remembered may begin in the midst: only more than eight that are all new say "at least"."""
    given = reason(*(Key(replace(STEP, identity=identity), (leaf(),)) for identity in identities))
    assert f": {count} functions from there so far" in given.text
    assert f"line 3 made {count} of them" in given.fix


def test_an_operation_outside_of_any_jit_belongs_into_one():
    function = replace(STEP, name="add", eager=True)
    sizes = reason(Key(function, (leaf(),)), Key(function, (leaf(shape=(9,)),)))
    assert sizes.fix == "put `add` under jax.jit with the code around it, and keep x.shape[0] the same"
    types = reason(Key(function, (leaf(),)), Key(function, (leaf(dtype="int8"),)))
    assert types.fix == "put `add` under jax.jit with the code around it"


# Static arguments ----------------------------------------------------------------------------------------------------

OUT = "leave `n` out of static_argnames: step(…, n=jnp.asarray(n))"
OUT_IF = "leave `n` out of static_argnames if no shape and no Python branch depends on it"
FILTER = (("filter_jit", "equinox"),)
PART = "`n`, which is not an array and so part of the program,"
HOT = replace(STEP, made=("auto_compile",))


def static(value, type="int", path="n", **more):
    return Static(path, value, type, token=more.pop("token", hash(value) % 1000 + 1), **more)


@pytest.mark.parametrize(
    ("values", "text", "fix"),
    [
        (["2", "3"], "was 2 and is now 3", OUT_IF),
        (["2", "3", "4"], "was 3 and is now 4: its 3rd value", OUT),
        (["2", "3", "2"], "was 3 and is now 2", OUT_IF),
    ],
)
def test_a_static_number_that_changes(values, text, fix):
    given = reason(*(Key(STEP, (leaf(),), statics=(static(value),)) for value in values))
    assert (given.kind, given.leaf, given.text, given.fix) == ("static", "n", f"the static argument `n` {text}", fix)


@pytest.mark.parametrize(
    ("kind", "twice", "often"),
    [
        ("int", OUT_IF, OUT),
        ("float", OUT, OUT),
        ("bool", OUT_IF, OUT_IF),
        ("complex", OUT_IF, OUT_IF),
        (
            "str",
            "each `n` is a program of its own, which is compiled once; what changes often should be an array argument",
            "pass one `n` in all calls; what changes each time belongs into an array argument",
        ),
    ],
)
def test_what_to_do_about_a_static_argument_depends_on_its_type_and_how_often_it_changes(kind, twice, often):
    calls = [Key(STEP, (leaf(),), statics=(static(value, kind),)) for value in "ab"]
    assert reason(*calls).fix == twice
    assert reason(*calls, value_counts={"n": 2}).fix == twice
    assert reason(*calls, value_counts={"n": 3}).fix == often


@pytest.mark.parametrize(
    ("count", "ordinal"),
    [(3, "3rd"), (4, "4th"), (9, "9th"), (10, "10th"), (11, "11th"), (12, "12th"), (13, "13th"), (19, "19th"),
     (20, "20th"), (21, "21st"), (22, "22nd"), (23, "23rd"), (24, "24th"), (101, "101st"), (111, "111th"),
     (112, "112th"), (120, "120th"), (121, "121st")],
)  # fmt: skip
def test_values_are_counted_as_english_does(count, ordinal):
    calls = [Key(STEP, (leaf(),), statics=(static(value),)) for value in "ab"]
    assert reason(*calls, value_counts={"n": count}).text.endswith(f": its {ordinal} value")


OBJECT = {"value": "Config()", "type": "app.Config", "path": "cfg"}
YET = "the static argument `cfg` is Config() as before, yet not equal: "


@pytest.mark.parametrize(
    ("old", "new", "text", "fix"),
    [
        (None, static("3"), "the static argument `n` was not given and is now 3",
         "step(…, n=3)  # in every call: a default left out is another signature"),
        (static("3"), None, "the static argument `n` was 3 and is now not given",
         "step(…, n=3)  # in every call: a default left out is another signature"),
        (static("3"), static("3", keyword=True),
         "the static argument `n` was given by position and is now given by name",
         "step(…, n=3)  # by name in every call, or by position in every call"),
        (static("3", keyword=True), static("3"),
         "the static argument `n` was given by name and is now given by position",
         "step(…, n=3)  # by name in every call, or by position in every call"),
        (static("3"), static("4", keyword=True), "the static argument `n` was 3 and is now 4", OUT_IF),
        (static("<function act>", "function", identity=1, token=1),
         static("<function act>", "function", identity=2, token=2),
         "the static argument `n` is <function act> as before, yet not equal: each function object is a "
         "different value",
         "define `n` once, outside of the loop, and pass the same object each time"),
        (static(**OBJECT, identity=1, token=1), static(**OBJECT, identity=2, token=2),
         YET + "Config has no __eq__ of its own, so each object is a different value",
         "@dataclass(frozen=True)  # on class Config: equal by value; or make one `cfg` for all calls"),
        (static(**OBJECT, token=1), static(**OBJECT, token=2),
         YET + "two Config objects that print alike are not equal",
         "make one `cfg` before the loop and pass it each time; or give Config an __eq__ by value"),
        (static(**{**OBJECT, "path": "self"}, token=1), static(**{**OBJECT, "path": "self"}, token=2),
         YET.replace("cfg", "self") + "two Config objects that print alike are not equal",
         "make one Config and call its methods; or register Config as a pytree, so that `self` is an argument"),
        (static("2.0", "float"), static("2.0", "float32"),  # as NumPy 1 prints its own
         "the static argument `n` is 2.0 as before, but a float32, which was a float",
         "each `n` is a program of its own, which is compiled once; what changes often should be an array argument"),
        (static("3", "Count"), static("3", "int"),
         "the static argument `n` is 3 as before, but an int, which was a Count", OUT_IF),
        (static("", "Tag"), static("b", "Tag"),  # its __repr__ is the user's
         "the static argument `n` was something that prints as nothing and is now b",
         "each `n` is a program of its own, which is compiled once; what changes often should be an array argument"),
    ],
)  # fmt: skip
def test_a_static_argument_of_another_signature_or_equality(old, new, text, fix):
    given = reason(*(Key(STEP, (leaf(),), statics=(s,) if s else ()) for s in (old, new)))
    assert (given.text, given.fix) == (text, fix)


@pytest.mark.parametrize("is_filtered", [False, True])
def test_an_argument_that_is_static_in_one_of_two_calls(is_filtered):
    more = {"wrapping": FILTER} if is_filtered else {}
    array = Key(STEP, (leaf(), leaf("n", ())), **more)
    alone = Key(STEP, (leaf(),), statics=(static("3"),), **more)
    fix = (
        "n = jnp.asarray(n)  # in every call: values that aren't arrays are static"
        if is_filtered
        else "make one jax.jit(step, …), with `n` static or not, and call that"
    )
    later = reason(array, alone)
    assert (later.text, later.fix) == ("`n` was an array and is now a static argument (3)", fix)
    earlier = reason(alone, array)
    assert (earlier.text, earlier.fix) == ("`n` was a static argument (3) and is now an array", fix)


@pytest.mark.parametrize("name", ["static_argnums", "static_argnames"])
def test_which_arguments_are_static_is_an_option_of_the_jit(name):
    given = reason(*(Key(STEP, (leaf(),), wrapping=((name, value),)) for value in ("(1,)", "(2,)")))
    assert given.text == f"the jax.jit option `{name}` was (1,) and is now (2,)"
    assert given.fix == f"make one jax.jit(step, …) with one {name} and call that"


def filtered(*statics):
    return Key(STEP, (leaf(),), statics=statics, wrapping=FILTER)


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ([static("1")], [static("2")],
         "jnp.asarray(n), if no shape and no Python branch or loop depends on it: "
         "eqx.filter_jit treats values that aren't arrays as static, and each value compiles"),
        ([static("True", "bool")], [static("False", "bool")],
         "jnp.asarray(n), if no shape and no Python branch or loop depends on it: "
         "eqx.filter_jit treats values that aren't arrays as static, and each value compiles"),
        ([static("1.0", "float")], [static("2.0", "float")],
         "n = jnp.asarray(n)  # eqx.filter_jit treats values that aren't arrays as static"),
        ([static("1", path="a"), static("1.0", "float", "b.c"), static("True", "bool", "d")],
         [static("2", path="a"), static("2.0", "float", "b.c"), static("False", "bool", "d")],
         "a = jnp.asarray(a)  # if no shape and no Python branch or loop depends on it\n"
         "jnp.asarray(b.c)  # in place of b.c, eqx.filter_jit treats values that aren't arrays as static\n"
         "d = jnp.asarray(d)  # if no Python branch depends on it"),
        ([static("1", path="a"), static("'x'", "str", "b")], [static("2", path="a"), static("'y'", "str", "b")],
         "jnp.asarray(a), if no shape and no Python branch or loop depends on it: "
         "eqx.filter_jit treats values that aren't arrays as static, and each value compiles"),
        ([static("'x'", "str")], [static("'y'", "str")],
         "each `n` is a program of its own, which is compiled once; what changes often should be an array argument"),
    ],
)  # fmt: skip
def test_of_equinoxs_own_jit_every_number_is_static(old, new, fix):
    assert reason(filtered(*old), filtered(*new)).fix == fix


def test_the_cure_for_equinoxs_own_jit_names_it():
    calls = [Key(replace(STEP, identity=identity), (leaf(),), wrapping=FILTER) for identity in (1, 2)]
    assert reason(*calls).fix.startswith("step = eqx.filter_jit(step)  # once")


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ("2", "3", "n = jnp.asarray(n)  # as an array, if no shape and no Python branch depends on it"),
        ("'a'", "'b'", "each `n` is a program of its own, compiled once; what changes often should be an array"),
    ],
)
def test_what_a_hot_function_takes_that_is_no_array(old, new, fix):
    given = reason(*(Key(HOT, (leaf(),), statics=(static(value),)) for value in (old, new)))
    assert (given.text, given.fix) == (f"{PART} was {old} and is now {new}", fix)


@pytest.mark.parametrize(
    ("after", "fix"),
    [
        ("3.0", "RATE = jnp.asarray(RATE)  # arrays may change from call to call; or pass it as an argument"),
        ("another dict", "make `RATE` once, outside of the loop: each new one compiles again"),
        ("'b'", "keep `RATE` the same, or pass it as an argument: each value is a program of its own"),
    ],
)
def test_what_a_hot_function_reads_of_its_module(after, fix):
    given = reason(Key(HOT, (leaf(),)), Key(HOT, (leaf(),), guard=("RATE", "2.0", after)))
    text = f"`RATE`, which the hot function `step` reads, was 2.0 and is now {after}"
    assert (given.kind, given.leaf, given.text, given.fix) == ("guard", "RATE", text, fix)
