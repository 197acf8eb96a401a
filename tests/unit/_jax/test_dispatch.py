"""A call that the dispatcher answers in C++ gives what the function gives, in whatever form it comes."""

import copy
import gc
import itertools
import pickle
import weakref
from collections import OrderedDict
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import explorer as ex

PAIR = ex.InputInfo((2,), jnp.float32)
SCALAR = ex.InputInfo((), jnp.float32)
ONE, TEN, HUNDRED = (by * jnp.array([1.0, 2.0]) for by in (1, 10, 100))


def again(call, times=3):
    """The first call goes through Python, the later ones may not: all must agree."""
    results = [jax.tree.map(np.asarray, call()) for _ in range(times)]
    for result in results[1:]:
        assert jax.tree.structure(result) == jax.tree.structure(results[0])
        for one, other in zip(jax.tree.leaves(result), jax.tree.leaves(results[0]), strict=True):
            np.testing.assert_array_equal(one, other)
    return results[0]


def zyx(z, y, x):
    return z - 2 * y + 5 * x


@pytest.fixture(scope="module")
def fast_zyx():
    return ex.compile(zyx, args=[PAIR] * 3)


@pytest.mark.parametrize("by_position", range(4))
@pytest.mark.parametrize("order", list(itertools.permutations("zyx")))
def test_arguments_by_name_in_any_order_go_where_they_belong(fast_zyx, order, by_position):
    given = {"z": ONE, "y": TEN, "x": HUNDRED}
    args = [given[name] for name in "zyx"[:by_position]]
    kwargs = {name: given[name] for name in order if name in "zyx"[by_position:]}
    np.testing.assert_array_equal(again(lambda: fast_zyx(*args, **kwargs)), zyx(**given))


@pytest.mark.parametrize("given", list(itertools.product((ONE, TEN), repeat=3)))
def test_one_array_in_several_arguments_is_each_of_them(fast_zyx, given):
    np.testing.assert_array_equal(again(lambda: fast_zyx(*given)), zyx(*given))


def test_names_that_sort_in_another_order_than_the_parameters_are_not_mixed_up_with_a_call_by_position():
    fast = ex.compile(lambda b, a: b - a, args=[PAIR] * 2)
    for _ in range(3):
        np.testing.assert_array_equal(fast(TEN, ONE), TEN - ONE)
        np.testing.assert_array_equal(fast(b=TEN, a=ONE), TEN - ONE)
        np.testing.assert_array_equal(fast(a=TEN, b=ONE), ONE - TEN)
        np.testing.assert_array_equal(fast(TEN, a=ONE), TEN - ONE)


def test_keywords_taken_by_double_star_are_not_mixed_up():
    fast = ex.compile(lambda **kw: kw["b"] - 2 * kw["a"] + 3 * kw["c"], kwargs={"b": PAIR, "c": PAIR, "a": PAIR})
    wanted = ONE - 2 * TEN + 3 * HUNDRED
    for order in itertools.permutations("abc"):
        given = {"b": ONE, "a": TEN, "c": HUNDRED}
        np.testing.assert_array_equal(
            again(lambda given=given, order=order: fast(**{k: given[k] for k in order})), wanted
        )


def test_the_order_of_a_dicts_keys_does_not_matter():
    fast = ex.compile(lambda d: d["b"] - d["a"], args=[{"b": PAIR, "a": PAIR}])
    assert again(lambda: fast({"b": TEN, "a": ONE})).tolist() == [9, 18]
    assert again(lambda: fast({"a": ONE, "b": TEN})).tolist() == [9, 18]


class Point(NamedTuple):
    x: object
    y: object


@pytest.mark.parametrize("wrong", [[ONE, TEN], (ONE, TEN), {"x": ONE, "y": TEN}, OrderedDict(x=ONE, y=TEN), None])
def test_a_container_of_another_kind_is_refused_however_often_the_right_one_came(wrong):
    fast = ex.compile(lambda p: p.x - p.y, args=[Point(PAIR, PAIR)])
    assert again(lambda: fast(Point(TEN, ONE))).tolist() == [9, 18]
    for _ in range(2):
        with pytest.raises(ex.errors.InputStructureError):
            fast(wrong)


def test_constants_beside_inputs_may_change_from_call_to_call_and_are_never_read():
    fast = ex.compile(lambda d, k: d["x"] * d["by"] + k[0], args=[{"x": PAIR, "by": 3.0}, [PAIR, 7]])
    for constant in (3.0, 4.0, "text", None, HUNDRED, ONE, np.ones(2)):
        found = again(lambda constant=constant: fast({"x": ONE, "by": constant}, [TEN, constant]))
        np.testing.assert_array_equal(found, 3 * ONE + TEN)
    np.testing.assert_array_equal(again(lambda: fast({"x": ONE}, [TEN, None])), 3 * ONE + TEN)


def test_an_array_in_the_slot_of_a_constant_is_not_taken_for_the_input():
    fast = ex.compile(lambda pair: pair[1], args=[[5.0, PAIR]])
    np.testing.assert_array_equal(again(lambda: fast([ONE, TEN])), TEN)
    np.testing.assert_array_equal(again(lambda: fast([TEN, ONE])), ONE)
    np.testing.assert_array_equal(again(lambda: fast([None, HUNDRED])), HUNDRED)


def test_a_size_that_is_an_input_is_read_at_each_call():
    fast = ex.compile(lambda n, x: jnp.zeros(n) + x[0], args=[ex.compat.tripy.DimensionInputInfo((1, 2, 9)), PAIR])
    for n in (2, 3, 2, 4, 3):
        assert fast(n, ONE).shape == fast(x=ONE, n=n).shape == fast(np.int64(n), ONE).shape == (n,)


SAME_DTYPE = [jnp.float32(3), jnp.asarray(3.0), np.float32(3), np.array(3, np.float32), jnp.ones(()) * 3.0]
OTHER_DTYPE = [np.float64(3), np.array(3.0), jnp.int32(3), jnp.asarray(3), np.int64(3), jnp.bool_(1), jnp.float16(3)]


@pytest.mark.parametrize("before", SAME_DTYPE[:3])
def test_only_what_has_the_dtype_is_taken_whatever_came_before(before):
    fast = ex.compile(lambda x: x * 2, args=[SCALAR])
    assert again(lambda: fast(before)) == 6
    for value in SAME_DTYPE:
        result = fast(value)
        assert (result.dtype, float(result), result.weak_type) == (jnp.float32, 6, False)
    for value in OTHER_DTYPE:
        with pytest.raises(ex.errors.InputDtypeError):
            fast(value)
    for value in (3.0, 3, True, None, "3", [3.0]):
        with pytest.raises((ex.errors.NotAnArrayError, ex.errors.InputStructureError)):
            fast(value)


def test_bool_is_no_int_and_int_is_no_bool():
    flag = ex.compile(lambda x: jnp.where(x, 1, 2), args=[ex.InputInfo((), bool)])
    number = ex.compile(lambda x: x + 1, args=[ex.InputInfo((), jnp.int32)])
    assert [int(flag(jnp.bool_(1))), int(number(jnp.int32(1)))] == [1, 2]
    with pytest.raises(ex.errors.InputDtypeError):
        flag(jnp.int32(1))
    with pytest.raises(ex.errors.InputDtypeError):
        number(jnp.bool_(1))


def test_random_keys_go_where_they_belong():
    def draw(a, b):
        return jax.random.normal(a, (2,)) - 2 * jax.random.normal(b, (2,))

    one, two = jax.random.key(1), jax.random.key(2)
    fast = ex.compile(draw, args=[ex.InputInfo.like(one)] * 2)
    for a, b in ((one, two), (two, one), (one, one)):
        np.testing.assert_allclose(again(lambda a=a, b=b: fast(a, b)), draw(a, b), rtol=1e-6)
        np.testing.assert_allclose(again(lambda a=a, b=b: fast(b=b, a=a)), draw(a, b), rtol=1e-6)
    with pytest.raises(ex.errors.InputDtypeError):
        fast(jax.random.key(0, impl="rbg"), two)
    with pytest.raises(ex.errors.InputError):
        fast(jax.random.PRNGKey(0), two)


def test_an_array_bound_to_its_device_is_taken_like_any_other():
    fast = ex.compile(lambda x, y: x - y, args=[PAIR, PAIR])
    bound = jax.device_put(TEN, jax.devices()[0])
    for x, y in itertools.product((ONE, bound, np.asarray(HUNDRED)), repeat=2):
        np.testing.assert_array_equal(again(lambda x=x, y=y: fast(x, y)), jnp.asarray(x) - y)


def test_no_inputs_and_empty_trees_are_calls_like_others():
    assert again(ex.compile(lambda: jnp.arange(3))).tolist() == [0, 1, 2]
    assert again(lambda: ex.compile(lambda x: {}, args=[PAIR])(ONE)) == {}
    assert ex.compile(lambda a, b: b, args=[{}, PAIR])(ONE).tolist() == ONE.tolist()


def test_five_hundred_arguments_are_checked_each():
    fast = ex.compile(lambda *xs: sum(i * x for i, x in enumerate(xs)), args=[SCALAR] * 500)
    numbers = [jnp.float32(i) for i in range(500)]
    assert again(lambda: fast(*numbers)) == pytest.approx(sum(i * i for i in range(500)), rel=1e-5)
    with pytest.raises(ex.errors.InputDtypeError, match="xs499"):
        fast(*numbers[:-1], jnp.int32(499))


def test_a_donated_array_is_gone_and_a_second_use_says_so():
    fast = ex.compile(lambda x, y: x + y, args=[PAIR, PAIR], donate=["x"])
    for _ in range(3):
        mine = ONE + 0
        assert fast(mine, TEN).tolist() == [11, 22]
        assert mine.is_deleted()
        with pytest.raises((ValueError, RuntimeError), match=r"deleted|donated"):
            fast(mine, TEN)
    mine = np.array(ONE)
    assert fast(mine, TEN).tolist() == [11, 22]
    assert mine.tolist() == ONE.tolist()
    assert not TEN.is_deleted()


def test_host_callbacks_run_at_each_call():
    seen = []

    def program(x):
        jax.debug.callback(lambda value: seen.append(float(value)), x.sum())
        return jax.pure_callback(lambda value: np.asarray(value) * 2, jax.ShapeDtypeStruct((2,), jnp.float32), x)

    fast = ex.compile(program, args=[PAIR])
    for value in (ONE, TEN, ONE):
        np.testing.assert_array_equal(fast(value), 2 * value)
    jax.effects_barrier()
    assert sorted(seen) == [3, 3, 30]


def test_debug_print_prints_at_each_call(capfd):
    def program(x):
        jax.debug.print("first is {}", x[0])
        return x

    fast = ex.compile(program, args=[PAIR])
    again(lambda: fast(ONE))
    jax.effects_barrier()
    assert capfd.readouterr().out.count("first is 1.0") == 3


def test_an_exception_on_the_device_reaches_the_caller_and_the_next_call_works():
    def refuse(value):
        if value[0] > 5:
            raise RuntimeError("too large")
        return value

    fast = ex.compile(lambda x: jax.pure_callback(refuse, jax.ShapeDtypeStruct((2,), jnp.float32), x), args=[PAIR])
    assert fast(ONE).tolist() == ONE.tolist()
    with pytest.raises(jax.errors.JaxRuntimeError, match="too large"):
        jax.block_until_ready(fast(TEN))
    assert fast(ONE).tolist() == ONE.tolist()


@pytest.fixture
def logarithm():
    fast = ex.compile(lambda x: jnp.log(x), args=[PAIR])
    assert np.isnan(again(lambda: fast(-ONE))).all()
    return fast


def test_debug_nans_is_obeyed_by_what_was_compiled_and_called_before(logarithm):
    with jax.debug_nans(True):
        for _ in range(2):
            with pytest.raises(FloatingPointError, match="nan"):
                logarithm(-ONE)
        np.testing.assert_allclose(logarithm(ONE), jnp.log(ONE))
    assert np.isnan(again(lambda: logarithm(-ONE))).all()


@pytest.mark.parametrize(
    "setting",
    [
        jax.disable_jit,
        lambda: jax.enable_x64(True),
        lambda: jax.default_matmul_precision("highest"),
        lambda: jax.debug_key_reuse(True),
        lambda: jax.checking_leaks(),
        lambda: jax.default_device(jax.devices()[0]),
    ],
    ids=["disable_jit", "x64", "precision", "key_reuse", "leaks", "device"],
)
def test_a_setting_of_jax_between_calls_changes_no_result(fast_zyx, setting):
    with setting():
        assert again(lambda: fast_zyx(ONE, TEN, HUNDRED)).dtype == jnp.float32
        np.testing.assert_array_equal(again(lambda: fast_zyx(ONE, TEN, HUNDRED)), zyx(ONE, TEN, HUNDRED))
        for _ in range(2):
            with pytest.raises(ex.errors.InputDtypeError):
                fast_zyx(np.ones(2), TEN, HUNDRED)
    np.testing.assert_array_equal(again(lambda: fast_zyx(ONE, TEN, HUNDRED)), zyx(ONE, TEN, HUNDRED))


@pytest.mark.slow
def test_an_executable_and_its_binaries_die_with_the_last_reference():
    fast = ex.compile(lambda x: x * 2, args=[ex.InputInfo(((1, 2, 9),), jnp.float32)])
    fast(ONE), fast(jnp.ones(3)), jax.vjp(fast, ONE)
    known = [weakref.ref(fast), weakref.ref(fast._opt.compiled)]  # nothing public holds on to a binary
    del fast
    gc.collect()
    assert [one() for one in known] == [None, None]


@pytest.mark.slow
def test_a_copy_is_the_executable_itself_and_a_pickle_is_refused_with_what_to_do(fast_zyx):
    assert copy.copy(fast_zyx) is copy.deepcopy([fast_zyx])[0] is fast_zyx
    with pytest.raises(ex.errors.ArchiveError, match=r"zyx can't be pickled(.|\n)*exe\.save\(path\)"):
        pickle.dumps(fast_zyx)


LEAVES = st.sampled_from([((2,), "float32"), ((3, 2), "float32"), ((), "int32"), ((2,), "int32")])
TREES = st.recursive(
    LEAVES | st.none() | st.just(5.0),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        | st.builds(Point, inner, inner)
    ),
    max_leaves=5,
)


def is_described(leaf):
    return isinstance(leaf, tuple) and len(leaf) == 2 and isinstance(leaf[1], str)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(TREES, min_size=1, max_size=3), st.data())
def test_any_tree_in_any_form_of_call_gives_what_the_function_gives(trees, data):
    def program(a, b=None, c=None):
        leaves = jax.tree.leaves((a, b, c))
        return [(i + 1) * leaf for i, leaf in enumerate(leaves)], jnp.float32(0)

    def filled(seed):
        counter = itertools.count(seed)

        def fill(leaf):
            if not is_described(leaf):
                return leaf
            array = (np.arange(np.prod(leaf[0], dtype=int)).reshape(leaf[0]) + 10 * next(counter)).astype(leaf[1])
            return array if data.draw(st.booleans(), label="numpy") else jnp.asarray(array)

        return [jax.tree.map(fill, tree, is_leaf=is_described) for tree in trees]

    infos = jax.tree.map(lambda leaf: ex.InputInfo(*leaf) if is_described(leaf) else leaf, trees, is_leaf=is_described)
    fast = ex.compile(program, args=infos)
    wanted_names = list(fast.__signature__.parameters)
    for seed in (1, 1, 50):
        values = filled(seed)
        named = {name: value for name, value in zip("abc", values, strict=False) if name in wanted_names}
        cut = data.draw(st.integers(0, len(named)), label="by position")
        names = data.draw(st.permutations(wanted_names[cut:]), label="order")
        args, kwargs = [named[name] for name in wanted_names[:cut]], {name: named[name] for name in names}
        found, wanted = again(lambda args=args, kwargs=kwargs: fast(*args, **kwargs), 2), program(*values)
        assert jax.tree.structure(found) == jax.tree.structure(wanted)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_array_equal(one, other)
