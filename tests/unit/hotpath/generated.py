"""Whole eager programs, drawn by hypothesis: functions, a world around them, and what changes in it between calls."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

_WORLD = """
import functools, random
import jax, jax.numpy as jnp, numpy as np
from typing import NamedTuple

G = {"w": jnp.arange(1.0, 4.0), "rate": 0.5, "flag": True, "n": 2}
PARTS = [jnp.ones(3), jnp.arange(3.0)]
LOG = []
NUMBERS = [1.0, 2.0, 3.0]
NAMES = {"scaled"}
TABLE = np.array([1.0, 0.5, 2.0], np.float32)
COUNT = 0

class Config:
    kind = "tanh"
    def __init__(self):
        self.rate = 2.0
        self.seen = 0
        self.w = jnp.full(3, 0.5)
    def scaled(self, x):
        return x * self.rate + self.w
    def counted(self, x):
        self.seen += 1
        return x * self.seen
    @property
    def double(self):
        return self.rate * 2

class Pair(NamedTuple):
    a: jax.Array
    b: jax.Array

class Vector:
    def __init__(self, data):
        self.data = data
    def __add__(self, other):
        return Vector(self.data + other.data)

CFG = Config()

def helper(x, scale=1.5):
    if scale > 1:
        return jnp.tanh(x) * scale
    return x * scale

def noisy(x):
    LOG.append(1)
    return x + len(LOG)

ACT = [jnp.tanh, helper]
"""

# Expressions of arrays; `a` and `b` stand for others.
_ARRAYS = (
    "{a} * 2.0",
    "{a} + {b}",
    "{a} - {b} * 0.5",
    "jnp.tanh({a})",
    "jnp.sin({a} * {b})",
    "jnp.where({a} > 0, {a}, {b})",
    "{a} * G['w']",
    "{a} * G['rate']",
    "{a} * G.get('more', 1.0)",
    "helper({a})",
    "helper({a}, scale=0.5)",
    "CFG.scaled({a})",
    "{a} * CFG.rate",
    "{a} * CFG.double",
    "{a} + CFG.w",
    "sum([{a}, {b}])",
    "jnp.stack([{a}, {b}])[0]",
    "jax.grad(lambda v: (v * {a}).sum())({b})",
    "jax.vmap(lambda v: v * 2)({a})",
    "{a} * len(NUMBERS)",
    "{a} * sum(NUMBERS)",
    "{a} * max(NUMBERS)",
    "{a} * NUMBERS[0]",
    "{a} + jnp.asarray(NUMBERS)[0]",
    "{a} * TABLE[0]",
    "{a} + jnp.asarray(TABLE)",
    "({a} if 'scaled' in NAMES else {b})",
    "({a} if G['flag'] else {b})",
    "functools.reduce(jnp.add, [{a}, {b}])",
    "Pair({a}, {b}).b",
    "ACT[0]({a})",
    "ACT[-1]({a})",
    "(Vector({a}) + Vector({b})).data",
    "[v * 2 for v in ({a}, {b})][1]",
    "{{'k': {a}, 'j': {b}}}['j']",
    "jax.tree.map(lambda v: v * {a}, G['w'])",
    "jnp.stack(PARTS)[0] * {a}",
    "PARTS[0] + {a}",
    "{a} * float(G['n'])",
    "{a}.at[0].set(1.0)",
    "jnp.sort({a})",
    "{a} * (1 if hasattr(CFG, 'extra') else 2)",
    "{a} * getattr(CFG, 'extra', 3)",
    "{a} * (2 if NUMBERS else 1)",
    "jax.lax.fori_loop(0, 3, lambda i, v: v * 0.5 + {b}, {a})",
    "{a} * x.shape[0]",
    "{a} * (NUMBERS == [1.0, 2.0, 3.0])",
    "{a}.astype(jnp.float16).astype(jnp.float32)",
    "jnp.asarray({a})",
    "{a}",
    "np.sqrt(4.0) * {a}",
    "{a} * n",
    "{a} * state['s']",
    "sum(state.values())",
    "{a} * len(state)",
)
# What a call may do besides; most of it must keep it eager, or be the same.
_STATEMENTS = (
    "LOG.append(1)",
    "print('called', len(LOG))",
    "CFG.seen += 1",
    "G['calls'] = G.get('calls', 0) + 1",
    "random.random()",
    "{a} = {a} + np.random.rand()",
    "noisy({a})",
    "{a} = CFG.counted({a})",
    "assert {a}.shape[0] > 1, LOG.append(7)",
    "assert G['flag'], 'off'",
    "assert bool(({a} < 1e9).all())",
    "state['s'] = {a}",
    "del NUMBERS[0:0]",
    "np.random.seed(3)",
    "TABLE[1] += 1",
    "NAMES.discard('nothing')",
    "x += 0.0",
    "own = [{a}]; own += [{b}]; {a} = own[-1]",
    "own = {{}}; own['k'] = {a}; own.update(j={b}); {a} = own['j']",
    "own = LOG; own.append(2)",
    "keep = PARTS[:]; keep.append({a})",
    "import math; {a} = {a} * math.sqrt(2.0)",
    "name = f'{{G[\"rate\"]}}'; {a} = {a} * len(name)",
    "text = f'{{{a}}}'",
    "value = float({a}.sum())",
    "{a} = {a} * int(G['w'][0])",
    "{a}, {b} = {b}, {a}",
    "(own := {a})",
    "{a} = {a} if {a} is not None else {b}",
    "own = np.zeros(3, np.float32); own[0] = 1.0; {a} = {a} + own",
    "own = sorted(NUMBERS); {a} = {a} * own[0]",
    "PARTS.sort(key=lambda v: LOG.append(3) or 0)",
    "_ = [LOG.append(4) for _ in range(1)]",
    "G['w'] += 0",
    "{a} += 1.0",
    "{a} = {a} / {b}.sum()",
    "jax.debug.callback(LOG.append, 5)",
    "own = iter([{a}, {b}]); {a} = next(own)",
    "{a} = jnp.zeros(3, 'float64') + {a}",
)
_BLOCKS = (
    "if G['flag']:",
    "if n > 1:",
    "if {a}.ndim == 1:",
    "for _ in range(2):",
    "for v in PARTS:",
    "for i, v in enumerate(NUMBERS):",
    "for key, v in G.items():",
    "if {a}.sum() > 0:",
    "while n > 5:",
    "if NUMBERS:",
    "if isinstance({a}, jax.Array):",
    "if G['w'][0] > 0:",
    "for key in state:",
    "if CFG.kind == 'tanh':",
    "with jax.named_scope('part'):",
    "try:",
)
_RESULTS = (
    "{a}",
    "({a}, {b})",
    "[{a}, {b}]",
    "{{'z': {a}, 'a': {b}}}",
    "Pair({a}, {b})",
    "({a}, {{'y': {b}, 'b': [{a}]}})",
    "{a}.sum()",
    "(x, {a})",
    "({a}, {a})",
    "{a}, n",
    "state",
    "{{key: value * 2 for key, value in state.items()}}",
    "None",
    "PARTS[0], {a}",
)
# Between calls: what another part of the program does.
_CHANGES = (
    "G.update(rate=0.7)",
    "G.update(w=G['w'] + 1)",
    "G.update(w=-G['w'])",
    "G.update(flag=False)",
    "G.update(more=3.0)",
    "LOG.append(9)",
    "NUMBERS.append(4.0)",
    "NUMBERS.__setitem__(0, 5.0)",
    "NUMBERS.clear()",
    "NAMES.clear()",
    "TABLE.__setitem__(0, 3.0)",
    "setattr(CFG, 'rate', 3.0)",
    "setattr(CFG, 'extra', 4)",
    "setattr(Config, 'kind', 'sin')",
    "setattr(CFG, 'w', CFG.w * 2)",
    "ACT.reverse()",
    "PARTS.__setitem__(0, PARTS[1])",
    "PARTS.append(jnp.ones(3))",
    "setattr(helper, '__defaults__', (0.5,))",
    "globals().update(helper=lambda x, scale=9.0: x * scale)",
    "setattr(Config, 'scaled', lambda self, x: x)",
    "None",
    "None",
    "None",
)
# What is given, in place of the usual.
_ARGUMENTS = (
    "(jnp.arange(3.0) * -1, {'s': jnp.ones(3), 'r': 2.0}, 2)",
    "(jnp.arange(5.0), {'s': jnp.ones(()), 'r': 2.0}, 2)",
    "(jnp.arange(3), {'s': jnp.ones(3), 'r': 2.0}, 2)",
    "(jnp.arange(3.0), {'r': 2.0, 's': jnp.ones(3)}, 2)",
    "(jnp.arange(3.0), {'s': jnp.ones(3), 'r': 2.0}, 3)",
    "(jnp.arange(3.0), {'s': jnp.ones(3), 'r': 2.0}, True)",
    "(np.arange(3.0), {'s': jnp.ones(3), 'r': 2.0}, 2)",
    "(jnp.arange(3.0), {'s': np.ones(3), 'r': 2.0}, 2)",
    "(jnp.full(3, jnp.nan), {'s': jnp.ones(3), 'r': 2.0}, 2)",
)
_USUAL = "(jnp.arange(1.0, 4.0), {'s': jnp.ones(3), 'r': 2.0}, 2)"
_numbers = itertools.count()
_folder = Path(tempfile.gettempdir()) / "explorer_generated"


@st.composite
def bodies(draw, depth: int = 2) -> list[str]:
    """The lines of a function's body, with `x` and `y` as arrays."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        names = {"a": draw(st.sampled_from("xy")), "b": draw(st.sampled_from("xy"))}
        kind = draw(st.sampled_from(("array",) * 6 + ("statement", "block")))
        if kind == "array":
            lines.append(f"{draw(st.sampled_from('xy'))} = " + draw(st.sampled_from(_ARRAYS)).format(**names))
        elif kind == "statement":
            lines.append(draw(st.sampled_from(_STATEMENTS)).format(**names))
        elif depth:
            head = draw(st.sampled_from(_BLOCKS)).format(**names)
            lines += [head, *("    " + line for line in draw(bodies(depth=depth - 1)))]
            if head == "try:":
                lines += ["except Exception as error:", "    y = x * 3"]
            elif head.startswith("if") and draw(st.booleans()):
                lines += ["    return y"] if draw(st.booleans()) else ["else:", "    y = y + 1"]
    return lines or ["pass"]


@st.composite
def programs(draw) -> tuple[str, tuple[tuple[int, str], ...], tuple[tuple[int, str], ...]]:
    """The text of a program that has a function `step(x, state, n)`; at which calls what changes, and what is given."""
    inner, outer = draw(bodies(depth=1)), draw(bodies())
    result = draw(st.sampled_from(_RESULTS)).format(a=draw(st.sampled_from("xy")), b=draw(st.sampled_from("xy")))
    text = [_WORLD, "def part(x, y, state, n):", *("    " + line for line in inner), "    return x"]
    text += ["def step(x, state, n):", "    y = part(x, x * 2, state, n)" if draw(st.booleans()) else "    y = x * 2"]
    text += [*("    " + line for line in outer), f"    return {result}", ""]
    late = st.integers(6, 9)
    changes = draw(st.lists(st.tuples(late, st.sampled_from(_CHANGES)), max_size=2))
    given = draw(st.lists(st.tuples(late, st.sampled_from(_ARGUMENTS)), max_size=2))
    return "\n".join(text), tuple(changes), tuple(given)


def maker(program):
    """What makes a drawn program, as those of `programs.py` are made; both times from the same file."""
    text, changes, given = program
    _folder.mkdir(exist_ok=True)
    file = _folder / f"drawn_{next(_numbers)}.py"
    file.write_text(text)

    def make():
        world = {"__name__": "drawn"}
        exec(compile(text, str(file), "exec"), world)
        calls = []
        for number in range(11):
            source = next((source for at, source in given if at == number), _USUAL)
            args = eval(source, {"jnp": jnp, "np": np})
            acts = [lambda source=source: eval(source, world) for at, source in changes if at == number]
            calls.append((args, {}, *acts))
        names = ("G", "PARTS", "LOG", "NUMBERS", "NAMES", "TABLE", "COUNT")
        return world["step"], calls, lambda: [{name: world[name] for name in names}, vars(world["CFG"])]

    return make
