"""Work on an executor's workers: the same values as here, what fails, what is cancelled, and who is lost."""

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.executors import distribution, pack, unpack


def doubled(shared, item):
    return shared * item[1]


def refuses(shared, item):
    raise ex.errors.OptionError(f"{shared} is none")


def noted(shared, item):
    Path(shared, str(item[1])).touch()
    threading.Event().wait(0.05)
    return item[1]


def x64(shared, item):
    return str(jnp.arange(3).dtype)


def ends_its_process(shared, item):
    """One item always ends its worker, another one the first time."""
    at = item[1]
    if at == 3 or (at == 5 and not Path(shared, "ended").exists()):
        Path(shared, "ended").touch()
        os._exit(1)
    return at * 10


def quiet(done, doing):
    pass


def threads():
    return ThreadPoolExecutor(2)


def processes():
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def run(executor, task, shared, count, notify=quiet):
    with executor, distribution(executor, task, shared, "sweep", notify) as work:
        return work.run((("do", at) for at in range(count)), "done"), work


def test_every_item_has_its_value_in_the_order_that_was_asked_for():
    outcomes, work = run(threads(), doubled, 10, 9)
    assert [outcome.value for outcome in outcomes] == [10 * at for at in range(9)]
    assert not any(outcome.failure for outcome in outcomes)
    assert work.notes() == []


def test_what_is_wrong_with_the_whole_call_is_raised_as_it_was_there():
    with pytest.raises(ex.errors.OptionError, match=r"^7 is none$"):
        run(threads(), refuses, 7, 3)


def test_workers_have_the_settings_of_the_session():
    with jax.enable_x64(True):
        (outcome,), _ = run(threads(), x64, None, 1)
    assert outcome.value == "int64"
    (outcome,), _ = run(threads(), x64, None, 1)
    assert outcome.value == "int32"


def test_progress_says_how_many_of_how_many_and_an_interrupt_cancels_what_has_not_begun(tmp_path):
    shown = []

    def notify(done, doing):
        shown.append((done, doing))
        if done >= 0.2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(ThreadPoolExecutor(1), noted, str(tmp_path), 20, notify)
    assert shown[-1][1].startswith("done: 4 of 20, on 1 workers")
    assert 4 <= len([*tmp_path.iterdir()]) <= 6


class Interrupting(ThreadPoolExecutor):
    """Interrupts the user's process once, while it reads the first result, which is there."""

    submitted = 0

    def submit(self, *args):
        future = super().submit(*args)

        def result(timeout=None):
            del future.result
            raise KeyboardInterrupt

        if not self.submitted:
            future.result = result
        self.submitted += 1
        return future


def test_an_interrupt_while_a_result_is_read_ends_the_call():
    executor = Interrupting(1)
    with pytest.raises(KeyboardInterrupt):
        run(executor, doubled, 10, 1)
    assert executor.submitted == 1


def interrupted_once(shared, item):
    if not Path(shared, "interrupted").exists():
        Path(shared, "interrupted").touch()
        raise KeyboardInterrupt
    return item[1]


def test_a_worker_that_is_interrupted_is_a_lost_one(tmp_path):
    outcomes, work = run(ThreadPoolExecutor(1), interrupted_once, str(tmp_path), 2)
    assert [outcome.value for outcome in outcomes] == [0, 1]
    assert work.redone == 1


@pytest.mark.parametrize("executor", [3, "dask", object()])
def test_what_is_no_executor_is_refused(executor):
    with pytest.raises(ex.errors.OptionError, match="executor is"), distribution(executor, doubled, 1, "sweep", quiet):
        pass


def test_processes_that_are_forks_are_refused():
    forks = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork"))
    with pytest.raises(ex.errors.OptionError, match="spawn"), distribution(forks, doubled, 1, "sweep", quiet):
        pass
    forks.shutdown()


def test_an_executor_that_was_shut_down_is_refused():
    executor = threads()
    executor.shutdown()
    with pytest.raises(ex.errors.OptionError, match="accepts no work"):
        run(executor, doubled, 1, 1)


def test_what_belongs_to_this_process_is_refused_before_any_work():
    lock = threading.Lock()
    with pytest.raises(ex.errors.ArgumentsError, match="lock"):
        pack(lambda: lock, "sweep")


def test_functions_of_a_notebook_keys_and_captures_arrive():
    scale = 3.0
    function, key, capture = unpack(
        pack((lambda x: x * scale, jax.random.key(7), ex.explore(jnp.tanh, jnp.ones(4))), "sweep")
    )
    assert function(2.0) == 6.0
    assert jax.random.bits(key) == jax.random.bits(jax.random.key(7))
    assert [stage.name for stage in capture.stages] == ["jaxpr", "stablehlo", "hlo"]
    assert len(capture.hlo.graph)


def test_compiled_functions_arrive_as_they_were_by_name_or_by_value():
    named, own = unpack(pack((jnp.sin, jax.jit(lambda x, n: x * n, static_argnames="n")), "sweep"))
    assert named is jnp.sin
    assert own.trace(jnp.ones(2), n=3).jaxpr is not None
    assert own(2.0, n=3) == 6.0
    elsewhere = jax.jit(jnp.sin, out_shardings=jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    with pytest.raises(ex.errors.ArgumentsError, match="places arrays on devices"):
        pack(elsewhere, "sweep")


def test_an_error_that_holds_a_capture_arrives_with_it():
    with pytest.raises(ex.errors.ExploreError) as caught:
        ex.explore(lambda x: x.reshape(7), jnp.ones(4))
    arrived = unpack(pack(caught.value, "sweep"))
    assert type(arrived) is type(caught.value)
    assert str(arrived) == str(caught.value)
    assert arrived.capture.function == caught.value.capture.function


@pytest.mark.slow
def test_an_item_whose_process_ends_is_done_again_and_one_that_always_ends_it_says_so(tmp_path):
    outcomes, work = run(processes(), ends_its_process, str(tmp_path), 8)
    assert [outcome.value for outcome in outcomes] == [0, 10, 20, None, 40, 50, 60, 70]
    assert [at for at, outcome in enumerate(outcomes) if outcome.failure] == [3]
    assert "its worker process ended, 3 times" in outcomes[3].failure
    assert "started again" in work.notes()[0]


@pytest.mark.slow
def test_processes_that_end_as_they_start_are_said_once():
    dying = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=os._exit, initargs=(3,))
    with pytest.raises(ex.errors.WorkerError, match="end as soon as they start"):
        run(dying, doubled, 1, 4)


ON_TWO_DEVICES = """
import jax, numpy
from explorer.executors import pack
mesh = jax.make_mesh((2,), ("x",))
try:
    pack(jax.device_put(numpy.ones(4), jax.NamedSharding(mesh, jax.P("x"))), "sweep")
except Exception as error:
    print(type(error).__name__, "2 devices" in str(error))
"""


@pytest.mark.slow
def test_an_array_over_several_devices_is_refused_rather_than_sent_to_one():
    flags = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run([sys.executable, "-c", ON_TWO_DEVICES], env=flags, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ArgumentsError", "True"]
