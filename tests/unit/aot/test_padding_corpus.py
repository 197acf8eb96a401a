"""Padded programs against the functions themselves: at every size, with poison in the padding, never a wrong number."""

from collections import Counter

import jax
import pytest
from hypothesis import HealthCheck, given, settings

from tests.corpus_padding import coverage
from tests.corpus_padding.cases import Case
from tests.corpus_padding.compositions import compositions
from tests.corpus_padding.door import judge_door
from tests.corpus_padding.functions import MODULES, cases, numpy_names
from tests.corpus_padding.judge import CRASHED, EXACT, NO_CASE, REFUSED, UNTRACED, WRONG, difference, judge

# Cheap ones, of every family of rules.
FEW = (
    *("jnp.mean(x, -1)", "nn.softmax(x, where=y)", "jnp.einsum('bi,bi->b', x, y)", "x.reshape(-1, x.shape[2]) @ y"),
    *("x[::-1]", "x.at[y].add(z, mode='clip')", "jnp.argsort(x, -1)", "jnp.argmax(jnp.full_like(x, -128))"),
    *("lax.scan(lambda c, v: (c + v, c * v), 0.0, x)", "lax.cumsum(x, 0, reverse=True)"),
)
# What one program for every size can't be.
SURELY_REFUSED = {"lax.conv(x, y, (2, 2), 'SAME')", "random.normal(x, y.shape)"}


def of_name(name):
    return next(case for case in cases(*MODULES[:4]) if case.name == name)


@pytest.mark.parametrize("name", FEW)
def test_padding_never_reaches_a_result(name):
    verdict = judge(of_name(name), few=True)
    assert verdict.outcome == EXACT, verdict.reasons
    assert verdict.comparisons > 4


def test_the_judge_sees_a_number_that_padding_reached(monkeypatch):
    def unmasked(closed, bucket, fills=()):
        return lambda sizes, x: [x.sum()]

    monkeypatch.setattr("tests.corpus_padding.judge.padded", unmasked)
    verdict = judge(Case("sum", lambda x: x.sum(), "f[s]"), few=True)
    assert verdict.outcome == WRONG
    assert verdict.reasons[0].startswith("output 0 at {'s': 1}, poison nan: nan instead of ")


def test_the_judge_sees_another_dtype_shape_and_number():
    right = jax.numpy.array([1.0, jax.numpy.nan])
    assert difference(right, (2,), right) == ""
    assert "dtype" in difference(right.astype(int), (2,), right)
    assert "shape" in difference(right, (1,), right)
    assert "instead of" in difference(right.at[0].add(1e-3), (2,), right)
    assert "instead of" in difference(right[::-1], (2,), right)


def test_all_of_jax_nn_is_judged():
    listed = " ".join(case.name for case in numpy_names.CASES)
    public = {name for name in dir(jax.nn) if not name.startswith("_") and callable(getattr(jax.nn, name))}
    missing = {name for name in public - numpy_names.NOT_ARRAYS if f"nn.{name}(" not in listed}
    assert missing - {"initializers"} == set()


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_every_function_is_exact_or_refused(module):
    verdicts = [judge(case, few=True) for case in cases(module)]
    faults = [(v.case.name, v.reasons) for v in verdicts if v.outcome in (WRONG, CRASHED, NO_CASE)]
    assert faults == []
    counts = Counter(v.outcome for v in verdicts if v.case.name not in SURELY_REFUSED)
    assert counts[EXACT] >= 0.8 * counts.total(), [(v.case.name, v.reasons) for v in verdicts if v.outcome != EXACT]
    if module == "numpy_names":
        found = coverage.shares(verdicts)
        for kind, least in (("batch axis", 0.95), ("reduced axis", 0.8)):
            exact, of = found["all", kind]
            assert exact >= least * of, coverage.table(verdicts)


@pytest.mark.slow
def test_derivatives_are_exact_or_refused():
    gradients = [gradient for case in cases()[::12] if (gradient := case.gradient())]
    verdicts = [judge(gradient, few=True) for gradient in gradients]
    assert [(v.case.name, v.reasons) for v in verdicts if v.outcome in (WRONG, CRASHED)] == []
    counts = Counter(v.outcome for v in verdicts)
    assert counts[EXACT] >= 0.85 * (counts.total() - counts[NO_CASE] - counts[UNTRACED])


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(compositions())
def test_what_is_composed_of_exact_steps_is_exact_or_refused(case):
    verdict = judge(case, few=True)
    assert verdict.outcome in (EXACT, REFUSED, UNTRACED, NO_CASE), verdict.reasons


@pytest.mark.slow
def test_compile_gives_what_jit_gives():
    for case in cases(*MODULES[:-1])[::25]:
        verdict = judge_door(case)
        assert verdict.outcome in (EXACT, REFUSED), (case.name, verdict.reasons)
