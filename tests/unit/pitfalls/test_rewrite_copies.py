"""A rewrite is proven on copies: what the user has is never other code, whoever calls it meanwhile."""

import threading
from types import FunctionType

import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.errors import ExplorerError
from explorer.pitfalls.fix_copies import FunctionCopies
from explorer.pitfalls.fix_unit import RewriteUncertain
from tests.support.users_modules import load_module  # noqa: F401 - a fixture

X = jnp.arange(3.0)
MODULE = """
from custom import decorated

seen = []
turns = 0

def helper(x):
    global turns
    turns += 1
    print(x)
    return x * 2

@functools.lru_cache
def cached(n):
    return n

def by_name(x):
    return helper(x) + cached(3)

def closing(k):
    def inner(x):
        print(k, x)
        return helper(x) * k
    return inner

class Model:
    def __init__(self):
        self.scale = 2.0
        self.inner = closing(3.0)

    def shown(self, x):
        print(x)
        return self.inner(x) * self.scale

    def __call__(self, x):
        return self.shown(x)

closed = closing(2.0)
jitted = jax.jit(by_name)
partial = functools.partial(by_name)
mapped = jax.vmap(by_name)
own_rule = jax.custom_jvp(by_name)
own_rule.defjvp(lambda primals, tangents: (own_rule(*primals), tangents[0]))
wrapped = decorated(by_name)
model = Model()
method = model.shown
table = {"step": helper}

def by_table(x):
    return table["step"](x)
"""
DECORATOR = """
def decorated(function):
    def call(*args):
        return function(*args)
    return call
"""
WAYS = ("by_name", "closed", "jitted", "partial", "mapped", "own_rule", "wrapped", "model", "method", "by_table")


@pytest.fixture
def module(load, monkeypatch):
    custom = load(DECORATOR)
    monkeypatch.setitem(__import__("sys").modules, "custom", custom)
    return load(MODULE)


def functions(module):
    held = [*vars(module).values(), module.closed, module.model.inner, *vars(module.Model).values()]
    return [value for value in held if type(value) is FunctionType]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_rewrite_is_proven_however_the_function_is_reached_and_nothing_of_the_users_is_changed(way, module, capsys):
    before = {function: function.__code__ for function in functions(module)}
    names = dict(vars(module))
    found = ex.lint(getattr(module, way), X, rules="impure-print")
    assert len(found)
    turns = module.turns
    assert all(found.fix(finding).code for finding in found)
    assert {function: function.__code__ for function in functions(module)} == before
    assert module.turns == turns  # its globals are the copy's own
    assert {name: value for name, value in vars(module).items() if name != "turns"} == {
        name: value for name, value in names.items() if name != "turns"
    }


@pytest.mark.slow
def test_another_thread_that_calls_the_function_meanwhile_runs_the_users_code_alone(load, capsys):
    module = load(
        """
        def f(x):
            y = np.sin(x)
            return y * 2

        def g(x):
            return f(x) + 1
        """
    )
    x, results, codes, ended = np_array(), set(), set(), threading.Event()

    def hammer():
        while not ended.is_set():
            results.add(type(module.g(x)).__module__)
            codes.add(module.f.__code__)

    code = module.f.__code__
    thread = threading.Thread(target=hammer)
    thread.start()
    try:
        found = ex.lint(module.g, X, rules="concretization")
        fixes = [found.fix(0) for _ in range(10)]
    finally:
        ended.set()
        thread.join()
    assert all("jnp.sin" in fix.code for fix in fixes)  # which gives JAX's arrays
    assert (results, codes) == ({"numpy"}, {code})


def np_array():
    import numpy as np

    return np.arange(3.0)


def test_only_what_leads_to_a_changed_function_is_copied(module):
    code = module.helper.__code__
    other = code.replace(co_consts=tuple(3 if constant == 2 else constant for constant in code.co_consts))
    by_name, closing = FunctionCopies({code: other}, {}).copy(module.by_name, module.cached)
    assert by_name is not module.by_name
    assert closing is module.cached
    assert by_name.__globals__["cached"] is module.cached
    assert by_name.__globals__["seen"] is module.seen
    assert (by_name.__globals__["helper"](2), module.helper(2)) == (6, 4)


def test_a_function_that_a_class_alone_leads_to_is_left_alone(load):
    module = load(
        """
        class Model:
            def __call__(self, x):
                return x

        def call(x):
            return Model()(x)
        """
    )
    code = module.Model.__call__.__code__
    with pytest.raises(RewriteUncertain):
        FunctionCopies({code: code.replace(co_name="other")}, {}).copy(module.call)
    assert not issubclass(RewriteUncertain, ExplorerError)


def test_functions_that_lead_to_themselves_are_copied_once(load):
    module = load(
        """
        def even(n):
            return True if n == 0 else odd(n - 1)

        def odd(n):
            return False if n == 0 else even(n - 1)
        """
    )
    code = module.odd.__code__
    (even,) = FunctionCopies({code: code.replace(co_name="renamed")}, {}).copy(module.even)
    assert even.__globals__["odd"].__code__.co_name == "renamed"
    assert even.__globals__["even"] is even
    assert even.__globals__["odd"].__globals__ is even.__globals__
    assert (even(4), even(3)) == (True, False)
