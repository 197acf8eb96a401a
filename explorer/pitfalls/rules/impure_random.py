"""Random numbers from Python and NumPy: drawn while tracing, they are constants of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, last_name
from explorer.pitfalls.recorder import Call
from explorer.pitfalls.rule import rule

_SOURCES = (
    "random.",
    "_random.",
    "numpy.random.",
    "uuid.uuid1",
    "uuid.uuid4",
    "secrets.",
    "posix.urandom",
    "nt.urandom",
)
_IDS = ("uuid.", "secrets.token", "posix.urandom", "nt.urandom")
_AS_NUMBERS = frozenset(("int", "fields", "node", "time", "time_low"))
_AS_TEXT = frozenset(("str", "repr", "hex", "format", "hash", "print", "bytes", "b64encode", "append", "add"))
# These draw nothing: they make a generator, or read or set its state.
_MAKERS = frozenset[str]().union(
    ("default_rng", "RandomState", "Generator", "Random", "SystemRandom", "SeedSequence"),
    ("BitGenerator", "__init__", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64", "seed"),
    ("getstate", "setstate", "get_state", "set_state", "spawn", "generate_state", "get_bit_generator"),
    ("set_bit_generator",),
)
_OF_JAX = {
    "randn": "normal",
    "standard_normal": "normal",
    "gauss": "normal",
    "normalvariate": "normal",
    "rand": "uniform",
    "random": "uniform",
    "random_sample": "uniform",
    "integers": "randint",
    "randrange": "randint",
    "shuffle": "permutation",
    "sample": "choice",
    "binomial": "binomial",
    "standard_exponential": "exponential",
    "standard_gamma": "gamma",
    "expovariate": "exponential",
}
_SAME = frozenset[str]().union(
    ("normal", "uniform", "randint", "permutation", "choice", "exponential", "gamma", "beta"),
    ("poisson", "laplace", "gumbel", "dirichlet", "multivariate_normal", "rayleigh", "pareto"),
    ("logistic", "geometric"),
)


@rule("impure-random", "EX003", "warning", "random-numbers.html")
def impure_random(evidence: Evidence) -> Iterator[Finding]:
    """Random numbers that Python or NumPy draws while tracing are constants of the compiled program."""
    for call, function, node in evidence.calls:
        name = call.callee.rpartition(".")[2]
        if name in _MAKERS or not call.callee.startswith(_SOURCES):
            continue
        if function is not None and node is not None:
            is_id = call.callee.startswith(_IDS) and _is_name(function, node)
            if is_id or _is_seeded_here(function, node):
                continue
        yield impure_random.finding(
            f"{_callee_text(function, node) or name}() draws while {evidence.name} is traced: each call after "
            "that gets the same numbers again",
            at=(function, call.span),
            evidence=f"it drew {call.times} in the trace, and will not again",
            fix=_fix(evidence, call, name),
        )


def _is_name(function: FunctionSource, node: ast.Call) -> bool:
    """Return True if random bytes or a UUID only serve as a name, not as numbers."""
    outer = function.parents.get(node)
    named = outer.targets[0] if isinstance(outer, ast.Assign) else None
    if not isinstance(named, ast.Name):
        return not _is_computed_with(function, node)
    uses = (part for part in function.walk(ast.Name) if part.id == named.id and isinstance(part.ctx, ast.Load))
    return not any(_is_computed_with(function, use) for use in uses)


def _is_computed_with(function: FunctionSource, use: ast.expr) -> bool:
    """Return True if a value is an operand, or is passed to something that makes no text of it."""
    for inner, outer in pairwise([use, *function.around(use)]):
        match outer:
            case ast.Attribute(attr=name) if name in _AS_NUMBERS:
                return True
            case ast.Subscript():
                return True
            case ast.Call(func=called) if inner is not called:
                return last_name(called) not in _AS_TEXT
            case ast.Attribute() | ast.Call():  # of a method: `.hex()`
                continue
            case _:
                return isinstance(outer, ast.BinOp)
    return False


def _callee_text(function: FunctionSource | None, node: ast.Call | None) -> str:
    is_named = node is not None and isinstance(node.func, (ast.Name, ast.Attribute))
    return function.source(node.func) if function is not None and node is not None and is_named else ""


def _is_seeded_here(function: FunctionSource, node: ast.Call) -> bool:
    """Return True if the function itself makes the generator from a seed: it then draws the same without jit."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(owner, ast.Name) and owner.id in function.locals - set(function.parameters):
        assigned = [(target, made.value) for made in function.walk(ast.Assign) for target in made.targets]
        values = [value for target, value in assigned if isinstance(target, ast.Name) and target.id == owner.id]
        owner = values[0] if len(values) == 1 else owner
    if not isinstance(owner, ast.Call) or not (owner.args or owner.keywords):
        return False
    return function.callees[owner].rpartition(".")[2] in _MAKERS


def _fix(evidence: Evidence, call: Call, name: str) -> str:
    if name == "randint" and call.callee.startswith("random."):  # Python's randint includes its upper bound
        return f"give {evidence.name} an argument `key`, and draw with jax.random.randint(key, (), low, high + 1)"
    jax_name = _OF_JAX.get(name, name if name in _SAME else "")
    if jax_name:
        return f"give {evidence.name} an argument `key`, and draw with jax.random.{jax_name}(key, …)"
    if call.callee.startswith(("uuid.", "secrets.", "posix.", "nt.")):
        return f"make it outside of {evidence.name}, and pass it as an argument"
    return f"draw outside of {evidence.name} and pass the numbers, or give it an argument `key` for jax.random"
