"""Several callables, measured in turns."""

import sys
import time
from functools import partial
from types import ModuleType, SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.measure.calls import ready
from explorer.model.results.timing import Comparison, Samples

X = jnp.arange(8.0)
QUICK = {"seconds": 0.05, "progress": False}


def of(seconds, count=20):
    return Samples(tuple(seconds * (1 + 0.001 * (i % 3)) for i in range(count)))


def test_what_takes_five_times_as_long_is_seen_to():
    compared = ex.compare({"short": lambda: time.sleep(0.002), "long": lambda: time.sleep(0.02)}, **QUICK)
    assert compared.baseline == "short"
    assert compared["long"].ratio > 2
    assert compared["long"].low > 1
    assert "slower" in str(compared["long"])


def test_a_function_and_itself_are_compared_within_the_same_rounds():
    compared = ex.compare({"a": jax.jit(jnp.sin), "b": jax.jit(jnp.sin)}, X, baseline="b", **QUICK)
    assert compared.samples["a"].count == compared.samples["b"].count == compared.rounds
    assert compared.baseline == "b"
    assert list(compared.ratios) == ["a"]
    assert compared.signature.endswith("f32[8])")


def test_every_round_has_every_candidate_once_and_their_order_changes():
    turns = []
    names = ("a", "b", "c")

    def turn(name):
        turns.append(name)
        time.sleep(0.006)

    candidates = {name: partial(turn, name) for name in names}
    compared = ex.compare(candidates, **QUICK)
    raced = turns[-3 * compared.rounds :]
    rounds = [tuple(raced[i : i + 3]) for i in range(0, len(raced), 3)]
    assert all(sorted(one) == [*names] for one in rounds)
    more = ex.compare(candidates, seconds=0.3, progress=False)
    raced = turns[-3 * more.rounds :]
    assert len({tuple(raced[i : i + 3]) for i in range(0, len(raced), 3)}) > 1


def test_the_users_random_numbers_are_not_drawn():
    import random

    random.seed(4)
    expected = random.Random(4).random()
    ex.compare({"a": jnp.sin, "b": jnp.cos}, X, check=False, **QUICK)
    assert random.random() == expected


def test_a_candidate_may_have_arguments_of_its_own():
    seen = {}
    compared = ex.compare(
        {
            "theirs": (lambda y: seen.setdefault("theirs", y), (3,)),
            "one": (lambda y: seen.setdefault("one", y), 4),
            "shared": lambda x, k=0: seen.setdefault("shared", (x, k)),
        },
        1,
        k=2,
        check=False,
        **QUICK,
    )
    assert seen == {"theirs": 3, "one": 4, "shared": (1, 2)}
    assert compared.signature == ""


def test_donated_arguments_survive_all_candidates():
    donating = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = X + 0
    ex.compare({"donating": donating, "plain": jax.jit(lambda x: x + 1)}, x, **QUICK)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize(
    ("function", "note"),
    [
        (lambda x: x + 1e-9, None),
        (lambda x: x * 2, "other and same return different numbers: by up to 1 of the largest"),
        (lambda x: (x, x), "other returns 2 arrays, same 1"),
        (lambda x: x[:4], r"other returns an array of shape (4,), same of (8,)"),
        (lambda x: jnp.where(x > 3, jnp.nan, x), "one of other and same returns NaN where the other does not"),
        (np.asarray, None),
    ],
)
def test_a_difference_of_the_results_is_a_note(function, note):
    compared = ex.compare({"same": lambda x: x + 0, "other": function}, X, **QUICK)
    told = [one for one in compared.notes if "return" in one]
    assert told == ([] if note is None else [note])
    assert not any("return" in one for one in ex.compare(
        {"same": lambda x: x + 0, "other": function}, X, check=False, **QUICK).notes)  # fmt: skip


def test_arrays_of_mlx_and_of_torch_on_a_gpu_are_waited_for_by_their_own_means(monkeypatch):
    waited = []
    mlx, torch = ModuleType("mlx.core"), ModuleType("torch")
    mlx.eval = waited.append
    torch.cuda = SimpleNamespace(synchronize=waited.append)
    monkeypatch.setitem(sys.modules, "mlx.core", mlx)
    monkeypatch.setitem(sys.modules, "torch", torch)
    lazy = type("array", (), {"__module__": "mlx.core"})()
    tensor = type("Tensor", (), {"__module__": "torch", "device": SimpleNamespace(type="cuda")})()
    ready({"a": [lazy], "b": tensor})
    assert waited == [lazy, tensor.device]


def test_mlx_and_torch_where_they_are_installed_are_compared():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.ones(8)
    compared = ex.compare({"jax": jax.jit(jnp.sin), "torch": (torch.sin, (x,))}, jnp.ones(8), **QUICK)
    assert not any("return" in note for note in compared.notes)


# The border ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", [{}, {"one": jnp.sin}, [jnp.sin, jnp.cos], jnp.sin, None])
def test_less_than_two_by_name_are_refused(candidates):
    with pytest.raises(ex.errors.ArgumentsError, match="compare takes two callables or more by name"):
        ex.compare(candidates, X)


def test_what_can_t_be_called_is_refused_by_name():
    with pytest.raises(ex.errors.NotCallableError, match="candidate 'b' is of type int"):
        ex.compare({"a": jnp.sin, "b": 3}, X)
    with pytest.raises(ex.errors.NotCallableError, match="candidate 'b' is of type str"):
        ex.compare({"a": jnp.sin, "b": ("x", (1,))}, X)


def test_a_baseline_that_isn_t_there_is_refused():
    with pytest.raises(ex.errors.OptionError, match="there is no candidate 'c' for the baseline; there are a, b"):
        ex.compare({"a": jnp.sin, "b": jnp.cos}, X, baseline="c")


# What it says -------------------------------------------------------------------------------------------------------


def test_a_comparison_says_the_ratio_and_where_no_difference_is_seen():
    old = of(0.04)
    compared = Comparison({"old": old, "new": of(0.01), "same": of(0.0400001)}, "old", "(x: f32[8])", ("a note",))
    assert repr(compared) == (
        "Comparison(new is 4.0× faster (3.96 … 4.04×) than old)\n"
        "  old    40 ms    the baseline\n"
        "  new    10 ms    4.0× faster (3.96 … 4.04×)\n"
        "  same   40 ms    no difference seen (0.99 … 1.01×)\n"
        "  20 rounds, each in its own order\n"
        "  note: a note"
    )
    assert compared.fastest == "new"
    slower = Comparison({"old": old, "new": of(0.08)}, "old")
    assert slower.headline == "new is 2.0× slower (1.98 … 2.02×) than old"
    shaken = Samples(tuple(0.04 * (1 + (0.1 if i % 2 else -0.1)) for i in range(20)))
    nothing = Comparison({"old": old, "new": shaken}, "old")
    assert nothing.headline == "no difference seen between old and new (0.90 … 1.10×)"
    assert nothing["new"].is_same


def test_every_figure_is_in_the_frames():
    compared = Comparison({"old": of(0.04), "new": of(0.01)}, "old")
    frame = compared.to_frame().set_index("name")
    assert frame.loc["new", "ratio"] == pytest.approx(0.25)
    assert frame.loc["old", ["ratio", "ratio_low", "ratio_high"]].tolist() == [1, 1, 1]
    assert {"median", "low", "high", "fastest", "spread", "samples", "calls"} <= {*frame.columns}
    rounds = compared.to_frame(samples=True)
    assert list(rounds.columns) == ["old", "new"]
    assert len(rounds) == 20


def test_a_comparison_is_shown_as_a_chart_with_picture_table_and_text():
    pytest.importorskip("plotly", reason="plotly is not installed")
    compared = Comparison({"o<d": of(0.04), "new": of(0.01)}, "o<d", "(x: f32[8])", ("a note",))
    bundle = compared._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.plotly.v1+json", "text/html", "text/plain"}
    assert bundle["text/plain"] == repr(compared)
    chart = compared.chart()
    assert "4.0× faster" in chart.svg
    assert "o&lt;d" in chart.svg
    assert "nan" not in chart.svg
    assert "a note" in chart.svg
    assert chart.description.startswith("new is 4.0× faster")
    assert repr(chart) == "Chart(comparison of o<d, new)"
