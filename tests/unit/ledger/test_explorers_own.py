"""What Explorer traces and compiles for itself is nobody's recompile."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

x3, x4, x5 = (jnp.ones(n) for n in (3, 4, 5))

VERBS = {
    "explore": lambda f: ex.explore(f, x4),
    "explore, its passes": lambda f: ex.explore(f, x4).passes,
    "lint": lambda f: ex.lint(f, x4),
    "time": lambda f: ex.time(f, x4, seconds=0.05, progress=False),
    "profile": lambda f: ex.profile(f, x4, seconds=0.05),
    "memory": lambda f: ex.memory(f, x4),
    "compare": lambda f: ex.compare({"f": f, "g": lambda x: x * 3}, x4, seconds=0.05, progress=False),
    "sweep": lambda f: ex.sweep(f, over={"n": [4]}, args=lambda n: (x4,), seconds=0.02, progress=False),
    "roofline": lambda f: ex.roofline(f, x4),
    "what_if": lambda f: ex.what_if(f, x4, remat=True, seconds=0.05, progress=False),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_watch_sees_the_users_calls_alone(verb):
    f = jax.jit(lambda x: jnp.tanh(x) * 2)
    with ex.watch() as ledger:
        f(x3)
        VERBS[verb](f)
        f(x5)
    assert {(event.kind, event.call_site.line) for event in ledger.events if event.call_site} == {
        (kind, test_a_watch_sees_the_users_calls_alone.__code__.co_firstlineno + line)
        for kind in ("trace", "lower", "compile")
        for line in (4, 6)
    }
    (recompile,) = {event.reason.text for event in ledger.recompiles()}
    assert recompile == "`x.shape[0]` was 3 and is now 5"


def test_what_compile_builds_is_at_its_users_line_but_no_recompile_no_storm_and_in_no_cure():
    f = jax.jit(lambda x: jnp.tanh(x) * 2)
    batch = ex.NamedDimension("batch", 1, 4, 9)
    with ex.watch(storm=2) as ledger:
        f(x3)
        exe = ex.compile(f, args=[ex.InputInfo((batch,), jnp.float32)])
        for size in (6, 7, 8):
            exe(np.ones(size, np.float32))
        f(x5)
    (recompile,) = ledger.recompiles()
    assert str(recompile.reason) == "`x.shape[0]` was 3 and is now 5"
    assert (ledger.totals.recompiles, ledger.storms, ledger.faults) == (1, (), ())
    ahead = [event for event in ledger.events if event.key.function.is_ahead and event.kind == "compile"]
    assert [event.reason.kind for event in ahead] == ["shape"] * 4
    assert {event.call_site.text.partition("(")[0] for event in ahead} == {"exe = ex.compile", "exe"}
