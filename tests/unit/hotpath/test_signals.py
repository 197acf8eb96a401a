"""Signals: parts of a program with a name, and the file that says what is done with them."""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.files.signals import read_signals
from explorer.hotpath import auto, signals
from explorer.hotpath.auto import active
from explorer.model.results.hot_paths import Shard, SignalSettings

X = jnp.linspace(0.1, 1.0, 64).reshape(8, 8)


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """Write a file of signals that the environment names."""

    def write(text):
        path = tmp_path / "signals.yaml"
        path.write_text(text, encoding="utf-8")
        monkeypatch.setenv("EXPLORER_CONFIG", str(path))
        return path

    yield write
    auto.configured.cache_clear()
    signals._named.cache_clear()


@pytest.fixture(autouse=True)
def _no_signal_is_left():
    auto.configured.cache_clear()
    signals._named.cache_clear()
    yield
    assert active() is None
    assert sys.getprofile() is None


def made():
    def chain(x):
        for _ in range(6):
            x = jnp.tanh(x @ x) * 2 + 1
        return x

    return chain


def test_a_file_is_read(tmp_path):
    path = tmp_path / "signals.yaml"
    path.write_text(
        "forward:\n  compile: true\n  optimization_level: 4\n  donate: false\n  shard:\n    axis: 1\n    workers: 2\n"
        "backward: {compile: false, shard: {axis: 0, workers: [1, 0]}}\nloss: {}\n"
    )
    assert read_signals(path) == {
        "forward": SignalSettings("forward", True, 4, Shard(1, (0, 1), 5), str(path), 1),
        "backward": SignalSettings("backward", False, 3, Shard(0, (1, 0), 8), str(path), 8),
        "loss": SignalSettings("loss", file=str(path), line=9),
    }


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "{}"])
def test_an_empty_file_says_nothing(tmp_path, text):
    path = tmp_path / "signals.yaml"
    path.write_text(text)
    assert read_signals(path) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n  compil: true\n", "line 2: there is no 'compil'; allowed are compile, .* Did you mean `compile`"),
        ("a:\n  compile: 1\n", "line 2: compile is 1; allowed are true and false"),
        ("a:\n  compile: 'yes'\n", "line 2: compile is 'yes'"),
        ("a:\n  optimization_level: 5\n", "line 2: optimization_level is 5; allowed are 0 to 4"),
        ("a:\n  optimization_level: true\n", "line 2: optimization_level is True"),
        ("a:\n\n  shard: {axs: 0, workers: 2}\n", "line 3: there is no 'axs'; allowed .* Did you mean `axis`"),
        ("a:\n  shard: {axis: 0}\n", "line 2: shard has no workers"),
        ("a:\n  shard: {axis: -1, workers: 2}\n", "line 2: axis is -1"),
        ("a:\n  shard: {axis: 0, workers: 0}\n", "line 2: workers is 0; allowed are a number from 1 on"),
        ("a:\n  shard: {axis: 0, workers: [0, 0]}\n", "line 2: workers has a device twice"),
        ("a:\n  shard: {axis: 0, workers: [0, -1]}\n", r"line 2: workers is \[0, -1\]"),
        ("a:\n  shard: 4\n", "line 2: 4 is given; expected is a mapping of axis, workers"),
        ("a:\n  donate: true\n", "line 2: donate can't be true: .* can't prove"),
        ("a: {}\nb: {}\na: {}\n", "line 3: 'a' is given twice"),
        ("a:\n  compile: true\n  compile: false\n", "line 3: 'compile' is given twice"),
        ("- a\n- b\n", r"line 1: \['a', 'b'\] is given; expected is a mapping from names of signals"),
        ("3: {}\n", "line 1: there is no 3; allowed are names"),
        ("a:\n  compile: !!python/object/apply:os.system [ls]\n", "line 2: this can't be read: could not determine"),
        ("a: [1\nb: {}", "this is no YAML"),
        ("a: \x00", "this is no YAML"),
    ],
)
def test_a_mistake_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "signals.yaml"
    path.write_text(text)
    with pytest.raises(ex.errors.SignalsError, match=message):
        read_signals(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ex.errors.SignalsError, match="can't be read: No such file"):
        read_signals(tmp_path / "none.yaml")


def test_what_a_block_calls_is_compiled_at_its_first_calls_and_is_what_it_was_after(configured):
    configured("forward: {compile: true}")
    chain = made()
    code, expected = chain.__code__, np.asarray(chain(X))
    for _ in range(20):
        with ex.signal("forward"):
            result = chain(X)
        assert chain.__code__ is code
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    (row,) = ex.signal("forward").functions
    assert (row.state, row.signal) == ("compiled", "forward")
    assert row.compiled_calls > 5
    assert repr(ex.signal("forward")) == "Signal('forward': compiled (signals.yaml, line 1))"


def test_what_only_seems_to_compute_stays_as_it_is(configured, capsys):
    configured("forward: {compile: true}")

    def shows(x):
        print("shown")
        return x + 1

    for _ in range(10):
        with ex.signal("forward"):
            shows(X)
    assert capsys.readouterr().out == "shown\n" * 10
    assert [row.state for row in ex.signal("forward").functions] == ["eager"]


def test_a_decorated_function_is_in_its_signal_and_keeps_its_name(configured):
    configured("forward: {compile: true}")

    @ex.signal
    def forward(x, scale=2.0):
        """Forward."""
        return jnp.tanh(x) * scale + jnp.sin(x)

    expected = np.asarray(forward.__wrapped__(X))
    for _ in range(12):
        result = forward(X)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert (forward.__name__, forward.__doc__) == ("forward", "Forward.")
    (row,) = ex.signal("forward").functions
    assert row.state == "compiled"
    # Under the user's own transformations it is an ordinary function.
    assert jax.grad(lambda x: forward(x).sum())(X).shape == X.shape


def test_what_is_not_to_be_compiled_is_left_alone_also_where_hot_paths_are_on(configured):
    configured("slow: {compile: false}")
    chain = made()
    code = chain.__code__
    with ex.auto_compile(threshold=1, seconds=0, background=False) as hot:
        for _ in range(50):
            with ex.signal("slow"):
                chain(X)
                assert chain.__code__ is code
    assert [row for row in hot.functions if row.name.endswith("chain")] == []


def test_a_signal_may_be_entered_again_inside_of_itself(configured):
    configured("forward: {compile: true}")
    chain = made()
    with ex.signal("forward"), ex.signal("forward"):
        chain(X)
    assert active() is None


def test_without_a_file_it_is_a_name_and_with_the_environment_it_is_compiled(monkeypatch):
    monkeypatch.delenv("EXPLORER_CONFIG", raising=False)
    chain = made()
    with ex.signal("forward"):
        chain(X)
    assert ex.signal("forward").functions == ()
    assert ex.signal("forward") is ex.signal("forward")
    signals._named.cache_clear()
    monkeypatch.setenv("EXPLORER_COMPILE", "1")
    for _ in range(12):
        with ex.signal("forward"):
            chain(X)
    assert [row.state for row in ex.signal("forward").functions] == ["compiled"]


def test_a_profiler_that_is_on_keeps_its_place(configured):
    configured("forward: {compile: true}")
    calls = []

    def profile(frame, event, argument):
        calls.append(event)

    sys.setprofile(profile)
    try:
        with ex.signal("forward"):
            made()(X)
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)
    assert calls


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_name_is_a_text(name):
    with pytest.raises(ex.errors.OptionError, match="takes a name, or a function"):
        ex.signal(name)


def test_what_is_decorated_is_a_function():
    with pytest.raises(ex.errors.NotCallableError):
        ex.signal("forward")(3)


def test_more_workers_than_devices_are_refused(configured):
    path = configured("forward:\n  shard: {axis: 0, workers: 4096}")
    with pytest.raises(
        ex.errors.SignalsError, match=f"{path}, line 2: workers has device {jax.device_count()}; this machine"
    ):
        ex.signal("forward").place(X)


SHARDED = """\
import json, warnings
import jax, jax.numpy as jnp, numpy as np
import explorer as ex
W = [jnp.full((8, 8), .1), jnp.ones(8)]
X = jnp.linspace(0, 1, 64 * 8).reshape(64, 8)
def plain(w, x):
    return jnp.tanh(x @ w[0] + w[1]).sum(axis=1), (x * 2).mean()
forward = ex.signal("forward")(plain)
expected = plain(W, X)
for _ in range(12):
    results = forward(W, X)
for one, two in zip(expected, results):
    np.testing.assert_allclose(one, two, rtol=1e-5)
try:
    forward(W, X[:30])
except ex.errors.SignalsError as error:
    refused = str(error)
rows = [[row.state, row.reason] for row in ex.signal("forward").functions]
placed = ex.signal("forward").place(X)
print(json.dumps([[len(r.devices()) for r in results], rows, refused, str(placed.sharding.spec)]))
"""


@pytest.mark.slow
def test_a_sharded_signal_gives_the_same_values_on_all_its_devices(configured, tmp_path):
    path = configured("forward:\n  compile: true\n  shard: {axis: 0, workers: 4}\n")
    environ = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    script = tmp_path / "sharded.py"  # the proof reads the source
    script.write_text(SHARDED)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environ)
    assert done.returncode == 0, done.stderr
    devices, rows, refused, spec = json.loads(done.stdout)
    assert devices == [4, 4]
    assert rows == [["compiled", ""]]
    assert refused.startswith(f"{path}, line 3: axis 0 of argument 1 has 30 elements, which 4 workers can't share")
    assert spec in ("PartitionSpec('workers',)", "P('workers',)")


def test_a_slip_in_a_signals_name_is_said_with_the_nearest_one_at_the_users_line(configured):
    configured("# what is compiled\nforward:\n  compile: true\nloss: {}\n")
    with pytest.warns(ex.errors.UnknownSignalWarning, match=r"signal 'foward' isn't in signals.yaml") as warned:
        slip = ex.signal("foward")
    assert str(warned[0].message).endswith("so nothing is done for it; did you mean 'forward' (line 2)?")
    assert warned[0].filename == __file__
    assert repr(slip) == "Signal('foward': a name alone)"
    with pytest.warns(ex.errors.UnknownSignalWarning):

        @ex.signal
        def forwards(x):
            return x

    ex.signal("forward")
    ex.signal("metrics")  # nothing like it is in the file: a name alone may be meant
