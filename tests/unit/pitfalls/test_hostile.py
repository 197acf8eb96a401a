"""Hostile code: it can't break or hang lint(), and lint() runs none of it but what a trace runs."""

import gc
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.pitfalls.rule import Rule, all_rules

X = jnp.ones(3)


class Bomb:
    """Whatever one does with it but to keep it, it notes; most of it raises."""

    touched: list = []  # noqa: RUF012

    def _touch(self, *args, **kwargs):
        Bomb.touched.append(sys._getframe(1).f_code.co_name)
        raise RuntimeError("touched")

    __repr__ = __str__ = __eq__ = __ne__ = __hash__ = __len__ = __iter__ = __bool__ = __getitem__ = __setitem__ = _touch
    __contains__ = __getattr__ = __setattr__ = __call__ = __array__ = __dir__ = __format__ = __add__ = __lt__ = _touch
    __index__ = __float__ = __int__ = __enter__ = __exit__ = __next__ = __copy__ = __deepcopy__ = __reduce__ = _touch
    __jax_array__ = __sizeof__ = __subclasshook__ = __instancecheck__ = _touch

    @property
    def __class__(self):
        Bomb.touched.append("__class__")
        raise RuntimeError("touched")

    @property
    def value(self):
        Bomb.touched.append("value")
        raise RuntimeError("touched")


class ByPrint(type):
    """A class whose own attributes run code."""

    def __getattribute__(cls, name):
        if name not in ("__mro__", "__dict__", "__module__"):
            Bomb.touched.append(f"class.{name}")
        return super().__getattribute__(name)

    def __repr__(cls):
        raise RuntimeError("touched")


class Strange(metaclass=ByPrint):
    __slots__ = ("left",)


class Lazy(dict):
    """A dict whose every look has an effect."""

    def __getitem__(self, key):
        Bomb.touched.append("dict")
        return super().__getitem__(key)

    def __iter__(self):
        Bomb.touched.append("dict")
        return super().__iter__()

    items = keys = values = __len__ = __iter__


bomb = Bomb()
lazy = Lazy(a=1, b=Bomb())
strange = Strange()
cyclic: list = [1, {}]
cyclic[1]["self"] = cyclic
cyclic.append(cyclic)
wide = list(range(2_000_000))
deep: list = []
for _ in range(100_000):
    deep = [deep]
huge = np.zeros((4000, 4000), np.float32)
many = {i: [i] for i in range(200_000)}


@pytest.fixture(autouse=True)
def untouched():
    Bomb.touched.clear()
    yield
    assert Bomb.touched == []


def holding(x):
    """Reads all of it by name, and does nothing with it."""
    held = [bomb, lazy, strange, cyclic, wide, deep, many]
    held.append(huge)
    return x * 2


def timed(function, *args, **options):
    start = time.process_time()
    found = ex.lint(function, *args, **options)
    assert time.process_time() - start < 20
    assert not found.faults
    return found


def test_objects_that_raise_or_have_effects_are_not_touched():
    timed(holding, X)
    timed(holding, X, thorough=True, fixes=True)


def test_the_same_in_a_closure_as_a_default_and_on_self():
    inner = Bomb()

    class Model:
        def __init__(self):
            self.held, self.loop = Bomb(), self

        @property
        def shape(self):
            Bomb.touched.append("property")
            raise RuntimeError("touched")

        def go(self, x, given=inner):
            kept = (inner, self.held, given)
            return x * len((kept,))

    timed(Model().go, X)


def test_a_bomb_as_a_static_argument_is_hashed_by_jax_alone():
    class Hashed(Bomb):
        __hash__ = object.__hash__
        __eq__ = object.__eq__

    found = timed(jax.jit(lambda x, n: x, static_argnums=1), X, Hashed())
    assert [one.rule for one in found] == ["unhashable-static"]


def test_an_object_that_is_no_argument_is_refused_by_jax_and_told_of():
    class Unlike:
        def __repr__(self):
            raise RuntimeError("no repr")

    found = ex.lint(lambda x: x, Unlike())
    assert (len(found.errors), [*found.faults]) == (0, [])


def test_printing_a_bomb_is_the_users_own_error():
    def f(x):
        print(raising)
        return x

    class Raising:
        def __repr__(self):
            raise ValueError("mine")

    raising = Raising()
    found = timed(f, X)
    assert "impure-print" in [one.rule for one in found]
    assert all(found.fix(one).text for one in found)


def test_writes_to_hostile_state_are_found_without_looking_into_it(capsys):
    kept = {"a": Bomb()}

    def f(x):
        kept["b"] = Bomb()
        kept["a"] = None
        return x

    assert "state-write" in [one.rule for one in timed(f, X)]


def test_code_that_redefines_the_names_lint_relies_on():
    namespace = {"jax": Bomb(), "print": lambda *a: None, "__builtins__": __builtins__, "__name__": "x", "jnp": jnp}
    exec(compile("def f(x):\n    print(x)\n    return x * 2\n", "<hostile>", "exec"), namespace)
    assert not timed(namespace["f"], X)


@pytest.mark.parametrize("text", ["\0", "def f(", "x" * 3_000_000, "(" * 5000, "\ud800", "# explorer: ignore[" * 1000])
def test_texts_that_are_not_what_ran(text):
    import linecache

    file = f"<hostile {len(text)}>"
    namespace: dict = {}
    exec(compile("def f(x):\n    print(x)\n    return x\n", file, "exec"), namespace)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        for one in (found := timed(namespace["f"], X)):
            assert found.fix(one).code == ""
    finally:
        del linecache.cache[file]


def test_a_function_that_raises_or_exits_ends_its_trace_alone():
    def raises(x):
        raise KeyError("mine")

    def exits(x):
        raise SystemExit(3)

    found = timed(raises, X)
    assert repr(found) == "Findings(raises: nothing found; its trace failed: KeyError: mine)"
    with pytest.raises(SystemExit):
        ex.lint(exits, X)
    assert sys.getprofile() is None


def test_endless_recursion_ends():
    def endless(x):
        return endless(x + 1)

    assert "RecursionError" in repr(timed(endless, X))


def test_generators_coroutines_and_other_callables():
    def generator(x):
        yield x

    async def coroutine(x):
        return x

    class Call:
        def __call__(self, x):
            return x * 2

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # never awaited
        for function in (generator, coroutine, Call(), Call().__call__, np.sin, jnp.sin, len, int, Call):
            assert isinstance(ex.lint(function, X), ex.Findings)
        gc.collect()


def test_a_rule_that_fails_costs_its_own_findings_alone(monkeypatch):
    def check(evidence):
        raise RuntimeError("a bug")

    broken = Rule("broken", "EX999", "error", "", check, passive=True)
    monkeypatch.setattr("explorer.pitfalls.rule.all_rules", lambda: (*all_rules(), broken))
    found = ex.lint(lambda x: float(x), 1.0)
    assert [one.rule for one in found] == ["concretization"]
    assert found.faults == ("broken: RuntimeError: a bug",)
    assert "RuntimeError: a bug" in str(found)


def test_other_threads_go_on_and_are_not_recorded():
    stop, printed = threading.Event(), []

    def other():
        while not stop.is_set():
            printed.append(1)
            print(end="")

    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert not timed(lambda x: x * 2, X)
    finally:
        stop.set()
        thread.join()


def test_a_fix_that_is_interrupted_leaves_the_users_function_as_it_was():
    runs = []

    def f(x):
        runs.append(1)
        if len(runs) == 2:
            raise KeyboardInterrupt
        print(x)
        return x

    found, code = ex.lint(f, X, rules="EX001"), f.__code__
    with pytest.raises(KeyboardInterrupt):
        found.fix(0)
    assert f.__code__ is code


def test_results_hold_plain_text_alone():
    found = ex.lint(holding, X)
    assert ex.Findings.from_json(found.to_json()) == found
    repr(found), str(found)
