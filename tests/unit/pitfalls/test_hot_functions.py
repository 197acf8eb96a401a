"""lint of functions that hot paths met: their guards hold what is read, and what keeps one eager is a finding."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex

X = jnp.ones(64)
settings = {"rate": 2.0}


@pytest.fixture(autouse=True)
def _worth_it_however_busy_the_machine_is(monkeypatch):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)


def scaled(x):
    return jnp.tanh(x) * settings["rate"]


def printing(x):
    y = jnp.tanh(x)
    print("called")
    return y


def change():
    settings["rate"] = 3.0


@pytest.fixture
def hot():
    with ex.auto_compile(background=False, seconds=0.0, threshold=3) as hot:
        for function in (scaled, printing):
            hot.nominate(function)
            for _ in range(8):
                function(X)
        assert [hot.report()[name].state for name in ("scaled", "printing")] == ["compiled", "eager"]
        yield hot


def test_what_a_hot_function_reads_is_guarded_and_so_never_stale(hot):
    assert not ex.lint(scaled, X)
    assert [finding.rule for finding in ex.lint(jax.jit(scaled), X)] == ["stale-closure"]
    hot.stop()
    assert [finding.rule for finding in ex.lint(scaled, X)] == ["stale-closure"]


def test_why_a_function_stays_eager_is_a_finding_with_its_line_and_cure(hot):
    row = hot.report()["printing"]
    for _ in range(2):
        findings = ex.lint(printing, X)
        finding = next(iter(findings.of("stays-eager")))
        assert str(finding.message) == "hot paths leave printing as it is written: it prints"
        assert (finding.line, finding.text) == (row.reason_line, 'print("called")')
        assert finding.fix.text == row.cure == "jax.debug.print prints in compiled code too"
        calls = f"it was called {row.eager_calls} times at top level before that was found, "
        assert finding.evidence.startswith(calls)
        assert not findings.faults
        hot.stop()  # what was learned is there for who looks after


def test_it_can_be_silenced_and_is_no_matter_of_a_jit(hot):
    assert not ex.lint(printing, X, ignore="stays-eager").of("stays-eager")
    assert not ex.lint(jax.jit(printing), X).of("stays-eager")


def test_a_callable_that_cant_be_hashed_is_looked_at_as_any_other():
    class Unhashable:
        __hash__ = None

        def __call__(self, x):
            return jnp.sin(x) * 2

    with ex.auto_compile():
        pass
    assert ex.lint(Unhashable(), jnp.ones(3)).faults == ()
