"""Rewrites: certain, proven, and all else of the user's text kept."""

import functools
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from tests.support.users_modules import body, fixed, load_module  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow

X = jnp.arange(3.0)


def test_lines_comments_and_formatting_of_the_user_are_kept(load, capsys):
    module = load(
        """
        def f(x):
            # above
            y = ( x+1 )   # odd  spacing

            if True:
                print(
                    "é",  # first
                    y,
                    x,  # last
                )  # after
            s = '''
          kept
            '''
            return y
        """
    )
    fix = fixed(module.f, X)
    assert fix.code == textwrap.dedent(
        """\
        def f(x):
            # above
            y = ( x+1 )   # odd  spacing

            if True:
                jax.debug.print(
                    "é {} {}",  # first
                    y,
                    x,  # last
                )  # after
            s = '''
          kept
            '''
            return y
        """
    )


def test_a_comment_that_would_be_lost_stops_the_rewrite(load, capsys):
    fix = fixed(load('def f(x):\n    print("a",  # one\n          "b",  # two\n          x)\n    return x\n').f, X)
    assert fix.code == ""
    assert fix.text


def test_methods_nested_decorated_and_closed_over_functions_are_rewritten(load, capsys):
    module = load(
        """
        class Model:
            __scale = 2.0

            def go(self, x):
                print(self.__scale, x)
                return super().__init__() or x * self.__scale

        def make(k):
            @jax.jit
            def inner(x):
                print(k, x)
                return x * k
            return inner

        @functools.partial(jax.jit, static_argnames="n")
        def decorated(x, *, n=2):
            print(n, x)
            return x * n

        def outer(x):
            def helper(y):
                print(y)
                return y + 1
            return helper(x) * (lambda z: z)(2)

        def calls(x):
            return decorated(x, n=3)
        """
    )
    assert body(fixed(module.Model().go, X)).startswith('jax.debug.print("{} {}", self.__scale, x)')
    assert 'jax.debug.print("{} {}", k, x)' in fixed(module.make(3), X).code
    assert fixed(module.decorated, X).code.startswith("@functools.partial(jax.jit")
    assert 'jax.debug.print("{}", y)' in fixed(module.outer, X).code
    assert 'jax.debug.print("{} {}", n, x)' in fixed(module.calls, X).code


def test_the_names_that_a_rewrite_needs_are_said_and_none_is_left_in_the_users_module(load, capsys):
    module = load("def f(x):\n    print(x)\n    return x\n", head="")
    fix = fixed(module.f, X)
    assert fix.code.startswith("import jax\n\n\ndef f(x):")
    assert "it needs: import jax" in fix.text
    assert not hasattr(module, "jax")
    namespace = {}
    exec(fix.code, namespace)
    assert namespace["f"](3) == 3


def test_a_name_that_stands_for_something_else_is_not_used(load, capsys):
    assert fixed(load("jax = 3\ndef f(x):\n    print(x)\n    return x\n", head="").f, X).code == ""
    aliased = load("import jax as j\ndef f(x):\n    print(x)\n    return x\n", head="")
    assert 'j.debug.print("{}", x)' in fixed(aliased.f, X).code


def test_the_users_function_is_as_it_was_and_finding_runs_it_once(load, capsys):
    module = load("runs = []\ndef f(x):\n    runs.append(1)\n    print(x)\n    return x\n")
    code = module.f.__code__
    found = ex.lint(module.f, X, rules="EX001")
    assert len(module.runs) == 1
    assert found.fix(0).code
    assert (len(module.runs), module.f.__code__ is code) == (2, True)
    assert found.fix(found[0]).text == found.fix(0).text


def test_fixes_are_made_at_once_when_asked(load, capsys):
    found = ex.lint(load("def f(x):\n    print(x)\n    print(2)\n    return x\n").f, X, fixes=True)
    assert [one.fix.code.count("jax.debug.print") for one in found] == [1, 1]
    assert [one.fix.code.count("    print(") for one in found] == [1, 1]


OTHERS = [
    ("return np.sin(x) + 1", "return jnp.sin(x) + 1"),
    ("return x * float(x.sum())", "return x * x.sum()"),
    ("return x * int(x.sum() + 1)", "return x * jnp.asarray(x.sum() + 1, int)"),
    ("return x * x.sum().item()", "return x * x.sum()"),
    ("return x * float(x[0] + x[1])", "return x * (x[0] + x[1])"),
    ("return x if x.sum() > 0 else -x", "return jnp.where(x.sum() > 0, x, -x)"),
    ("return x if x[0] > 0 and x[1] < 3 else -x", "return jnp.where(jnp.logical_and(x[0] > 0, x[1] < 3), x, -x)"),
    ("return x if x.sum() > 0 else print(x)", None),
    ("return (x if x.sum() > 0 else -x) * 2", "return jnp.where(x.sum() > 0, x, -x) * 2"),
    ("return x * ((x[0] + x[1])).item()", "return x * ((x[0] + x[1]))"),
    ("return x * float(  # why\n        x[0])", None),
    ("print((x), (x + 1) * 2); return x", 'jax.debug.print("{} {}", (x), (x + 1) * 2); return x'),
    ("return x[x > 0].sum() + jnp.mean(x[x > 1])", "return x.sum(where=x > 0) + jnp.mean(x, where=x > 1)"),
    ("return x[x > 0]", None),
    ("return (x * 2)[x > 0].sum()", None),
    ("print(f'{x.sum():.2f}'); return x", 'jax.debug.print("{:.2f}", x.sum()); return x'),
    ("jax.debug.print(f'x {x}'); return x", 'jax.debug.print("x {}", x); return x'),
]


@pytest.mark.parametrize(("before", "after"), OTHERS)
def test_code_that_asks_for_values_stays_traced(before, after, load, capsys):
    fix = fixed(load(f"def f(x):\n    {before}\n").f, X)
    assert (body(fix) if fix.code else None) == after


def test_an_item_set_in_a_dict_that_was_passed_is_told_alone_for_its_caller_may_read_it(load):
    module = load(
        """
        def f(batch):
            batch["z"] = batch["x"] * 2
            return batch["z"].sum()

        def g(batch):
            batch["x"] += batch["x"] * 2
            return batch["x"].sum()
        """
    )
    fixes = [fixed(function, {"x": X}, rule="argument-mutation") for function in (module.f, module.g)]
    assert [fix.code for fix in fixes] == ["", ""]
    assert all("batch = {**batch, …}" in fix.text for fix in fixes)


def test_a_choice_between_assignments_or_returns_becomes_a_where(load):
    both = (
        "def f(x):\n    s = x.sum()\n    # why\n    if s > 0:\n        {0}x\n    else:\n        {0}-x\n    return y\n"
    )
    fix = fixed(load(both.format("y = ")).f, X)
    assert body(fix) == "s = x.sum()\n# why\ny = jnp.where(s > 0, x, -x)\nreturn y"
    assert "return jnp.where(s > 0, x, -x)" in fixed(load(both.format("return ")).f, X).code
    assert fixed(load(both.format("y = print(x) or ")).f, X).code == ""


def test_what_is_the_same_in_every_turn_is_jitted_above_the_loop(load):
    module = load(
        """
        def f(x):
            # turns
            for i in range(3):
                x = jax.jit(lambda y: y * 2)(x)  # here
            return x

        def g(x):
            for i in range(3):
                x = jax.jit(lambda y: y * i)(x)
            return x
        """
    )
    assert body(fixed(module.f, X)) == (
        "# turns\njitted = jax.jit(lambda y: y * 2)\nfor i in range(3):\n    x = jitted(x)  # here\nreturn x"
    )
    assert fixed(module.g, X).code == ""


LOOPS = [
    ("x = jnp.sin(x)", "x = jax.lax.fori_loop(0, 60, lambda i, x: jnp.sin(x), x)"),
    ("x += jnp.cos(x) + i", "x = jax.lax.fori_loop(0, 60, lambda i, x: x + (jnp.cos(x) + i), x)"),
    ("x = jnp.sin(x) * len(hidden)", None),
    ("x = x * hidden.pop()", None),
]


@pytest.mark.parametrize(("inside", "after"), LOOPS)
def test_a_loop_that_only_computes_becomes_a_fori_loop_of_the_same_result(inside, after, load):
    module = load(f"hidden = list(range(100))\ndef f(x):\n    for i in range(60):\n        {inside}\n    return x\n")
    fix = fixed(module.f, X, rule="unrolled-loop")
    assert (body(fix).splitlines()[0] if fix.code else None) == after
    if fix.code:
        namespace = dict(vars(module))
        exec(fix.code, namespace)
        np.testing.assert_allclose(namespace["f"](X), module.f(X), rtol=1e-5)


def test_a_loop_of_several_assignments_becomes_a_fori_loop_with_its_body_kept(load):
    module = load(
        """
        def f(x):
            v = jnp.zeros_like(x)
            # turns
            for i in range(2, 60):
                g = jnp.cos(x)  # its slope
                v = 0.9 * v + g

                x -= 0.1 * v / i
            return x + v
        """
    )
    fix = fixed(module.f, X, rule="unrolled-loop")
    assert body(fix) == textwrap.dedent(
        """\
        v = jnp.zeros_like(x)
        # turns
        def body(i, carry):
            v, x = carry
            g = jnp.cos(x)  # its slope
            v = 0.9 * v + g

            x -= 0.1 * v / i
            return v, x
        v, x = jax.lax.fori_loop(2, 60, body, (v, x))
        return x + v"""
    )
    namespace = dict(vars(module))
    exec(fix.code, namespace)
    np.testing.assert_allclose(namespace["f"](X), module.f(X), rtol=1e-4)


def test_a_comment_in_a_loop_of_one_assignment_is_kept(load):
    module = load("def f(x):\n    for i in range(60):\n        x = jnp.sin(x)  # kept\n    return x\n")
    assert body(fixed(module.f, X, rule="unrolled-loop")) == (
        "def body(i, x):\n    x = jnp.sin(x)  # kept\n    return x\nx = jax.lax.fori_loop(0, 60, body, x)\nreturn x"
    )


@pytest.mark.parametrize(
    "inside",
    [
        "i = i + 1\n        x = x * i",
        "y = x\n        x = hidden(x)",
        "y = jnp.sin(x)\n        x = z * y\n        z = y",
    ],
)
def test_a_body_that_is_not_certain_stays(inside, load):
    module = load(f"hidden = jnp.sin\ndef f(x):\n    z = 1\n    for i in range(60):\n        {inside}\n    return x\n")
    module.hidden = lambda x: jnp.sin(x)
    assert fixed(module.f, X, rule="unrolled-loop").code == ""


STATEMENTS = [
    ("x[0] = 1.0\nx[1] -= x[0] * 2\nreturn x", "x = x.at[0].set(1.0)\nx = x.at[1].subtract(x[0] * 2)\nreturn x"),
    ("x[0] //= 2\nreturn x", None),
    ("breakpoint()\nreturn x", "jax.debug.breakpoint()\nreturn x"),
    ("log.warning('%s of %d', x, 3)\nreturn x", "jax.debug.callback(log.warning, '%s of %d', x, 3)\nreturn x"),
    ("log.warning(f'{x}', exc_info=True)\nreturn x", None),
    ("return x * len(sized(x, [1, 2])[:2])", "return x * len(sized(x, (1, 2))[:2])"),
    ("return sized(x, [1])", "return sized(x, (1,))"),
    ("return x.astype(jnp.float64) + jnp.ones(3, 'float64')", "return x.astype(jnp.float32) + jnp.ones(3, 'float32')"),
    (
        "return jax.grad(lambda y: jnp.where(y > 0, jnp.sqrt(y), 0.0).sum())(x)",
        "return jax.grad(lambda y: jnp.where(y > 0, jnp.sqrt(jnp.where(y > 0, y, 1)), 0.0).sum())(x)",
    ),
    (
        "return jax.grad(lambda y: jnp.where(y > 0, y * jnp.log(y), 0.0).sum())(x)",
        "return jax.grad(lambda y: jnp.where(y > 0, y * jnp.log(jnp.where(y > 0, y, 1)), 0.0).sum())(x)",
    ),
    (
        "return jax.grad(lambda y: jnp.where(y == 0, 0.0, 1 / y).sum())(x)",
        "return jax.grad(lambda y: jnp.where(y == 0, 0.0, 1 / jnp.where(y == 0, 1, y)).sum())(x)",
    ),
    (
        "y = normal(key, x.shape)\n# again\nreturn y + normal(key, x.shape)",
        "key, subkey = jax.random.split(key)\ny = normal(subkey, x.shape)\n# again\n"
        "key, subkey = jax.random.split(key)\nreturn y + normal(subkey, x.shape)",
    ),
    ("return normal(key, x.shape) + normal(key, x.shape)", None),
]


@pytest.mark.parametrize(("before", "after"), STATEMENTS)
def test_a_statement_is_rewritten_where_that_is_certain(before, after, load, monkeypatch):
    monkeypatch.setattr("sys.breakpointhook", lambda *args: None)
    head = (
        "from functools import partial\nimport logging\nfrom jax.random import normal\nlog = logging.getLogger('a')\n"
        "@partial(jax.jit, static_argnums=1)\ndef sized(x, n):\n    return x * len(n)\n"
    )
    module = load(head + "def f(x, key):\n" + textwrap.indent(before, "    ") + "\n")
    fix = fixed(module.f, X, jax.random.key(0))
    assert (body(fix) if fix.code else None) == after


MADE = [
    ("now = time.time()\nreturn x * now", "now", "now=time.time()", "return x * now"),
    ("return x * time.time()", "now", "now=time.time()", "return x * now"),
    ("return x * random.gauss(0, 1)", "drawn", "drawn=random.gauss(0, 1)", "return x * drawn"),
    ("key = jax.random.key(7)\nreturn normal(key)", "key", "key=jax.random.key(7)", "return normal(key)"),
    ("return normal(jax.random.PRNGKey(7))", "key", "key=jax.random.PRNGKey(7)", "return normal(key)"),
    ("return x * (time.time() - time.time())", None, None, None),
    ("now = time.time(); y = x * now\nreturn y", "now_2", "now_2=time.time()", "now = now_2; y = x * now\nreturn y"),
    ("for i in range(2):\n    x = x * random.random()\nreturn x", None, None, None),
    ("g = lambda y: y * random.random()\nreturn g(x)", None, None, None),
    ("return normal(jax.random.key(len(x)))", None, None, None),
]


@pytest.mark.parametrize(("before", "name", "call", "after"), MADE)
def test_what_is_made_while_tracing_becomes_an_argument(before, name, call, after, load):
    head = "import random\nimport time\nfrom jax.random import normal\ndef f(x, n=2):\n"
    module = load(head + textwrap.indent(before, "    ") + "\n")
    fix = fixed(module.f, X)
    if name is None:
        assert fix.code == ""
    else:
        assert fix.code.splitlines()[0] == f"def f(x, n=2, *, {name}):"
        assert body(fix) == after
        assert f"call f(…, {call})" in fix.text


@pytest.mark.parametrize(
    ("head", "after"),
    [
        ("x, /", "x, /, *, now"),
        ("x, *, n=(1, 2)", "x, *, n=(1, 2), now"),
        ("x, *more", "x, *more, now"),
        ("x, **more", "x, *, now, **more"),
        ("x, *, n=2, **more", "x, *, n=2, now, **more"),
        ("x: 'Any' = (1)", "x: 'Any' = (1), *, now"),
    ],
)
def test_a_new_argument_is_given_by_name_whatever_parameters_there_are(head, after, load):
    module = load(f"import time\ndef f({head}):\n    return x * time.time()\n")
    assert fixed(module.f, X).code.splitlines()[0] == f"def f({after}):"


def test_a_method_by_itself_keeps_its_texts_over_several_lines(load, capsys):
    module = load(
        """
        class Model:
            def go(self, x):
                text = '''
            as it was'''
                print(
                    x,
                )
                return x
        """
    )
    assert fixed(module.Model().go, X).code == textwrap.dedent(
        """\
        def go(self, x):
            text = '''
            as it was'''
            jax.debug.print(
                "{}", x,
            )
            return x
        """
    )


def test_a_rewrite_that_would_give_another_type_is_not_offered(load):
    module = load("def f(x):\n    for i in range(60):\n        x = x + 0.5\n    return x\n")
    assert fixed(module.f, jnp.arange(3), rule="unrolled-loop").code == ""


def test_cells_of_a_notebook_are_rewritten_though_they_have_magics(capsys):
    pytest.importorskip("IPython")
    import linecache

    cell = "%timeit 1\ndef f(x):\n    print(x)\n    return x\n"
    linecache.cache["<cell>"] = (len(cell), None, cell.splitlines(keepends=True), "<cell>")
    namespace = {"jax": jax}
    exec(compile(cell.replace("%timeit 1", ""), "<cell>", "exec"), namespace)
    fix = fixed(namespace["f"], X)
    assert body(fix) == 'jax.debug.print("{}", x)\nreturn x'
    assert "+++ cell" in fix.diff


def test_a_function_whose_text_was_edited_since_is_left_alone(load, tmp_path, capsys):
    module = load("def f(x):\n    print(x)\n    return x\n")
    found = ex.lint(module.f, X)
    with open(module.__file__, "w") as file:
        file.write("y = 3\n")
    import linecache

    linecache.checkcache(module.__file__)
    assert found.fix(0).code == ""


def test_partials_and_jits_of_the_function_are_rewritten_below_them(load, capsys):
    module = load("def f(n, x):\n    print(n, x)\n    return x\n")
    assert 'jax.debug.print("{} {}", n, x)' in fixed(jax.jit(functools.partial(module.f, 2)), X).code
