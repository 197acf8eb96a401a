"""optimization_level: 0 to 4 tell XLA more or less, 5 measures; none alters the result."""

import re
from html.parser import HTMLParser

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.aot import levels

pytestmark = pytest.mark.slow

F32 = ex.InputInfo((2, 8), jnp.float32)
X = jnp.arange(16, dtype=jnp.float32).reshape(2, 8) / 16


def program(x):
    return jax.nn.gelu(x @ x.T) + jnp.log1p(x).sum()


@pytest.mark.parametrize("shape", [(2, 8), ((1, 2, 4), 8)], ids=["static", "dynamic"])
@pytest.mark.parametrize("level", [0, 1, 2, 3, 4])
def test_every_level_gives_the_same_result(level, shape):
    fast = ex.compile(program, args=[ex.InputInfo(shape, jnp.float32)], optimization_level=level)
    np.testing.assert_allclose(fast(X), program(X), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(fast)(X), program(X), rtol=1e-5)
    assert fast.autotuning is None


@pytest.mark.parametrize("level", [-1, 6, True, "3", None, 3.0, [3], np.int64(3)])
def test_a_level_out_of_range_is_refused_naming_the_allowed_ones(level):
    with pytest.raises(ex.errors.OptionError, match=rf"{re.escape(repr(level))}; allowed are 0 to 5\."):
        ex.compile(lambda x: x, args=[F32], optimization_level=level)


def test_a_level_may_be_given_by_position_and_to_the_older_form():
    np.testing.assert_allclose(ex.compile(program, 0, args=[F32])(X), program(X), rtol=1e-5)
    np.testing.assert_allclose(
        ex.compat.tripy.Compiler(program).compile(F32, optimization_level=0)(X), program(X), rtol=1e-5
    )
    with pytest.raises(ex.errors.OptionError):
        ex.compat.tripy.Compiler(program).compile(F32, optimization_level=6)


def test_a_level_reaches_the_compiler():
    def long(x):
        for i in range(20):
            x = jnp.sin(x @ x.T @ x) * i
        return x

    def size(level):
        fast = ex.compile(long, args=[F32], optimization_level=level)
        return len(fast._opt.compiled.runtime_executable().serialize())  # nothing public tells one binary from another

    noise = 500  # bytes: the module's number is in it, and that grows from compilation to compilation
    assert abs(size(1) - size(1)) < noise < abs(size(1) - size(3))


@pytest.fixture(scope="module")
def tuned():
    return ex.compile(program, 5, args=[ex.InputInfo(((1, 2, 4), 8), jnp.float32)])


def test_level_5_measures_candidates_on_the_shape_to_optimise_for(tuned):
    first, *others = tuned.autotuning.candidates
    assert (first.options, first.name) == ({}, "XLA's default")
    assert others
    assert all(
        len(one.samples) == len(first.samples) > 0 and one.compile_seconds > 0 for one in others if not one.error
    )
    assert len({one.name for one in (first, *others)}) == 1 + len(others)


def test_level_5_keeps_the_fastest_unless_that_is_no_faster_than_the_default(tuned):
    first = tuned.autotuning.candidates[0]
    fastest = min(tuned.autotuning.candidates, key=lambda one: one.seconds)
    assert tuned.autotuning.chosen in (first, fastest)
    assert tuned.autotuning.chosen.seconds <= first.seconds
    assert {row[0] for row in tuned.autotuning.rows() if row[-1] == "kept"} == {tuned.autotuning.chosen.name}


def test_level_5_gives_the_same_result_for_every_shape(tuned):
    for n in (1, 2, 4):
        np.testing.assert_allclose(
            tuned(X[:n] if n < 3 else jnp.tile(X, (2, 1))), program(X[:n] if n < 3 else jnp.tile(X, (2, 1))), rtol=1e-5
        )


class Cells(HTMLParser):
    """The text of a table's cells."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.cell = [], None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        self.rows[-1][-1] += data


def test_what_level_5_measured_is_a_table_as_text_and_as_html(tuned):
    rows = [("options", "a run", "of default", "compile", "choice"), *tuned.autotuning.rows()]
    assert [tuple(row) for row in Cells(tuned.autotuning._repr_html_()).rows] == rows
    lines = str(tuned.autotuning).splitlines()
    assert [line.split("  ")[0] for line in lines] == [row[0] for row in rows]
    assert lines[0].split() == ["options", "a", "run", "of", "default", "compile", "choice"]
    assert rows[1][:1] + rows[1][2:3] == ("XLA's default", "1.00×")
    assert repr(tuned.autotuning) == f"Autotuning({len(rows) - 1} candidates)"


def test_a_candidate_that_does_not_compile_is_listed_with_why_and_never_chosen(monkeypatch):
    backend = jax.default_backend()
    tried = ({"xla_no_such_option": True}, {"xla_backend_optimization_level": 1})
    monkeypatch.setitem(levels.TRIED, backend, tried)  # an option that fails can't be had else
    tuned = ex.compile(program, 5, args=[F32])
    (failed,) = [one for one in tuned.autotuning.candidates if not one.samples]
    assert failed.name == "xla_no_such_option=True"
    assert "xla_no_such_option" in failed.error
    assert failed is not tuned.autotuning.chosen
    assert [failed.error in row for row in tuned.autotuning.rows()].count(True) == 1
    assert failed.error.split()[0] in str(tuned.autotuning)
    np.testing.assert_allclose(tuned(X), program(X), rtol=1e-5)


def test_level_5_works_with_donated_inputs_random_keys_and_sizes():
    def draw(x, key, n):
        return x + jax.random.normal(key, x.shape) + jnp.zeros((n, 8)).sum()

    key = jax.random.key(0)
    infos = [F32, ex.InputInfo.like(key), ex.compat.tripy.DimensionInputInfo((1, 2, 4))]
    tuned = ex.compile(draw, 5, args=infos, donate=["x"])
    np.testing.assert_allclose(tuned(X + 0, key, 3), draw(X, key, 3), rtol=1e-5)


def test_level_5_of_a_function_that_does_not_compile_fails_as_the_others_do():
    def wrong(x):
        return x @ x

    for level in (3, 5):
        with pytest.raises(ex.errors.ExploreError, match="wrong could not be compiled"):
            ex.compile(wrong, level, args=[F32])


@pytest.mark.parametrize("limit", [0, -1, True, 2.0, "3", None])
def test_a_limit_of_binaries_that_is_none_is_refused(limit):
    with pytest.raises(ex.errors.OptionError, match="allowed is an int of at least 1"):
        ex.compile(program, args=[F32], max_specializations=limit)


@pytest.mark.parametrize("donate", ["y", ["y"], ["x", "y"], [1], [None], 2.0])
def test_what_can_not_be_donated_is_refused(donate):
    with pytest.raises(ex.errors.OptionError, match="donate has"):
        ex.compile(program, args=[F32], donate=donate)
