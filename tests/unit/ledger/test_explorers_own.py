"""What Explorer traces and compiles for itself is nobody's recompile."""

import jax
import jax.numpy as jnp
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
