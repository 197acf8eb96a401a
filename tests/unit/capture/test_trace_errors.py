"""A trace that fails is told in the user's terms: their line, the value they asked for, its origin, what to write."""

import linecache
import runpy
from textwrap import dedent

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.capture.sources import Span, bound_at, called_at, place_with_carets, syntax_at
from explorer.capture.trace_errors import explain_trace_error

X = jnp.arange(4, dtype=jnp.float32)
N = jnp.int32(2)
TABLE = np.arange(3)
ITEMS = [1, 2, 3]


def failure(function, *args):
    with pytest.raises(ex.errors.ExploreError) as caught:
        ex.explore(function, *args)
    return caught.value


@pytest.fixture
def module(tmp_path):
    """Run a source text as a file of the user's."""

    def load(text):
        path = tmp_path / "model.py"
        path.write_text("import jax\nimport jax.numpy as jnp\nimport numpy as np\n" + dedent(text))
        linecache.checkcache(str(path))
        return runpy.run_path(str(path))

    return load


# --- messages, in full


def test_a_branch_in_a_helper_is_told_with_its_way_and_its_origin(module):
    user = module("""
        def clip_loss(x):
            loss = jnp.mean(x)
            if loss > 3.0:
                return loss
            return -loss

        def train_step(x):
            return clip_loss(x * 2)
        """)
    error = failure(user["train_step"], X)
    assert str(error) == dedent("""\
        train_step could not be explored: `if loss > 3.0:` needs a value, but while tracing `loss > 3.0` has none yet (bool[]).
          at  model.py, line 7:   if loss > 3.0:
                                     ^^^^^^^^^^
          in  train_step, model.py, line 12:   return clip_loss(x * 2)
          from  model.py, line 6:   loss = jnp.mean(x)
          from  argument `x` of train_step
          Hint: jnp.where(loss > 3.0, a, b) chooses between values,
                jax.lax.cond(loss > 3.0, f, g, x) between computations.""")  # noqa: E501
    assert isinstance(error, ex.errors.TracedValueError)
    assert isinstance(error, TypeError)
    assert isinstance(error.__cause__, jax.errors.TracerBoolConversionError)
    assert error.capture.failure == "trace failed: TracerBoolConversionError"


def test_a_compile_that_fails_names_the_users_argument_not_the_wrappers(module):
    user = module("""
        def grow(x, data):
            return jnp.zeros(data["n"]) + x
        """)
    scalar = ex.InputInfo((), "int32")
    with pytest.raises(ex.errors.TracedValueError) as caught:
        ex.compile(user["grow"], args=[ex.InputInfo((1,), "float32"), {"n": scalar}])
    assert str(caught.value) == dedent("""\
        grow could not be compiled: `jnp.zeros(data['n'])` needs a value, but while tracing `data['n']` has none yet.
          at  model.py, line 6:   return jnp.zeros(data["n"]) + x
                                         ^^^^^^^^^^^^^^^^^^^^
          from  argument `data['n']` of grow
          Hint: shapes, sizes and axes can't depend on values; jnp.where(mask, a, b) computes with a part.
                Or make `data['n']` a constant: a number instead of an InputInfo; for jax.jit, a static argument.""")


def test_a_numpy_function_is_told_with_its_counterpart(module):
    user = module("""
        def norm(x):
            return np.linalg.norm(x)
        """)
    assert str(failure(user["norm"], X)) == dedent("""\
        norm could not be explored: `np.linalg.norm(x)` needs a value, but while tracing `x` has none yet (float32[4]).
          at  model.py, line 6:   return np.linalg.norm(x)
                                         ^^^^^^^^^^^^^^^^^
          from  argument `x` of norm
          Hint: jnp.linalg.norm instead of np.linalg.norm.""")


def test_a_loop_over_a_traced_number_is_told_with_both_ways_out(module):
    user = module("""
        def power(x, n):
            for _ in range(n):
                x = x * x
            return x
        """)
    assert str(failure(user["power"], X, N)) == dedent("""\
        power could not be explored: `range(n)` needs a value, but while tracing `n` has none yet (int32[]).
          at  model.py, line 6:   for _ in range(n):
                                           ^^^^^^^^
          from  argument `n` of power
          Hint: jax.lax.fori_loop(0, n, body, start) loops in the compiled program.
                Or make `n` a constant: a number instead of an InputInfo; for jax.jit, a static argument.""")


def test_a_mask_is_told_with_what_keeps_the_shape(module):
    user = module("""
        def positive(x):
            return x[x > 0]
        """)
    assert str(failure(user["positive"], X)) == dedent("""\
        positive could not be explored: `x[x > 0]` needs a value, but while tracing `x > 0` has none yet (bool[4]).
          at  model.py, line 6:   return x[x > 0]
                                         ^^^^^^^^
          from  argument `x` of positive
          Hint: jnp.where(x > 0, x, fill) keeps the shape, with a `fill` that doesn't count in what follows: 0 in a \
sum; jnp.mean(x, where=x > 0) and similar functions skip the others.""")


def test_shapes_that_do_not_fit_are_told_with_the_operands(module):
    user = module("""
        def layer(w, x):
            return jnp.tanh(w @ x)

        def model(w, x):
            return layer(w, x + 1)
        """)
    error = failure(user["model"], jnp.ones((3, 5)), X)
    assert str(error) == dedent("""\
        model could not be explored: trace failed: TypeError: dot_general requires contracting dimensions to have the same shape, got (5,) and (4,).
          at  model.py, line 6:   return jnp.tanh(w @ x)
                                                  ^^^^^
          in  model, model.py, line 9:   return layer(w, x + 1)
          with  `w` is f32[3,5], `x` is f32[4]""")  # noqa: E501
    assert type(error) is ex.errors.ExploreError


def test_a_carry_that_changes_is_told_in_all_of_jaxs_sentences(module):
    user = module("""
        def grow(x):
            return jax.lax.scan(lambda c, v: (jnp.stack([c, c]), v), 0.0, x)
        """)
    told = str(failure(user["grow"], X))
    assert "carry output must have equal types, but they differ:\n  The input carry c has type float32[]" in told
    assert "  at  model.py, line 6:   return jax.lax.scan" in told


# --- every kind of evaluation, by itself and in a helper

KINDS = {
    "if": (lambda x, n: x if x.sum() > 0 else -x, "… if x.sum() > 0 else …", "jnp.where(x.sum() > 0, a, b)"),
    "and": (lambda x, n: n > 0 and n < 3, "n > 0 and n < 3", "jnp.logical_and(n > 0, n < 3)"),
    "or": (lambda x, n: n > 0 or n < 3, "n > 0 or n < 3", "jnp.logical_or(n > 0, n < 3)"),
    "not": (lambda x, n: not n, "not n", "jnp.logical_not(n)"),
    "chain": (lambda x, n: 0 < n < 3, "0 < n < 3", "jnp.logical_and(0 < n, n < 3)"),
    "if-and": (lambda x, n: x if n > 0 and n < 3 else -x, "… if n > 0 and n < 3 else …", "jnp.where(jnp.logical_and("),
    "filter": (lambda x, n: [v for v in (n, n) if v > 0], "if v > 0", "jnp.where(v > 0, a, b)"),
    "in": (lambda x, n: n in (1, 2), "n in (1, 2)", "jnp.isin(n, jnp.asarray((1, 2)))"),
    "bool": (lambda x, n: bool(n), "bool(n)", "jnp.where(n, a, b)"),
    "float": (lambda x, n: float(x.sum()), "float(x.sum())", "jnp.asarray(x.sum(), float)"),
    "int": (lambda x, n: int(n), "int(n)", "jnp.asarray(n, int)"),
    "complex": (lambda x, n: complex(n), "complex(n)", "jnp.asarray(n, complex)"),
    "item": (lambda x, n: x.sum().item(), "x.sum().item()", "leaving `.item()` out"),
    "tolist": (lambda x, n: x.tolist(), "x.tolist()", "leaving `.tolist()` out"),
    "asarray": (lambda x, n: np.asarray(x), "np.asarray(x)", "jnp.asarray instead of np.asarray"),
    "ufunc": (lambda x, n: np.sin(x), "np.sin(x)", "jnp.sin instead of np.sin"),
    "range": (lambda x, n: [x for _ in range(n)], "range(n)", "jax.lax.fori_loop(0, n, body, start)"),
    "shape": (lambda x, n: jnp.zeros((n, 2)), "jnp.zeros((n, 2))", "shapes, sizes and axes"),
    "reshape": (lambda x, n: x.reshape(n, 2), "x.reshape(n, 2)", "shapes, sizes and axes"),
    "arange": (lambda x, n: jnp.arange(n), "jnp.arange(n)", "shapes, sizes and axes"),
    "axis": (lambda x, n: x.sum(axis=n), "x.sum(axis=n)", "shapes, sizes and axes"),
    "repeat": (lambda x, n: [0] * n, "[0] * n", "shapes, sizes and axes"),
    "slice": (lambda x, n: x[:n], "x[:n]", "jax.lax.dynamic_slice_in_dim(x, start, size)"),
    "mask": (lambda x, n: x[x > 0], "x[x > 0]", "jnp.where(x > 0, x, fill)"),
    "at": (lambda x, n: x.at[x > 0].set(1), "x.at[x > 0].set(1)", "jnp.where(x > 0, 1, x)"),
    "nonzero": (lambda x, n: jnp.nonzero(x), "jnp.nonzero(x)", "jnp.nonzero(…, size=n)"),
    "list": (lambda x, n: ITEMS[n], "ITEMS[n]", "jnp.asarray(ITEMS)[n]"),
    "table": (lambda x, n: TABLE[n], "TABLE[n]", "jnp.asarray(TABLE)[n]"),
    "format": (lambda x, n: f"n is {n:.3f}", "f'n is {n:.3f}'", 'jax.debug.print("{}", n)'),
    "percent": (lambda x, n: "%f" % n, "'%f' % n", 'jax.debug.print("{}", n)'),  # noqa: UP031
    "sorted": (lambda x, n: sorted(x), "sorted(x)", "jnp.sort(x)"),
    "max": (lambda x, n: max(n, 1), "max(n, 1)", "jnp.maximum(n, 1)"),
    "key": (lambda x, n: {n: x}, "{n: x}", "a key that is no array"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nested", [False, True], ids=["direct", "nested"])
def test_what_asks_for_a_value_is_named_with_its_line_and_its_hint(kind, nested):
    asks, text, hint = KINDS[kind]

    def helper(x, n):
        return asks(x, n)

    error = failure(helper if nested else asks, X, N)
    assert isinstance(error, ex.errors.TracedValueError)
    told = str(error)
    assert f" could not be explored: `{text}` needs a value" in told
    assert f"  at  test_trace_errors.py, line {asks.__code__.co_firstlineno}:   " in told
    assert hint in told.partition("  Hint: ")[2]
    assert ("  in  helper, test_trace_errors.py" in told) is nested
    # Who has the value is named by JAX's account, or by the expression.
    assert "  from  argument `" in told
    assert "JAX" not in told
    assert "Tracer" not in told


def statement(text):
    return f"def f(x, n):\n    {text}\n    return x\n"


@pytest.mark.parametrize(
    ("text", "asked", "hint"),
    [
        ("if n > 1: x = -x", "if n > 1:", "jax.lax.cond(n > 1, f, g, x)"),
        ("while n > 1: n = n - 1", "while n > 1:", "jax.lax.while_loop"),
        ("assert n > 1", "assert n > 1", "jax.experimental.checkify.check(n > 1, message)"),
        ("assert jnp.all(x)", "assert jnp.all(x)", "jax.experimental.checkify.check(jnp.all(x), message)"),
    ],
)
def test_a_statement_that_asks_for_a_value_is_named(module, text, asked, hint):
    told = str(failure(module("\n" + statement(text))["f"], X, N))
    assert f"`{asked}` needs a value" in told
    assert f"  at  model.py, line 6:   {text}" in told
    assert hint in told


# --- wherever the user's line is


def branch(v):
    return v if v.sum() > 0 else -v


LINE = branch.__code__.co_firstlineno + 1


class Model:
    def __call__(self, x):
        return branch(x)

    def method(self, x):
        return branch(x)


@jax.custom_jvp
def custom(x):
    return branch(x)


custom.defjvp(lambda primals, tangents: (custom(*primals), tangents[0]))


@pytest.mark.parametrize(
    "function",
    [
        branch,
        lambda x: branch(x),
        Model(),
        Model().method,
        jax.jit(branch),
        jax.grad(lambda x: branch(x.sum())),
        jax.value_and_grad(lambda x: branch(x.sum())),
        jax.vmap(branch),
        jax.checkpoint(branch),
        custom,
        jax.grad(lambda x: custom(x.sum())),
        lambda x: jax.lax.scan(lambda c, v: (branch(v), v), 0.0, x),
        lambda x: jax.lax.cond(True, branch, branch, x),
        lambda x: jax.lax.while_loop(lambda v: v.sum() < 3, branch, x),
        lambda x: jax.lax.fori_loop(0, 3, lambda i, v: branch(v), x),
        lambda x: jax.tree.map(branch, [x]),
    ],
)
def test_the_users_own_line_is_found_through_any_transformation(function):
    error = failure(function, X)
    assert isinstance(error, ex.errors.TracedValueError)
    assert f"  at  test_trace_errors.py, line {LINE}:   return v if v.sum() > 0 else -v\n" in str(error)
    assert "  from  argument `" in str(error)
    for line in str(error).splitlines():
        assert (
            not line.startswith(("  at  ", "  in  ", "  from  "))
            or "test_trace_errors.py" in line
            or "argument" in line
        )


def test_a_cell_of_a_notebook_is_called_by_its_number():
    InteractiveShell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    config = pytest.importorskip("traitlets.config").Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    cell = """def f(x):
    y = x.sum()
    return float(y)
try:
    ex.explore(f, jnp.ones(3))
except ex.errors.ExploreError as error:
    told = str(error)
"""
    try:
        shell.run_cell("import explorer as ex, jax.numpy as jnp", store_history=True).raise_error()
        number = shell.execution_count
        shell.run_cell(cell, store_history=True).raise_error()
        assert f"  at  cell [{number}], line 3:   return float(y)\n" in shell.user_ns["told"]
        assert f"  from  cell [{number}], line 2:   y = x.sum()\n" in shell.user_ns["told"]
    finally:
        InteractiveShell.clear_instance()


def test_jaxs_own_frames_are_left_out_where_jax_shows_them():
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    try:
        told = str(failure(jax.jit(branch), X))
    finally:
        jax.config.update("jax_traceback_filtering", before)
    assert f"  at  test_trace_errors.py, line {LINE}:" in told
    assert "\n  in  " not in told


def test_where_there_is_no_source_the_place_and_the_kind_are_still_told():
    space = {}
    exec("def f(x):\n    return float(x[0])", space)
    assert (
        str(failure(space["f"], X))
        == dedent("""\
        f could not be explored: it needs a value, but while tracing there is none yet (float32[]).
          at  <string>, line 2
          from  argument `x` of f
          Hint: jnp.where and jax.lax.cond choose by a value, jax.debug.print prints one, jax.numpy computes with it.""")  # noqa: E501
    )


def test_a_file_that_was_edited_since_is_not_taken_at_its_word(module, tmp_path):
    user = module("def f(x):\n    return float(x)\n")
    (tmp_path / "model.py").write_text("\n" * 4 + "    print(float(x) or 'anything else')\n")
    linecache.checkcache(str(tmp_path / "model.py"))
    assert "it needs a value, but while tracing there is none yet (float32[])." in str(failure(user["f"], X[0]))


def test_a_call_over_several_lines_is_named(module):
    user = module("""
        def f(x):
            return (x
                .sum()
                .item())
        """)
    assert "`x.sum().item()` needs a value, but while tracing `x.sum()` has none yet" in str(failure(user["f"], X))


def test_a_long_way_is_shortened_in_the_middle(module):
    chain = "".join(f"def f{i}(x):\n    return f{i - 1}(x)\n" for i in range(1, 9))
    told = str(failure(module("def f0(x):\n    return float(x)\n" + chain)["f8"], X[0])).splitlines()
    assert [line.partition(",")[0] for line in told if line.startswith(("  in  ", "  …  "))] == [
        "  in  f1",
        "  in  f2",
        "  …   4 more",
        "  in  f7",
        "  in  f8",
    ]


def test_an_error_inside_a_library_points_at_the_users_call():
    told = str(failure(lambda x: jnp.einsum("ij,jk", x, x), X))
    assert "  at  test_trace_errors.py" in told
    assert "opt_einsum" not in told


def test_the_users_own_exception_is_told_with_its_line_even_if_it_shows_a_traced_value():
    def refuse(x):
        raise ValueError(f"Shapes must be 1D sequences of concrete values, not {x}")

    error = failure(refuse, X)
    assert type(error) is ex.errors.ExploreError
    assert f"  at  test_trace_errors.py, line {refuse.__code__.co_firstlineno + 1}:" in str(error)
    assert isinstance(error.__cause__, ValueError)


def test_what_the_user_says_is_told_in_all_its_lines():
    def refuse(x):
        raise ValueError("no.\n--------\nSee https://example.org/why")

    assert "trace failed: ValueError: no.\n  --------\n  See https://example.org/why\n" in str(failure(refuse, X))


def test_no_address_and_no_folder_of_this_machine_is_told():
    told = str(failure(lambda x: x, "text"))
    assert "0x" not in told
    assert "/" not in str(failure(lambda x: "text", X))


def test_several_origins_are_all_named():
    told = str(failure(lambda a, b, c: float(a + b.sum() + c["k"]), X[0], X, {"k": X[0]}))
    assert "  from  arguments `a`, `b` and `c['k']` of <lambda>\n" in told


def test_a_leaked_value_is_told_with_who_kept_it():
    kept = []

    @jax.jit
    def leak(x):
        kept.append(x * 2)
        return x

    leak(X)
    try:
        kept[0] + 1
    except jax.errors.UnexpectedTracerError as error:
        kind, told = explain_trace_error(error, "step", "run")
    line = leak.__wrapped__.__code__.co_firstlineno + 2
    assert kind is ex.errors.TracedValueError
    assert told.startswith(
        "step could not be run: it uses a value that was kept from the trace of leak (float32[4]).\n"
    )
    assert "  at  test_trace_errors.py, line " in told
    assert f"  from  test_trace_errors.py, line {line}:   kept.append(x * 2)\n" in told


# --- what is no error


def test_a_traced_value_may_be_printed(capsys):
    def add_times_two(a, b):
        c = a + b
        print(f"c : {c}")
        return c + a + b

    info = ex.InputInfo((1, 2), jnp.float32)
    fast = ex.compile(add_times_two, args=[info, info])
    assert "c : " in capsys.readouterr().out
    result = fast(jnp.array([[1.0, 2.0]], jnp.float32), jnp.array([[2.0, 3.0]], jnp.float32))
    np.testing.assert_array_equal(result, [[6.0, 10.0]])


# --- parts


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("y = 1\nuse(y)", 2),
        ("y = 1\nz = 2\ny += 1\nuse(y)", 4),
        ("use(y)", 0),
        ("use(x)", 0),
        ("if x: y = 1\nuse(y)", None),
        ("y = 1\nif x:\n  use(y)", 2),
        ("y = 1\nif x: y = 2\nelse:\n  use(y)", 2),
        ("y = 1\nfor i in x:\n  use(y)\n  y = 2", None),
        ("y = 1\nfor i in x:\n  y = i\n  use(y)", 4),
        ("for y in x:\n  use(y)", 2),
        ("y = 1\nwhile use(y): y = 2", None),
        ("with x as y:\n  use(y)", 2),
        ("y = 1\ntry: y = 2\nexcept E:\n  use(y)", None),
        ("y = 1\ny = use(y)", 2),
        ("y = 1\nf = lambda: use(y)", 0),
        ("y = [y for y in x]\nuse(y)", 2),
        ("y = 1\nz = [y for y in x]\nuse(y)", 2),
        ("match x:\n  case 1: y = 2\nuse(y)", None),
    ],
)
def test_a_name_is_bound_where_it_surely_is(module, body, line):
    text = "def f(x):\n" + "".join(f" {part}\n" for part in body.splitlines())
    linecache.cache["bound"] = (len(text), None, text.splitlines(keepends=True), "bound")
    row, at = next((i, part.index("use(")) for i, part in enumerate(text.splitlines(), 1) if "use(" in part)
    way = syntax_at("bound", Span(row, at + 4, row, at + 5))
    assert bound_at(way, "x" if "use(x)" in body else "y") == line


def test_carets_count_characters_not_bytes(module):
    user = module("""
        def f(x):
            é = "ü"; y = float(x)
            return y
        """)
    told = str(failure(user["f"], X[0]))
    assert '  at  model.py, line 6:   é = "ü"; y = float(x)\n                                       ^^^^^^^^\n' in told


def test_a_place_without_text_has_no_carets():
    assert place_with_carets("at ", "nowhere.py", Span(1, 0, 1, 5)) == ["at nowhere.py, line 1"]


def test_the_users_call_is_found_from_inside_of_a_trace():
    said = []

    @jax.jit
    def inside(x):
        said.append(jax.tree.map(lambda _: called_at(), x))
        return x

    inside(X)
    assert f"line {inside.__wrapped__.__code__.co_firstlineno + 2}" in said[0]


def test_only_the_operands_of_what_failed_are_told(module):
    user = module("""
        def model(w, x, bias):
            return jnp.add(w @ x, bias)
        """)
    told = str(failure(user["model"], jnp.ones((3, 5)), X, X)).splitlines()[-1]
    assert told == "  with  `w` is f32[3,5], `x` is f32[4]"
