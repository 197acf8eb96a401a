"""What a watch sees of calls: the kinds of events, where they come from, what they cost, what was called."""

import gc
import linecache
import threading
from contextlib import suppress
from functools import partial
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

SMALL, LARGE = jnp.ones(3), jnp.ones(4)


def kinds(ledger, function=None):
    return [event.kind for event in ledger.events if function in (None, event.function)]


def line_of(place):
    return linecache.getline(place.file, place.line).strip()


def test_a_first_call_is_traced_lowered_and_compiled_and_a_known_one_is_nothing():
    @jax.jit
    def double(x):
        return x * 2

    with ex.watch() as ledger:
        double(SMALL)
        double(SMALL)
    assert kinds(ledger) == ["trace", "lower", "compile"]
    assert {event.function for event in ledger} == {"double"}
    assert {event.reason.kind for event in ledger} == {"first"}
    assert {event.id for event in ledger} == {"[double/1]"}
    assert len({event.call for event in ledger}) == 1
    assert {event.device for event in ledger} == {"cpu:0"}
    assert {event.thread for event in ledger} == {threading.current_thread().name}
    assert not ledger.faults


def test_the_call_site_is_the_users_line_and_the_stack_goes_up_to_the_test():
    double = jax.jit(lambda x: x * 2)

    def outer():
        return double(SMALL)

    with ex.watch() as ledger:
        outer()
    (event,) = [event for event in ledger if event.kind == "compile"]
    assert event.call_site == event.stack[0]
    assert line_of(event.call_site) == event.call_site.text == "return double(SMALL)"
    assert [place.function for place in event.stack] == [
        "outer",
        "test_the_call_site_is_the_users_line_and_the_stack_goes_up_to_the_test",
    ]


def test_seconds_are_those_of_the_steps_and_lie_within_the_call():
    double = jax.jit(lambda x: x * 2)
    with ex.watch() as ledger:
        start = perf_counter()
        double(SMALL)
        spent = perf_counter() - start
    assert all(event.seconds > 0 for event in ledger)
    assert sum(event.seconds for event in ledger) < spent
    starts = [event.start for event in ledger]
    assert starts == sorted(starts)


def test_a_committed_argument_lowers_and_compiles_without_a_trace():
    double = jax.jit(lambda x: x * 2)
    double(SMALL)
    with ex.watch() as ledger:
        double(LARGE)
        double(jax.device_put(LARGE, jax.devices()[0]))
    assert kinds(ledger)[3:] == ["lower", "compile"]
    assert ledger.events[-1].reason.kind == "committed"
    assert ledger.events[-1].reason.leaf == "x"


def test_a_function_known_before_is_nothing_in_an_equal_wrapper_and_a_miss_from_another_kind_of_array():
    def double(x):
        return x * 2

    jax.jit(double)(SMALL)
    with ex.watch() as ledger:
        jax.jit(double)(SMALL)
        jax.jit(double)(np.ones(3, "float32"))
    assert kinds(ledger) == ["miss"]
    assert ledger.events[0].id == ""


def test_the_key_has_what_the_caches_compare():
    @partial(jax.jit, static_argnums=1, static_argnames="mode", donate_argnames="batch", keep_unused=True)
    def step(params, n, batch, mode="a"):
        return params["w"] * n, batch + 1

    batch = jax.device_put(jnp.ones((2, 3)), jax.devices()[0])
    with ex.watch() as ledger:
        step({"w": 2.0, "b": np.ones(2, "int32")}, 3, batch, mode="b")
    key = ledger.events[0].key
    assert [(leaf.path, leaf.shape, leaf.dtype, leaf.weak, leaf.given, leaf.committed) for leaf in key.leaves] == [
        ("params['b']", (2,), "int32", False, "numpy", None),
        ("params['w']", (), "float32", True, "float", None),
        ("batch", (2, 3), "float32", False, "jax", True),
    ]
    assert key.leaves[2].devices == ("cpu:0",)
    assert [(static.path, static.value, static.type, static.keyword) for static in key.statics] == [
        ("n", "3", "int", False),
        ("mode", "'b'", "str", True),
    ]
    assert key.donated == ("batch",)
    assert ("keep_unused", "True") in key.wrapping
    assert dict(key.context)["jax_enable_x64"] == "False"
    assert str(key.tree) == "(({'b': *, 'w': *}, *), {})"
    assert (key.function.name, key.function.file, key.function.made) == ("step", __file__, ())


def test_how_a_function_came_about_is_in_its_key():
    def plain(x):
        return (x * 2).sum()

    class Model:
        def loss(self, x):
            return x.sum()

    made = {}
    for name, function in {
        "lambda": lambda x: x + 1,
        "partial": partial(plain),
        "grad": jax.grad(plain),
        "vmap": jax.vmap(plain),
        "method": Model().loss,
        "": plain,
    }.items():
        with ex.watch() as ledger:
            jax.jit(function)(jnp.ones((2, 2)) if name == "vmap" else SMALL)
        key = next(event.key for event in ledger if not event.key.function.eager)
        made[name] = key.function.made
    assert made == {name: (name,) if name else () for name in made}


def test_equal_numbers_are_the_same_object_and_the_same_wrapper():
    def double(x):
        return x * 2

    one, other = jax.jit(double), jax.jit(double)
    with ex.watch() as ledger:
        one(SMALL), one(LARGE), other(jnp.ones(5)), jax.jit(lambda x: x)(SMALL)
    functions = {event.call: event.key.function for event in ledger if event.function in ("double", "<lambda>")}
    first, second, third, fourth = functions.values()
    assert first == second
    assert (third.identity == first.identity, third.wrapper == first.wrapper) == (True, False)
    assert fourth.identity != first.identity


@pytest.mark.slow
def test_a_function_that_is_gone_gives_its_number_to_no_other():
    numbers = set()
    with ex.watch() as ledger:
        for _ in range(5):
            jax.jit(lambda x: x * 3)(SMALL)
            gc.collect()
    numbers = {event.key.function.identity for event in ledger}
    assert len(numbers) == 5
    assert ledger.events[-1].reason.kind == "function"


def test_an_operation_outside_of_any_jit_is_eager_and_its_parameters_are_static():
    with ex.watch() as ledger:
        jax.lax.broadcast_in_dim(SMALL, (17, 3), (1,))
        jax.lax.broadcast_in_dim(SMALL, (18, 3), (1,))
    first, second = (event for event in ledger if event.kind == "compile")
    assert first.key.function.eager
    assert second.function == "broadcast_in_dim"
    assert (second.reason.kind, second.reason.leaf) == ("static", "shape")
    assert second.id == "[broadcast_in_dim/2]"


def test_a_call_inside_of_a_trace_is_part_of_the_outer_one():
    @jax.jit
    def inner(x):
        return jnp.sin(x) * 2

    @jax.jit
    def outer(x):
        return inner(x) + inner(x)

    with ex.watch() as ledger:
        outer(SMALL)
    assert [(event.kind, event.function) for event in ledger] == [(k, "outer") for k in ("trace", "lower", "compile")]


def test_what_runs_while_a_function_is_traced_is_a_call_of_its_own():
    constant = jax.jit(lambda: jnp.arange(11) * 2)

    @jax.jit
    def outer(x):
        with jax.ensure_compile_time_eval():
            table = constant()
        return x + table.sum()

    with ex.watch() as ledger:
        outer(SMALL)
    calls = {event.function: event.call for event in ledger}
    assert calls["<lambda>"] < calls["outer"]
    assert kinds(ledger, "outer") == ["trace", "lower", "compile"]


def test_under_vmap_the_whole_batch_counts():
    double = jax.jit(lambda x: x * 2)
    with ex.watch() as ledger:
        jax.vmap(double)(jnp.ones((2, 3)))
        jax.vmap(double)(jnp.ones((5, 3)))
    calls = [event for event in ledger if event.function == "<lambda>"]
    assert [event.kind for event in calls] == ["trace", "lower", "compile", "lower", "compile"]
    assert (calls[-1].reason.leaf, calls[-1].reason.before, calls[-1].reason.after) == ("x.shape[0]", "2", "5")
    assert calls[-1].key.transformations == ("vmap",)


def test_the_derivative_of_a_jitted_function_is_compiled_for_itself():
    def loss(x):
        return jnp.sin(x).sum()

    with ex.watch() as ledger:
        jax.grad(jax.jit(loss))(SMALL)
    assert kinds(ledger, "loss") == ["trace", "lower", "compile", "lower", "compile"]
    backward = [event for event in ledger if event.function == "loss"][-1].key.function
    assert (backward.made, backward.file, backward.line) == (("derived",), __file__, loss.__code__.co_firstlineno)


def test_a_derivative_for_another_shape_says_so_and_forward_and_backward_are_not_compared():
    loss = jax.jit(lambda x: jnp.sin(x).sum())
    with ex.watch() as ledger:
        jax.grad(loss)(SMALL)
        jax.grad(loss)(LARGE)
    derived = [event for event in ledger if event.key.function.made == ("derived",) and event.kind == "compile"]
    assert [event.reason.kind for event in derived] == ["first", "shape"]
    assert (derived[1].reason.before, derived[1].reason.after) == ("3", "4")


def test_ahead_of_time_the_steps_are_one_call():
    def double(x):
        return x * 2

    with ex.watch() as ledger:
        lowered = jax.jit(double).trace(jax.ShapeDtypeStruct((7,), "float32")).lower()
        lowered.compile()
    assert kinds(ledger) == ["trace", "lower", "compile"]
    assert len({(event.call, event.id, event.reason) for event in ledger}) == 1
    (leaf,) = ledger.events[-1].key.leaves
    assert (leaf.given, leaf.shape) == ("struct", (7,))


def test_a_call_goes_on_where_a_trace_ahead_of_time_ended():
    double = jax.jit(lambda x: x * 2)
    with ex.watch() as ledger:
        double.trace(jax.ShapeDtypeStruct((3,), "float32"))
        double(SMALL)
        double(LARGE)
    assert kinds(ledger) == ["trace", "lower", "compile"] * 2
    assert [event.id for event in ledger] == ["[<lambda>/1]"] * 3 + ["[<lambda>/2]"] * 3
    assert [event.reason.kind for event in ledger] == ["first"] * 3 + ["shape"] * 3


def test_a_program_compiled_again_ahead_of_time_was_asked_for():
    double = jax.jit(lambda x: x * 2)
    with ex.watch() as ledger:
        double(SMALL)
        double.trace(SMALL).lower().compile({"xla_embed_ir_in_executable": True})
    assert kinds(ledger)[3:] == ["compile"]
    assert "requested ahead of time" in ledger.events[-1].reason.text


def test_what_the_user_compiles_with_explorer_is_seen_at_their_line():
    with ex.watch() as ledger:
        ex.compile(lambda x: x * 2, args=[ex.InputInfo((3,), "float32")])
        ex.jit(lambda x: x * 3)(SMALL)
    assert {event.function for event in ledger} == {"<lambda>"}
    assert {event.key.function.file for event in ledger} == {__file__}
    sites = {event.call_site.text.partition("(")[0] for event in ledger if event.kind == "compile"}
    assert sites == {"ex.compile", "ex.jit"}
    assert not ledger.faults


def test_calls_that_always_leave_the_fast_path_are_told_of_in_few_events_with_their_number(capfd):
    @jax.jit
    def loud(x):
        jax.debug.print("{}", x[0])
        return x

    loud(SMALL)
    with ex.watch() as ledger:
        for _ in range(130):
            loud(SMALL)
    assert kinds(ledger) == ["miss"] * 4
    assert [event.count for event in ledger] == [1, 9, 90, 30]
    assert {event.call_site.text for event in ledger} == {"loud(SMALL)"}


def test_misses_are_summed_for_each_line_with_the_seconds_of_all(capfd):
    import time

    @jax.jit
    def loud(x):
        jax.debug.print("{}", x[0])
        return x

    loud(SMALL)
    with ex.watch() as ledger:
        start = time.perf_counter()
        for _ in range(30):
            loud(SMALL)
        whole = time.perf_counter() - start
        loud(SMALL)
    lines = {event.call_site.line for event in ledger}
    assert len(lines) == 2
    first = [event for event in ledger if event.call_site.line == min(lines)]
    assert sum(event.count for event in first) == 30
    assert 0.3 * whole < sum(event.seconds for event in first) <= whole


@pytest.fixture
def persistent_cache(tmp_path):
    from jax._src import compilation_cache

    before = {
        name: getattr(jax.config, name)
        for name in (
            "jax_compilation_cache_dir",
            "jax_persistent_cache_min_compile_time_secs",
            "jax_persistent_cache_min_entry_size_bytes",
        )
    }
    for name, value in zip(before, (str(tmp_path), 0.0, -1), strict=True):
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.mark.slow
def test_a_binary_from_the_persistent_cache_is_a_hit_with_what_it_saved(persistent_cache):
    def double(x):
        return jnp.sin(x) * 2 + jnp.cos(x)

    with ex.watch() as ledger:
        jax.jit(double)(SMALL)
        jax.clear_caches()
        jax.jit(double)(SMALL)
    again = [event for event in ledger if event.function == "double"][3:]
    assert [event.kind for event in again] == ["trace", "lower", "cache-hit"]
    assert again[-1].saved >= 0
    assert again[-1].reason.kind == "evicted"


def test_a_call_that_was_forgotten_is_said_to_be_though_another_size_came_between():
    step = jax.jit(lambda x: x + 1)
    with ex.watch() as ledger:
        step(SMALL)
        step(LARGE)
        jax.clear_caches()
        step(SMALL)
    assert [event.reason.kind for event in ledger if event.kind == "compile"] == ["first", "shape", "evicted"]


def test_a_trace_that_fails_is_told_with_its_error_and_is_no_earlier_call():
    @jax.jit
    def choose(x):
        return x if x > 0 else -x

    with ex.watch() as ledger:
        for _ in range(2):
            with pytest.raises(jax.errors.TracerBoolConversionError):
                choose(1.0)
    assert [(event.kind, event.error) for event in ledger] == [("trace", "TracerBoolConversionError")] * 2
    assert [event.reason.kind for event in ledger] == ["raised"] * 2
    assert "`choose` raised TracerBoolConversionError" in str(ledger.events[0].reason)
    assert ledger.events[0].key.leaves[0].path == "x"


def test_a_call_that_raised_is_a_recompile_from_its_second_time_on_and_names_what_was_new():
    @jax.jit
    def double(x):
        if x.shape[0] == 4:
            raise ValueError
        return x * 2

    calls = [np.ones(size, np.float32) for size in (4, 3, 4, 4, 5)]
    with ex.watch() as ledger:
        for x in calls:
            with suppress(ValueError):
                double(x)
    reasons = [event.reason for event in ledger.recompiles()]
    assert [(reason.kind, reason.leaf, reason.after) for reason in reasons] == [
        ("raised", "x.shape[0]", "4"), ("raised", "x.shape[0]", "4"), ("shape", "x.shape[0]", "5"),
    ]  # fmt: skip
    (row,) = ledger.functions()
    assert row.recompiles == 3


def test_operations_outside_of_any_jit_are_recompiles_only_if_asked_for():
    double = jax.jit(lambda x: x * 2)
    with ex.watch() as ledger:
        for size in (21, 22):
            double(jnp.zeros(size))
    assert {event.function for event in ledger.recompiles()} == {"<lambda>"}
    assert {event.function for event in ledger.recompiles(eager=True)} >= {"<lambda>", "broadcast_in_dim"}
    assert {event.function for event in ledger.recompiles("broadcast_in_dim")} == {"broadcast_in_dim"}


def test_the_values_of_a_static_argument_are_all_counted():
    power = jax.jit(lambda x, n: x + n, static_argnums=1)
    x = jax.ShapeDtypeStruct((2,), np.float32)
    with ex.watch(storm=0) as ledger:
        for n in range(300):
            power.trace(x, n)
    assert str(ledger.events[-1].reason).endswith(": its 300th value")


def test_a_later_watch_knows_the_same_function_and_begins_anew_with_others_of_its_name():
    def fresh():
        def double(x):
            return x * 2

        return jax.jit(double)

    double, other = fresh(), jnp.ones(9)
    with ex.watch():
        double(SMALL)
    with ex.watch() as ledger:
        double(LARGE)
        fresh()(other)
    same, made_anew = (event for event in ledger if event.kind == "compile")
    assert (same.id, same.reason.kind, same.reason.leaf) == ("[double/1]", "shape", "x.shape[0]")
    assert made_anew.reason.kind == "function"
    with ex.watch() as ledger:
        fresh()(other)
    assert ledger.events[-1].reason.kind == "first"


def test_what_is_being_compiled_is_in_running():
    told = []

    @jax.jit
    def slow(x):
        told.extend(ledger.running)
        return x * 2

    with ex.watch() as ledger:
        slow(SMALL)
        assert ledger.running == ()
    ((running),) = told
    assert (running.function, running.stage, running.thread) == ("slow", "trace", threading.current_thread().name)
    assert running.call_site.text == "told.extend(ledger.running)"
    assert str(running).startswith("tracing slow at test_watch.py, line ")


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": "many"}, {"storm": -1}, {"storm": 2.5}, {"storm": True}])
def test_an_option_out_of_range_is_refused_before_anything_is_watched(options):
    from jax._src import pjit

    before = pjit._infer_params
    with pytest.raises(ex.errors.OptionError, match=f"{next(iter(options))} of watch"):
        ex.watch(**options)
    assert pjit._infer_params is before
