"""lint() itself: what it asks, what silences it, what the project says, a second trace, what rides on captures."""

import functools
import importlib.util
import itertools
import random
import textwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.pitfalls.rule import _comments, _silent_lines, all_rules, severities

X = jnp.ones(3)
numbers = itertools.count()


@pytest.fixture
def load(tmp_path):
    def load(text, pyproject=None):
        if pyproject is not None:
            (tmp_path / "pyproject.toml").write_text(textwrap.dedent(pyproject))
        path = tmp_path / f"users_{next(numbers)}.py"
        path.write_text("import jax, jax.numpy as jnp\n" + textwrap.dedent(text))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def prints(x):
    print(x)
    return x


def rules(findings):
    return [one.rule for one in findings]


def test_every_rule_has_its_own_name_and_number():
    assert len({rule.name for rule in all_rules()}) == len({rule.code for rule in all_rules()}) == len(all_rules())


def test_lint_takes_a_function_and_its_arguments():
    with pytest.raises(ex.errors.NotCallableError, match="lint takes a function"):
        ex.lint(prints(X))


def test_rules_and_ignore_choose_by_name_or_number(capsys):
    assert rules(ex.lint(prints, X)) == ["impure-print"]
    assert rules(ex.lint(prints, X, rules="EX001")) == ["impure-print"]
    assert rules(ex.lint(prints, X, rules=["unrolled-loop", "ex012"])) == []
    assert rules(ex.lint(prints, X, ignore="impure-print")) == []


def test_an_unknown_rule_is_refused_with_those_there_are():
    with pytest.raises(ex.errors.OptionError, match=r"no rule 'EX999'(?s:.*)EX001 impure-print"):
        ex.lint(prints, X, rules="EX999")
    with pytest.raises(ex.errors.OptionError, match="ignore"):
        ex.lint(prints, X, ignore=["prints"])


def test_arguments_with_the_names_of_options_are_given_by_position(capsys):
    def f(x, rules):
        print(rules)
        return x + rules

    assert rules(ex.lint(f, X, X)) == ["impure-print"]


SILENCED = [
    "def f(x):\n    print(x)  # explorer: ignore[EX001]\n    return x",
    "def f(x):\n    print(x)  # explorer: ignore[impure-print]\n    return x",
    "def f(x):\n    print(x)  # Explorer:ignore\n    return x",
    "def f(x):\n    print(x)  # noqa  # explorer: ignore[EX002, EX001]\n    return x",
    "def f(x):  # explorer: ignore[EX001]\n    y = x\n    print(x)\n    return y",
    "def f(\n    x,  # explorer: ignore[EX001]\n):\n    print(x)\n    return x",
    "@jax.jit  # explorer: ignore[EX001]\ndef f(x):\n    print(x)\n    return x",
    "def f(x):  # explorer: ignore[EX001]\n    def inner(y):\n        print(y)\n        return y\n    return inner(x)",
    "def f(x):\n    print(\n        x,\n        1,  # explorer: ignore[EX001]\n    )\n    return x",
    "def f(x):\n    if True:\n        print(\n            x\n        )  # explorer: ignore[EX001]\n    return x",
    "class A:\n    def f(self, x):  # explorer: ignore[EX001]\n        print(x)\n        return x\nf = A().f",
]
HEARD = [
    "def f(x):\n    print(x)  # explorer: ignore[EX002]\n    return x",
    "def f(x):\n    print(x)\n    return x  # explorer: ignore[EX001]",
    "def f(x):\n    print('# explorer: ignore[EX001]')\n    return x",
    "def f(x):\n    print(x)  # explorer: ignored[EX001]\n    return x",
    "def f(x):\n    if True:  # explorer: ignore[EX001]\n        print(x)\n    return x",
    "# explorer: ignore[EX001]\ndef f(x):\n    print(x)\n    return x",
    "def g(x):  # explorer: ignore[EX001]\n    return x\ndef f(x):\n    print(x)\n    return x",
]


@pytest.mark.parametrize("text", SILENCED)
def test_a_comment_silences_a_rule_in_its_statement_or_function(text, load, capsys):
    assert rules(ex.lint(load(text).f, X)) == []


@pytest.mark.parametrize("text", HEARD)
def test_a_comment_elsewhere_or_for_another_rule_silences_nothing(text, load, capsys):
    assert rules(ex.lint(load(text).f, X)) == ["impure-print"]


@given(st.text(max_size=200), st.integers(0, 12))
def test_no_text_breaks_the_search_for_comments(text, line):
    assert isinstance(_comments(text + "# explorer: ignore[a"), dict)
    assert line in _silent_lines(text, line)


@pytest.mark.parametrize("level", ["error", "warning", "note"])
def test_the_nearest_pyproject_says_how_grave_a_rule_is(level, load, capsys):
    module = load("def f(x):\n    print(x)\n    return x", f'[tool.explorer.lint]\nEX001 = "{level}"')
    assert [one.severity for one in ex.lint(module.f, X)] == [level]


def test_a_rule_that_is_off_is_asked_only_by_name(load, capsys):
    module = load("def f(x):\n    print(x)\n    return x", '[tool.explorer.lint]\nimpure-print = "off"')
    assert rules(ex.lint(module.f, X)) == []
    assert rules(ex.lint(module.f, X, rules="EX001")) == ["impure-print"]


@pytest.mark.parametrize(
    ("pyproject", "told"),
    [
        ('[tool.explorer.lint]\nEX001 = "fatal"', "'fatal'(?s:.*)'error', 'warning', 'note', 'off'"),
        ("[tool.explorer.lint]\nEX001 = 3", "EX001 = 3"),
        ('[tool.explorer.lint]\nEX999 = "off"', "EX999(?s:.*)EX001 impure-print"),
        ("[tool.explorer]\nlint = 1", "is no table"),
        ("[tool.explorer", "can't be read"),
    ],
)
def test_a_project_that_says_what_cannot_be_is_refused_with_what_can(pyproject, told, load):
    module = load("def f(x):\n    return x", pyproject)
    with pytest.raises(ex.errors.OptionError, match=told):
        ex.lint(module.f, X)
    capture = ex.explore(module.f, X)  # who only compiles is not stopped by it
    assert any("pyproject.toml" in fault for fault in capture.findings.faults)


def test_a_project_without_such_a_table_says_nothing(load):
    module = load("def f(x):\n    return x", "[tool.other]\na = 1")
    assert severities(module.__file__) == {}


def test_an_edited_pyproject_is_read_again(load, tmp_path, capsys):
    module = load("def f(x):\n    print(x)\n    return x", '[tool.explorer.lint]\nEX001 = "note"')
    assert ex.lint(module.f, X)[0].severity == "note"
    (tmp_path / "pyproject.toml").write_text('[tool.explorer.lint]\nEX001 = "error"  # graver')
    assert ex.lint(module.f, X)[0].severity == "error"


def baked(x):
    return x * int.from_bytes(random.randbytes(2), "big") + hidden.pop()  # baked


hidden = list(range(1000))


def test_thorough_traces_twice_and_finds_what_was_baked_in():
    before = len(hidden)
    plain = ex.lint(baked, X)
    assert len(hidden) == before - 1
    found = ex.lint(baked, X, thorough=True)
    assert len(hidden) == before - 3
    twice = [one for one in found if "traced twice" in one.message]
    assert (not twice) == any(one.line == baked.__code__.co_firstlineno + 1 for one in plain)
    assert all(one.rule == "impure-random" for one in twice)


def test_thorough_names_each_line_that_another_value_is_baked_into():
    def baked_thrice(x):
        y = x + hidden.pop()  # which another rule sees
        z = y * hidden.pop()
        return z - hidden.pop()

    start = baked_thrice.__code__.co_firstlineno
    twice = [one for one in ex.lint(baked_thrice, X, thorough=True) if "traced twice" in one.message]
    assert [one.line - start for one in twice] == [2, 3]


def test_two_traces_that_agree_say_nothing():
    def f(x):
        return jnp.sin(x) * np.arange(3.0) + jax.random.normal(jax.random.key(3), (3,))

    assert not [one for one in ex.lint(f, X, thorough=True) if "traced twice" in one.message]


def test_the_python_of_the_function_runs_once():
    runs = []

    def f(x):
        runs.append(1)
        return x * 2

    ex.lint(jax.jit(f), X)
    assert len(runs) == 1


class Called:
    def __call__(self, x):
        print(x)
        return x.sum()


class Net(nnx.Module):
    def __init__(self):
        self.layer = nnx.Linear(3, 1, rngs=nnx.Rngs(0))

    def __call__(self, x):
        print(x)
        return self.layer(x).sum()


class Scaled(eqx.Module):
    weight: jax.Array

    def __call__(self, x):
        print(x)
        return (self.weight * x).sum()


def summed(x):
    print(x)
    return x.sum()


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (jax.jit(summed), (X,)),
        (ex.jit(summed), (X,)),
        (functools.partial(jax.jit(summed)), (X,)),
        (jax.grad(summed), (X,)),
        (jax.vmap(summed), (jnp.ones((2, 3)),)),
        (jax.checkpoint(summed), (X,)),
        (eqx.filter_jit(summed), (X,)),
        (Net(), (X,)),
        (Scaled(X), (X,)),
        (Called(), (X,)),
        (Called().__call__, (X,)),
        (summed, (jax.ShapeDtypeStruct((3,), "float32"),)),
        (summed, (ex.InputInfo((3,), "float32"),)),
        (summed, (ex.InputInfo((ex.NamedDimension("n", 1, 2, 3),), "float32"),)),
    ],
)
def test_whatever_can_be_called_is_looked_at_and_fixed(function, args, capsys):
    found = ex.lint(function, *args, rules="impure-print")
    assert (rules(found), found.failure) == (["impure-print"], "")
    assert 'jax.debug.print("{}", x)' in found.fix(0).code


def test_what_a_class_alone_leads_to_is_looked_at_and_the_cure_told(capsys):
    found = ex.lint(nnx.jit(lambda net, x: net(x)), Net(), X, rules="impure-print")
    assert (rules(found), found.failure) == (["impure-print"], "")
    assert found.fix(0).code == ""
    assert 'jax.debug.print("{}", x)' in found.fix(0).text


def unrolled(x):
    for _ in range(60):
        x = jnp.sin(x)
    return x


def test_cheap_rules_ride_on_explore_compile_and_jit_and_are_kept(tmp_path):
    capture = ex.explore(unrolled, X)
    assert [(one.rule, one.text) for one in capture.findings] == [("unrolled-loop", "for _ in range(60):")]
    assert rules(ex.compile(unrolled, args=[ex.InputInfo((3,), "float32")]).explore().findings) == ["unrolled-loop"]
    assert rules(ex.jit(unrolled).explore(X).findings) == ["unrolled-loop"]
    capture.save(tmp_path / "a.capture")
    assert ex.load(tmp_path / "a.capture").findings == capture.findings


def test_what_rides_is_silenced_and_levelled_as_lint_is(load):
    text = "def f(x):\n    for _ in range(60):{}\n        x = jnp.sin(x)\n    return x"
    assert rules(ex.explore(load(text.format("  # explorer: ignore[EX012]")).f, X).findings) == []
    module = load(text.format(""), '[tool.explorer.lint]\nEX012 = "error"')
    assert [one.severity for one in ex.explore(module.f, X).findings] == ["error"]


def test_a_function_that_cannot_be_traced_has_the_finding_in_its_capture():
    with pytest.raises(ex.errors.ExploreError) as caught:
        ex.explore(lambda x: float(x), 1.0)
    assert rules(caught.value.capture.findings) == ["concretization"]


def test_rules_that_ride_run_nothing_of_the_users():
    runs = []

    def f(x):
        runs.append(1)
        return x * 2

    ex.explore(f, X)
    assert len(runs) == 1


def test_a_linter_that_fails_costs_the_user_nothing(monkeypatch):
    def broken(*traced):
        raise RuntimeError("a bug")

    monkeypatch.setattr(ex.Findings, "of_trace", broken)
    capture = ex.explore(unrolled, X)
    assert (len(capture.stages), capture.findings.faults) == (3, ("RuntimeError: a bug",))


def test_findings_tell_what_has_become_stale_since():
    scale = [2.0]
    found = ex.lint(lambda x: x * scale[0], X)
    assert not found.recheck()
    scale[0] = 3.0
    [stale] = found.recheck()
    assert (stale.rule, stale.severity) == ("stale-closure", "error")
    assert "2.0 at the trace and is 3.0 now" in stale.evidence
    with pytest.raises(ex.errors.NotRecordedError, match="no longer known"):
        ex.Findings.from_json(found.to_json()).recheck()


def test_through_filter_jit_arrays_are_traced_and_the_rest_is_static():
    @eqx.filter_jit
    def apply(model, x, loud):
        if loud:
            print(x)
        return jax.vmap(model)(x), model

    found = ex.lint(apply, eqx.nn.MLP(4, 2, 8, 1, key=jax.random.key(0)), jnp.ones((3, 4)), True)
    assert rules(found.warnings) == ["impure-print"]
    assert not found.failure


def shown(name, x):
    print(name, x)
    return x


def test_prints_that_every_trace_comes_by_ride_on_captures(capsys):
    def step(x, loud=False):
        c = jnp.sin(x)
        print(c)
        if loud:
            print("quiet")
        print("shape", x.shape)
        return shown("c", c)

    found = ex.explore(jax.jit(step), X).findings
    assert [(one.rule, one.severity, one.text) for one in found.of("impure-print")] == [
        ("impure-print", "warning", "print(name, x)"),
        ("impure-print", "warning", "print(c)"),
        ("impure-print", "note", 'print("shape", x.shape)'),
    ]


def test_what_comes_after_a_return_that_may_have_been_taken_is_not_told(capsys):
    def step(x):
        if x.ndim:
            return x * 2
        print(x)
        return x

    assert not ex.explore(step, X).findings
