"""Where a watch says that something was compiled: notebook cells, devices, libraries between."""

import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.capture.frames import user_places


@pytest.fixture
def shell():
    """A fresh IPython that keeps no history file."""
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    yield InteractiveShell.instance(config=config)
    InteractiveShell.clear_instance()


def callbacks(shell):
    return {name: list(those) for name, those in shell.events.callbacks.items()}


def run(shell, code):
    done = shell.run_cell(textwrap.dedent(code), store_history=True)
    done.raise_error()
    return done.execution_count


def test_in_a_notebook_events_have_cells_and_the_cells_have_times_and_nothing_stays_registered(shell):
    before = callbacks(shell)
    first = run(shell, "import explorer as ex, jax\nledger = ex.watch()\ndouble = jax.jit(lambda x: x * 2)")
    second = run(shell, "x = 1.0\ndouble(x)")
    run(shell, "double(2.0)")
    fourth = run(shell, "double(1)\nledger.stop()\ndouble(1.5j)")
    ledger = shell.user_ns["ledger"]
    assert callbacks(shell) == before
    assert [label for label, _, _ in ledger.cells] == [f"cell [{n}]" for n in range(first, fourth + 1)]
    assert all(
        start <= end <= later for (_, start, end), (_, later, _) in zip(ledger.cells, ledger.cells[1:], strict=False)
    )
    compiles = [event for event in ledger if event.kind == "compile"]
    assert [str(event.call_site) for event in compiles] == [f"cell [{second}], line 2", f"cell [{fourth}], line 1"]
    for event, (label, start, end) in zip(compiles, (ledger.cells[1], ledger.cells[3]), strict=True):
        assert event.call_site.label == label
        assert start <= event.start <= end


def test_a_cell_that_is_changed_and_run_again_compiles_its_function_again_as_the_same_one(shell):
    run(shell, "import explorer as ex, jax\nledger = ex.watch()")
    for change in (1, 2):
        run(shell, f"@jax.jit\ndef step(x):\n    return x * {change}\nstep(1.0)")
    run(shell, "ledger.stop()")
    first, second = (event for event in shell.user_ns["ledger"] if event.kind == "compile")
    assert (first.reason.kind, second.reason.kind) == ("first", "function")


DEVICES = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, jax.numpy as jnp, numpy as np, explorer as ex
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("d",))
x = jnp.ones((8, 4))
spread, copied = (jax.device_put(x, NamedSharding(mesh, P(*axes))) for axes in (("d",), ()))
double = jax.jit(lambda x: x * 2)
with ex.watch() as ledger:
    double(x), double(spread), double(copied), double(jax.device_put(x, jax.devices()[2]))
    with jax.default_device(jax.devices()[1]):
        double(np.ones((8, 4), "float32"))
assert not ledger.faults, ledger.faults
compiles = [event for event in ledger if event.kind == "compile" and event.function == "<lambda>"]
for event in compiles:
    print(event.device, event.reason.kind)
print("num_partitions=4" in ledger.capture(compiles[1]).hlo.text)
"""


@pytest.mark.slow
def test_the_device_is_that_of_the_program_one_or_several():
    done = subprocess.run([sys.executable, "-c", DEVICES], capture_output=True, text=True, timeout=120)
    *lines, partitioned = done.stdout.strip().splitlines() or [done.stderr]
    assert [line.split()[0] for line in lines] == ["cpu:0", "cpu:0-3", "cpu:0-3", "cpu:2", "cpu:1"], done.stderr
    assert [line.split()[1] for line in lines[:4]] == ["first", "sharding", "sharding", "sharding"]
    assert lines[4].split()[1] == "context"
    assert partitioned == "True"


@pytest.mark.slow
def test_a_librarys_frames_are_left_out_where_the_user_called_it():
    import optax

    optimizer = optax.adam(1e-3)
    params = {"w": jnp.ones(3)}
    state = optimizer.init(params)
    jax.clear_caches()
    with ex.watch() as ledger:
        optimizer.update(params, state, params)
    assert ledger.events
    assert {event.call_site.text for event in ledger} == {"optimizer.update(params, state, params)"}
    assert not any("optax" in place.file for event in ledger for place in event.stack)


def test_code_without_a_file_has_a_place_without_text():
    space = {"jax": jax}
    exec(compile("def call(f):\n    return f(1.0)\n", "<made>", "exec"), space)
    double = jax.jit(lambda x: x * 2)
    with ex.watch() as ledger:
        space["call"](double)
    place = ledger.events[0].call_site
    assert (place.file, place.line, place.text, place.function) == ("<made>", 2, "", "call")


def test_an_endless_recursion_is_cut():
    double = jax.jit(lambda x: x * 2)

    def down(n):
        return down(n - 1) if n else double(1.0)

    with ex.watch() as ledger:
        down(400)
    assert 100 <= len(ledger.events[0].stack) <= 200
    assert user_places(None) == ()
