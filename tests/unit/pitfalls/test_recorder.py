"""What the recorder sees of a trace, the same on every Python, and what it leaves as it was."""

import ast
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.capture.safe_reading import attributes, callee_name, find, is_a, member
from explorer.pitfalls.evidence import traced_in, traced_names
from explorer.pitfalls.fix_prints import as_format
from explorer.pitfalls.state import snapshot
from explorer.pitfalls.tracing import gather

X = jnp.ones(3)
HAS_MONITORING = sys.version_info >= (3, 12)
shelves = [[], {"a": []}]


def get():
    return shelves


class Model:
    def __init__(self):
        self.clock = time.time
        self.items = []

    def call(self, x):
        self.items.append(self.clock())
        return x


model = Model()


def calls_much(x, flag=False):
    for i in range(2):
        shelves[i % 1].append(i)
    shelves[1]["a"].append([np.sin(j) for j in (1.0, 2.0, 3.0)])
    get()[0].clear()
    model.call(
        x,
    ).sum()
    if flag:
        print("never")
    return (lambda y: y * 2)(x)


@pytest.fixture(autouse=True)
def emptied():
    yield
    shelves[:] = [[], {"a": []}]
    model.items.clear()


def seen(function, *args):
    evidence = gather(function, args, {})
    assert evidence.error is None
    return evidence


def test_every_call_is_seen_with_its_count_and_place():
    evidence = seen(calls_much, X)
    calls = {(call.callee, call.span.line - calls_much.__code__.co_firstlineno): call for call, _, _ in evidence.calls}
    assert calls["builtins.list.append", 2].count == 2
    assert calls["builtins.list.append", 2].receiver is shelves[0]
    assert calls["numpy.sin", 3].count == 3
    assert calls["builtins.list.clear", 4].receiver is shelves[0]
    assert calls[f"{__name__}.Model.call", 5].receiver is model
    assert ("builtins.print", 9) not in calls
    assert [call.callee for call, _, _ in evidence.calls if call.callee.startswith("time.")] == ["time.time"]


def test_a_call_over_several_lines_has_the_place_of_its_text():
    evidence = seen(calls_much, X)
    [(function, node)] = [at for call, *at in evidence.calls if call.callee == f"{__name__}.Model.call"]
    assert function.source(node) == "model.call(\n        x,\n    )"


def test_calls_in_comprehensions_belong_to_their_function():
    evidence = seen(calls_much, X)
    [function] = [at for call, at, _ in evidence.calls if call.callee == "numpy.sin"]
    assert function.node.name == "calls_much"


def test_traced_names_are_seen_with_their_types():
    def function(x, tree, n):
        print(end="")
        return x * n + tree["a"]

    [call] = [one for one, _, _ in seen(function, X, {"a": X}, 2).calls if one.callee == "builtins.print"]
    assert call.traced == {"x": "float32[3]", "tree": "dict with float32[3]", "n": "int32[]"}


def test_only_what_ran_is_reached():
    def function(x, flag=False):
        y = x if flag else x * 2
        return y

    [written] = seen(function, X).functions
    [choice] = written.walk(ast.IfExp)
    assert written.reached(choice.orelse)
    assert not written.reached(choice.body)


def test_functions_that_ran_are_told_in_their_order():
    def inner(x):
        return x + 1

    def outer(x):
        return jax.vmap(inner)(x) + jax.lax.map(lambda y: inner(y), x)

    names = [getattr(one.node, "name", "lambda") for one in seen(outer, X).functions]
    assert names == ["outer", "inner", "lambda"]


def test_a_second_look_sees_as_much():
    first = [(call.callee, call.count) for call, _, _ in seen(calls_much, X).calls]
    shelves[:] = [[], {"a": []}]
    assert [(call.callee, call.count) for call, _, _ in seen(calls_much, X).calls] == first


def test_what_jax_knows_already_is_seen_too():
    @jax.jit
    def inner(x):
        shelves[0].append(1)
        return x * 2

    def outer(x):
        return inner(x)

    inner(X)
    assert "builtins.list.append" in [call.callee for call, *_ in seen(outer, X).calls]


def test_tracers_and_profilers_are_as_before():
    def fails(x):
        raise KeyError("gone")

    before = sys.gettrace(), sys.getprofile()
    seen(calls_much, X)
    assert type(gather(fails, [X], {}).error) is KeyError
    assert (sys.gettrace(), sys.getprofile()) == before
    if HAS_MONITORING:
        assert {sys.monitoring.get_tool(tool) for tool in (1, 3, 4)} == {None}


@pytest.mark.skipif(HAS_MONITORING, reason="Python 3.11 has one tracer")
def test_another_tracer_goes_on_after_the_trace():
    lines = []

    def tracer(frame, event, argument):
        lines.append(event)
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        evidence = gather(calls_much, [X], {})
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert "time.time" in [call.callee for call, *_ in evidence.calls]
    assert lines


@pytest.mark.skipif(not HAS_MONITORING, reason="Python 3.11 has no tools")
def test_where_all_tools_are_in_use_nothing_is_seen_and_nothing_fails():
    tools = [tool for tool in range(6) if sys.monitoring.get_tool(tool) is None]
    for tool in tools:
        sys.monitoring.use_tool_id(tool, "another")
    try:
        evidence = gather(calls_much, [X], {})
    finally:
        for tool in tools:
            sys.monitoring.free_tool_id(tool)
    assert evidence.error is None
    assert evidence.functions == ()


def test_a_long_loop_is_traced_in_bounded_time():
    def function(x):
        total = 0
        for i in range(300_000):
            total += i
        return x + total % 7

    start = time.process_time()
    seen(function, X)
    assert time.process_time() - start < 5


def test_a_function_that_is_called_very_often_is_traced_in_bounded_time():
    def inner(i):
        return abs(i) + 1

    def function(x):
        return x + sum(inner(i) for i in range(200_000)) % 7

    start = time.process_time()
    seen(function, X)
    assert time.process_time() - start < 10


def test_a_loop_over_many_containers_keeps_few_alive():
    def function(x):
        for _ in range(1_000):
            [].append(1)
        return x

    calls = [call for call, *_ in seen(function, X).calls if call.callee == "builtins.list.append"]
    assert len(calls) < 10
    assert sum(call.count for call in calls) == 1_000


def test_checks_for_leaks_do_not_see_the_recorder():
    with jax.checking_leaks():
        seen(calls_much, X)


def test_other_threads_are_not_seen():
    done = threading.Event()
    ran = threading.Event()

    def noise():
        while not done.is_set():
            get()
            ran.set()

    def function(x):
        ran.clear()
        ran.wait(5)
        return x

    thread = threading.Thread(target=noise)
    thread.start()
    try:
        evidence = seen(function, X)
    finally:
        done.set()
        thread.join()
    assert {function.node.name for function in evidence.functions} == {"function"}


# ——— looking at values and text


class Odd:
    """What runs when it is looked at."""

    plain = 3
    __slots__ = ("kept", "missing")

    def __init__(self):
        self.kept = 1

    @property
    def computed(self):
        raise AssertionError("asked")

    def __getattr__(self, name):
        raise AssertionError("asked")


def test_attributes_are_read_without_running_anything():
    odd = Odd()
    assert attributes(odd) == {"kept": 1}
    assert member(odd, "plain") == 3
    assert member(odd, "computed") is ...
    assert member(odd, "anything") is ...
    assert is_a(odd, Odd)
    assert not is_a(odd, list)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("time.time", "time.time"),
        ("np.random.normal", "numpy.random.RandomState.normal"),
        ("np.random.default_rng().normal", "numpy.random._generator.Generator.normal"),
        ("np.sin", "numpy.sin"),
        ("shelves[1]['a'].append", "builtins.list.append"),
        ("model.call", f"{__name__}.Model.call"),
        ("jnp.sin", "jaxlib._jax.PjitFunction.__call__"),
        ("Model", f"{__name__}.Model"),
    ],
)
def test_a_callable_is_named_by_its_module(text, name):
    found = find(ast.parse(text, mode="eval").body, lambda name: globals().get(name, ...))
    assert callee_name(found)[0] == name


def test_what_can_not_be_known_is_an_ellipsis():
    for text in ("unknown.x", "get().x", "shelves[get()]", "model.nothing", "[1][0]", "shelves['a']"):
        assert find(ast.parse(text, mode="eval").body, lambda name: globals().get(name, ...)) is ...


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x", ["x"]),
        ("x.shape", []),
        ("x.shape[0] + len(x)", []),
        ("f(x, y)", ["x", "y"]),
        ("jnp.shape(x)", []),
        ("x is None", []),
        ("x > 0", ["x"]),
        ("isinstance(x, int)", []),
        ("[x.T for _ in range(3)]", ["x"]),
        ("lambda: x", []),
        ("z", []),
    ],
)
def test_which_names_make_a_traced_value(text, names):
    assert traced_in(ast.parse(text, mode="eval").body, {"x": "float32[3]", "y": ""}) == names


def test_names_given_computed_values_are_traced():
    def function(x, n=3):
        y = x * 2
        size = y.shape[0]
        z = jnp.sin(y)[0]
        w, v = size + 1, n
        shown = str(n)
        return z + w + v + len(shown)

    evidence = seen(function, X)
    names = traced_names(evidence, evidence.functions[0])
    assert set(names) == {"x", "y", "z"}


values = {"a": 1.5, "b": "text {}", "c": [1, 2]}
pieces = st.sampled_from(["a", "b", "c", "a + 1", "c[0]"])
literal = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "Zs"]), max_size=8)


@st.composite
def arguments(draw):
    kind = draw(st.sampled_from(["value", "text", "f-string"]))
    if kind == "value":
        return draw(pieces)
    if kind == "text":
        return repr(draw(literal))
    inner = "".join(
        draw(
            st.lists(
                st.one_of(
                    st.text("xyz ", max_size=3),
                    st.sampled_from(["{{", "}}", "{a:.2f}", "{b!r:>12}", "{a}", "{c}"]),
                ),
                max_size=4,
            )
        )
    )
    return f'f"{inner}"'


@given(st.lists(arguments(), min_size=1, max_size=4))
def test_a_format_says_what_print_said(texts):
    call = ast.parse(f"print({', '.join(texts)})", mode="eval").body
    printed = " ".join(str(eval(text, {}, values)) for text in texts)
    assert eval(f"write({as_format(call.args)})", {"write": lambda form, *rest: form.format(*rest)}, values) == printed


@pytest.mark.slow
@given(st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_a_snapshot_differs_from_another_only_after_a_change(value):
    roots = {"value": value}
    before = snapshot(roots)
    assert list(before.changes(snapshot(roots))) == []
    if isinstance(value, list):
        value.append("new")
        assert [change.path for change in before.changes(snapshot(roots))] == [f"value[{len(value) - 1}]"]
    elif isinstance(value, dict):
        value["a new key"] = None
        assert [change.path for change in before.changes(snapshot(roots))] == ["value['a new key']"]
