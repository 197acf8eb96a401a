"""Guards: a block that may not compile again, or only so often, and what they say."""

from __future__ import annotations

import asyncio
import functools
import threading

import jax
import jax.numpy as jnp
import pytest

import explorer as ex


def fresh():
    """A jitted function that nothing has compiled yet."""

    @jax.jit
    def step(batch):
        return batch["x"] * 2

    return step


def call(step, *sizes):
    for size in sizes:
        step({"x": jnp.ones(size)})


def broken(guard, *work):
    def block():
        with guard:
            for do in work:
                do()

    with pytest.raises(ex.errors.RecompilationError) as caught:
        block()
    return caught.value


# --- assert_no_recompiles


def test_first_compiles_and_known_calls_pass():
    step = fresh()
    with ex.assert_no_recompiles():
        call(step, 8, 8)
        jax.jit(lambda x: x)(jnp.ones(3))


def test_a_recompile_fails_at_the_end_of_the_block_with_the_reason_table():
    step = fresh()
    done = []
    error = broken(ex.assert_no_recompiles(), lambda: call(step, 8, 5), lambda: done.append("the rest ran"))
    assert done
    lines = str(error).splitlines()
    assert lines[0] == "step compiled again; no recompile is allowed here."
    assert lines[1] == "  [step/2]  batch['x'].shape[0]: 8 → 5 (shape)"
    assert any(line.strip().startswith("called at  test_guards.py, line ") for line in lines)
    assert any(line.strip().endswith('step({"x": jnp.ones(size)})') for line in lines)
    assert any(line.strip().startswith("Fix: ") for line in lines)
    assert {event.kind for event in error.events} == {"trace", "lower", "compile"}
    assert isinstance(error, AssertionError)


def test_what_compiled_before_the_block_does_not_count():
    step = fresh()
    call(step, 8)
    with ex.assert_no_recompiles():
        call(step, 5)
    error = broken(ex.assert_no_recompiles(), lambda: call(step, 8, 5))
    assert "step compiled again" in str(error)
    assert "batch['x'].shape[0]: 8 → 5 (shape)" in str(error)


def test_a_static_argument_that_changed_is_named_though_both_values_compiled_before():
    step = jax.jit(lambda x, n: x * n, static_argnames="n")
    for n in (2, 3):
        step(jnp.ones(3), n=n)
    error = broken(ex.assert_no_recompiles(), lambda: [step(jnp.ones(3), n=n) for n in (2, 3)])
    assert "n: 2 → 3 (static)" in str(error)


def test_another_function_of_the_same_place_has_not_compiled_before():
    call(kept := fresh(), 8)
    with ex.assert_no_recompiles():
        call(fresh(), 5)
    call(kept, 8)


def test_a_warmed_up_block_may_compile_nothing():
    step = fresh()
    call(step, 8)
    with ex.assert_no_recompiles(allow_first=False):
        call(step, 8)
    error = broken(ex.assert_no_recompiles(allow_first=False), lambda: call(fresh(), 8))
    assert str(error).startswith("step compiled once; no compile is allowed here.")


def test_only_the_functions_that_are_named_are_guarded():
    step, other = fresh(), jax.jit(lambda x: x)
    with ex.assert_no_recompiles(other, "someone"):
        call(step, 8, 5)
    for name in (step, "step", step.__wrapped__, functools.partial(step), jax.value_and_grad(step)):
        broken(ex.assert_no_recompiles(other, name), lambda: call(fresh(), 8, 5))


def test_a_method_and_a_callable_object_are_guarded_by_their_place():
    class Model:
        def step(self, x):
            return x * 2

        def __call__(self, x):
            return x * 3

    model = Model()
    for function in (model.step, model):
        broken(ex.assert_no_recompiles(function), lambda f=function: [jax.jit(f)(jnp.ones(n)) for n in (2, 3)])


@pytest.mark.slow
def test_operations_outside_of_any_jit_count_only_if_asked():
    def work():
        for n in (1201, 1202, 1203):
            _ = jnp.ones(n) * jnp.arange(n)

    with ex.assert_no_recompiles():
        work()
    jax.clear_caches()
    broken(ex.assert_no_recompiles(eager=True), work)


def test_the_blocks_own_error_is_the_one_that_is_seen_and_has_the_table_as_a_note():
    @ex.assert_no_recompiles()
    def train():
        call(fresh(), 8, 5)
        return 1 / 0

    with pytest.raises(ZeroDivisionError) as caught:
        train()
    (note,) = caught.value.__notes__
    assert note.startswith("Besides, step compiled again; no recompile is allowed here.\n  [step/2]")


def test_a_keyboard_interrupt_passes():
    @ex.assert_no_recompiles()
    def train():
        call(fresh(), 8, 5)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()


def test_compiles_of_other_threads_count():
    step = fresh()

    def work():
        thread = threading.Thread(target=call, args=(step, 8, 5))
        thread.start()
        thread.join()

    broken(ex.assert_no_recompiles(), work)


def test_guards_nest_and_each_sees_all():
    step = fresh()
    inner = ex.assert_no_recompiles()(call)

    def outer():
        inner(step, 8)
        with pytest.raises(ex.errors.RecompilationError):
            inner(step, 8, 5)
        inner(step, 5)

    broken(ex.assert_no_recompiles(), outer)


def test_one_guard_may_be_entered_again_and_within_itself():
    guard, step = ex.assert_no_recompiles(allow_first=False), fresh()
    call(step, 8)
    with guard, guard:
        call(step, 8)
    with pytest.raises(ex.errors.RecompilationError), guard:
        call(step, 5)


def test_the_block_has_its_ledger():
    step = fresh()
    with ex.assert_no_recompiles() as ledger:
        call(step, 8)
    assert [event.kind for event in ledger.events if event.function == "step"] == ["trace", "lower", "compile"]
    assert not ledger.on


@pytest.mark.slow
def test_many_recompiles_of_one_cause_are_one_row():
    step = fresh()
    error = broken(ex.assert_no_recompiles(), lambda: call(step, *range(2, 22)))
    text = str(error)
    assert text.startswith("step compiled again, 19 times; no recompile is allowed here.")
    assert text.count("called at") == 1
    assert "and 18 times more" in text
    assert len(text.splitlines()) < 15


@pytest.mark.slow
def test_many_causes_are_cut_short():
    steps = [jax.jit(lambda x, i=i: x * i) for i in range(12)]

    def work():
        exec(
            "\n".join(f"steps[{i}](jnp.ones(2)); steps[{i}](jnp.ones(3))" for i in range(12)),
            {**globals(), "steps": steps},
        )

    assert len(str(broken(ex.assert_no_recompiles(), work)).splitlines()) < 60


@pytest.mark.slow
def test_no_storm_is_warned_of_besides():
    error = broken(ex.assert_no_recompiles(), lambda: call(fresh(), *range(2, 30)))  # a warning would be an error here
    assert isinstance(error, ex.errors.RecompilationError)


# --- as a decorator


def test_it_decorates_a_function_and_guards_each_call():
    step = fresh()

    @ex.assert_no_recompiles(step)
    def train(*sizes):
        """Train."""
        call(step, *sizes)
        return sizes

    assert train(8) == (8,)
    assert train.__doc__ == "Train."
    with pytest.raises(ex.errors.RecompilationError):
        train(8, 5)


def test_it_decorates_a_coroutine():
    step = fresh()

    @ex.assert_no_recompiles(step)
    async def train(*sizes):
        await asyncio.sleep(0)
        call(step, *sizes)
        return "trained"

    assert asyncio.run(train(8)) == "trained"
    with pytest.raises(ex.errors.RecompilationError):
        asyncio.run(train(8, 5))


def test_it_decorates_a_generator_over_its_whole_run():
    step = fresh()

    @ex.assert_no_recompiles(step)
    def batches(*sizes):
        for size in sizes:
            call(step, size)
            yield size

    assert list(batches(8, 8)) == [8, 8]
    with pytest.raises(ex.errors.RecompilationError):
        list(batches(8, 5))


# --- max_compiles


def test_as_many_compiles_as_allowed_pass_and_one_more_fails():
    with ex.max_compiles("step", 2):
        call(fresh(), 8, 5)
    error = broken(ex.max_compiles("step", 2), lambda: call(fresh(), 8, 5, 3))
    lines = str(error).splitlines()
    assert lines[0] == "step compiled 3 times; 2 are allowed here."
    assert lines[1] == "  [step/1]  the first call of `step`"
    assert "  [step/2]  batch['x'].shape[0]: 8 → 5 (shape)" in lines


@pytest.mark.parametrize(
    ("n", "sizes", "says"), [(0, [8], "compiled once; no compile is"), (1, [8, 5], "compiled 2 times; 1 is")]
)
def test_what_is_allowed_is_said(n, sizes, says):
    assert says in str(broken(ex.max_compiles("step", n), lambda: call(fresh(), *sizes)))


@pytest.mark.parametrize("n", [-1, 1.5, True, "2", None])
def test_a_number_that_is_none_is_refused_at_once(n):
    with pytest.raises(ex.errors.OptionError, match="a whole number from 0"):
        ex.max_compiles("step", n)


@pytest.mark.parametrize("function", [3, None, ["step"]])
def test_what_is_no_function_is_refused_at_once(function):
    with pytest.raises(ex.errors.NotCallableError, match="functions or their names"):
        ex.max_compiles(function, 1)
    with pytest.raises(ex.errors.NotCallableError, match="functions or their names"):
        ex.assert_no_recompiles(function)
