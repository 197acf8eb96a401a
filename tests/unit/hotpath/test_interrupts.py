"""Ctrl-C at any place of Explorer leaves the program as it was: a real signal, while the main thread is there."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.hotpath.comparison import BothWays
from explorer.hotpath.compiled import at_once
from explorer.hotpath.hot import HotFunction, Options

pytestmark = pytest.mark.skipif(
    sys.gettrace() is not None, reason="what measures coverage has locks of its own, which an interrupt leaves closed"
)

X = jnp.linspace(0.1, 1.0, 64 * 64).reshape(64, 64)
SCALE = jnp.float32(3)


def chain(x):
    for _ in range(6):
        x = jnp.tanh(x @ x) * SCALE + 1
    return x


def tools():
    monitoring = getattr(sys, "monitoring", None)
    return [monitoring.get_tool(number) for number in range(6)] if monitoring is not None else []


def is_sampled():
    """Whether a thread looks at stacks; one that began when it was over already is there a moment longer."""
    time.sleep(0.02)
    frames = [frame for frame in sys._current_frames().values() if frame.f_code.co_name == "_watch"]
    return any("explorer/hotpath" in frame.f_code.co_filename for frame in frames)


class Interrupt:
    """Sends SIGINT to the process as soon as the main thread is in a function of this name, of Explorer's."""

    def __init__(self, name):
        self._name, self._over, self.sent = name, threading.Event(), False
        self._thread = threading.Thread(target=self._send)

    def _send(self):
        main = threading.main_thread().ident
        while not self._over.is_set():
            frame = sys._current_frames().get(main)
            while frame is not None:
                if frame.f_code.co_name == self._name and "explorer/hotpath" in frame.f_code.co_filename:
                    self.sent = True
                    os.kill(os.getpid(), signal.SIGINT)
                    return
                frame = frame.f_back
            time.sleep(0)

    def __enter__(self):
        self._before = signal.signal(signal.SIGINT, signal.default_int_handler)
        gc.disable()  # JAX's callback there swallows what interrupts it
        self._switch = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)  # for it to see what takes microseconds
        self._thread.start()
        return self

    def wait(self):
        """An interrupt that was said to be sent comes here at the latest, not where nothing expects it."""
        self._over.set()
        self._thread.join()
        time.sleep(0.05)

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()
        sys.setswitchinterval(self._switch)
        gc.enable()
        signal.signal(signal.SIGINT, self._before)


def interrupted(name, work, seconds=8.0):
    """Do work again and again until an interrupt comes while the main thread is in a function; whether one did."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with Interrupt(name) as interrupt:
            try:
                while not interrupt.sent and time.monotonic() < until:
                    work()
                interrupt.wait()
            except KeyboardInterrupt:
                return True
    return False


@pytest.fixture
def as_before():
    """What must be as it was: tools, threads, JAX's array class, warnings."""
    import warnings

    before = tools(), is_sampled(), warnings.warn, dict(vars(type(X)))
    yield
    assert (tools(), is_sampled(), warnings.warn, dict(vars(type(X)))) == before


@pytest.mark.parametrize("place", ["at_once", "run_both", "_timed", "_eager", "_learn"])
@pytest.mark.usefixtures("as_before")
def test_an_interrupt_on_the_way_to_compiled_leaves_the_function_as_it_was(place):
    own, expected = chain.__code__, np.asarray(chain(X))

    def work():
        hot = HotFunction(chain, Options(1, 0.0, at_once, is_forced=True))
        hot.watch()
        try:
            for _ in range(150):
                np.testing.assert_allclose(chain(X), expected, rtol=1e-4)
        finally:
            hot.release()
        assert hot.state == "compiled", hot.refusal

    assert interrupted(place, work)
    assert chain.__code__ is own
    work()  # and it can be made hot again
    assert chain.__code__ is own


class Key:
    """A static argument whose comparison is interrupted."""

    interrupted = False

    def __hash__(self):
        return 0

    def __eq__(self, other):
        if self.interrupted:
            raise KeyboardInterrupt
        return True


@pytest.mark.parametrize("place", ["comparison", "compiled"])
@pytest.mark.usefixtures("as_before")
def test_an_interrupt_that_jax_made_an_error_of_is_one_again_and_refuses_nothing(place, monkeypatch):
    keyed = jax.jit(lambda x, key: x, static_argnums=1)
    for _ in range(place == "compiled" or 3):  # before and on the fast path
        keyed(SCALE, Key())
    monkeypatch.setattr(Key, "interrupted", True)
    with pytest.raises(ValueError, match=r"__eq__|equality") as raised:
        keyed(SCALE, Key())

    def interrupted_run(*_):
        raise raised.value

    hot = HotFunction(chain, Options(1, 0.0, at_once, is_forced=True))
    hot.watch()
    try:
        for _ in range(10 if place == "compiled" else 1):
            chain(X)
        with monkeypatch.context() as patched:
            if place == "compiled":
                patched.setattr("explorer.hotpath.comparison.Variant.run", interrupted_run)
            else:
                patched.setattr("explorer.hotpath.comparison.run_both", lambda *_: BothWays(error=raised.value))
            with pytest.raises(KeyboardInterrupt):
                chain(X)
        for _ in range(10):
            chain(X)
        assert hot.state == "compiled", hot.refusal
    finally:
        hot.release()


@pytest.mark.parametrize("place", ["watch", "release", "_stop", "_start", "stop", "start", "_pause", "_resume"])
@pytest.mark.usefixtures("as_before")
def test_an_interrupt_while_hot_paths_go_on_or_off_leaves_everything_as_it_was(place, monkeypatch):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)  # however busy the machine is
    own = chain.__code__
    paths = ex.auto_compile(threshold=1, seconds=0.0, background=False)
    with paths:
        paths.nominate(chain)
        for _ in range(5):
            chain(X)

    def work():
        with paths:
            chain(X)

    assert interrupted(place, work)
    assert not paths.on
    assert chain.__code__ is own
    with paths:
        assert chain.__code__ is not own
        chain(X)
    assert chain.__code__ is own


SCRIPT = """
import gc, random, signal, sys, time
import jax, jax.numpy as jnp, numpy as np
import explorer as ex

x = jnp.linspace(0.1, 1.0, 64).reshape(8, 8)
def step(x):
    for _ in range(3):
        x = jnp.tanh(x) * 2 + 1
    return x

own, expected = step.__code__, np.asarray(step(x))
monitoring = getattr(sys, "monitoring", None)
random.seed(int(sys.argv[1]))
gc.disable()  # JAX has a callback there that swallows what interrupts it
count = 0
for turn in range(60):
    paths = ex.auto_compile(threshold=2, seconds=0.0, background=bool(turn % 2))
    try:
        signal.setitimer(signal.ITIMER_REAL, random.random() * 0.06)
        with paths:
            for _ in range(400):
                step(x)
        while True:
            pass
    except BaseException:  # JAX makes another error of it where it compares keys of its caches
        count += 1
    assert step.__code__ is own, (turn, paths)
    assert not paths.on
    assert monitoring is None or not any("explorer" in (monitoring.get_tool(i) or "") for i in range(6))
    until = time.monotonic() + 2
    while any(frame.f_code.co_name == "_watch" for frame in sys._current_frames().values()):
        assert time.monotonic() < until
    np.testing.assert_allclose(step(x), expected, rtol=1e-5)
print(count)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_interrupts_at_any_time_leave_everything_as_it_was(tmp_path, seed):
    script = tmp_path / "script.py"
    handler = "import signal\nsignal.signal(signal.SIGALRM, signal.default_int_handler)\n"
    script.write_text(handler + textwrap.dedent(SCRIPT))
    done = subprocess.run([sys.executable, script, f"{seed}"], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.strip() == "60", done.stderr[-2000:]


def test_where_one_set_of_options_does_not_compile_the_others_are_kept():
    def f(x):
        return jnp.tanh(x @ x) * 2

    sets = ({}, {"xla_there_is_no_such_option": True}, {"xla_cpu_enable_fast_math": False})
    hot = HotFunction(f, Options(1, 0.0, at_once, is_forced=True, xla=sets))
    hot.watch()
    for _ in range(20):
        jax.block_until_ready(f(X))
    hot.release()
    assert (hot.state, hot.refusal) == ("compiled", None)
    none = HotFunction(f, Options(1, 0.0, at_once, is_forced=True, xla=sets[1:2]))
    none.watch()
    for _ in range(6):
        jax.block_until_ready(f(X))
    assert none.state == "eager"
    assert "xla_there_is_no_such_option" in none.refusal.reason
