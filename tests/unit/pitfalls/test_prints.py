"""print(…) rewritten: the same words, while the program runs."""

import ast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.users_modules import body, fixed, load_module  # noqa: F401 - a fixture

X = jnp.arange(3.0)

PRINTS = [
    ("print(x)", 'jax.debug.print("{}", x)'),
    ("print()", 'jax.debug.print("")'),
    ("print('loss', x.sum())", 'jax.debug.print("loss {}", x.sum())'),
    ("print('a', 'b', 1)", 'jax.debug.print("a b {}", 1)'),
    ("print('a', '{}', x)", 'jax.debug.print("{}{}", "a {} ", x)'),
    ("print(x, '{}')", 'jax.debug.print("{} {{}}", x)'),
    ("print('{}')", 'jax.debug.print("{}", "{}")'),
    ("print(f'{{}} n={n}')", 'jax.debug.print("{}{}", "{} n=", n)'),
    ("print(f'{n=} {n = }')", 'jax.debug.print("n={} n = {}", n, n)'),
    ("print(f'{n:>5} {n!r:<3}')", 'jax.debug.print("{:>5} {!r:<3}", n, n)'),
    ("print(f'a\\tb' 'c{d}', x)", 'jax.debug.print("{}{}", "a\\tbc{d} ", x)'),
    ("print(rf'\\d {n}')", 'jax.debug.print("\\\\d {}", n)'),
    ("print(x, n, sep=', ')", 'jax.debug.print("{}, {}", x, n)'),
    ("print(x, n, sep='')", 'jax.debug.print("{}{}", x, n)'),
    ("print(x, sep=None, end='\\n', flush=True)", 'jax.debug.print("{}", x)'),
    ("print(x, end='.\\n')", 'jax.debug.print("{}.", x)'),
    ("print('n: ' + str(n))", 'jax.debug.print("n: {}", n)'),
    ("print('%s is %.2f' % ('n', n))", "jax.debug.print(\"{} is {:.2f}\", 'n', n)"),
    ("print('%d%%' % n)", None),
    ("print('{} {}'.format(n, 'a'))", "jax.debug.print(\"{} {}\", n, 'a')"),
    ("print('say \"hi\"', x)", "jax.debug.print('say \"hi\" {}', x)"),
    ("print(x.shape, x)", 'jax.debug.print("{} {}", str(x.shape), x)'),
    ("print(x, end='')", None),
    ("print(*[x])", None),
    ("print(f'{n:{n}}')", None),
    ("print('{a}'.format(a=n))", None),
    ("print(x, file=sys.stderr)", None),
]


@pytest.mark.parametrize(("before", "after"), PRINTS)
def test_a_print_becomes_a_debug_print_of_the_same_words(before, after, load, capsys):
    fix = fixed(load(f"import sys\ndef f(x, n=3):\n    {before}\n    return x\n").f, X, rule="impure-print")
    assert (body(fix).splitlines()[0] if fix.code else None) == after
    assert (f"-    {before}\n" in fix.diff) == (after is not None)


@pytest.mark.parametrize(("before", "after"), [pair for pair in PRINTS if pair[1] and "!r" not in pair[0]])
def test_the_rewritten_print_prints_what_the_print_printed(before, after, load, capfd):
    namespace = {"jax": jax, "x": np.arange(3.0, dtype=np.float32), "n": 3}
    exec(before, namespace)
    said = capfd.readouterr().out
    exec(after, namespace)
    jax.effects_barrier()
    assert capfd.readouterr().out == said


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=8), min_size=1, max_size=4))
def test_any_texts_keep_their_characters(texts):
    from explorer.pitfalls.fix_prints import FormatReader, format_of, quoted
    from explorer.pitfalls.fix_unit import Unit

    unit = Unit("f", "x\n", 1, 1, {})
    expression = ast.parse(" + ".join(map(repr, texts)) + " + str(x)", mode="eval").body
    told, values = format_of(FormatReader(unit.resolve).parts(expression))
    assert told.format(*(one.value for one in values[:-1]), 3) == "".join(texts) + "3"
    assert ast.literal_eval(quoted(told)) == told
