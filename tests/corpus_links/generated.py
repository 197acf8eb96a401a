"""Programs of random expressions in which every operation has a constant, a slice or a size of its own.

Many of them stand on one line, or are one expression evaluated many times: what tells them apart is in the operation.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import jax
import jax.numpy as jnp

LENGTH = 331
"""Of every vector. A prime above every slice's length, so that a size says which slice it is of."""


@dataclass
class Program:
    """Writes a program, statement by statement; `fresh` hands out each constant and each size once."""

    random: Random
    lines: list[str] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=lambda: ["x", "y"])
    constants: int = 0
    sizes: int = 0

    def constant(self) -> str:
        self.constants += 1
        return f"{1 + self.constants * 0.00713 + self.random.random() * 0.005:.5f}"

    def size(self) -> int:
        """From 20 to 299, each once until all were given."""
        self.sizes += 1
        return 20 + self.sizes * 37 % 280

    def value(self) -> str:
        return self.random.choice(self.values[-4:])

    def expression(self, of: str, depth: int) -> str:
        """A vector as long as `of`, computed from it."""
        if depth == 0:
            return of
        inner = self.expression(of, depth - 1)
        c = self.constant()
        start, size = self.random.randrange(20), self.size()
        rest = f"({start}, {LENGTH - size - start})"
        return self.random.choice(
            [
                f"({inner} * {c})",
                f"({inner} + {c})",
                f"({inner} - {c})",
                f"jnp.maximum({inner}, {c})",
                f"jnp.minimum({inner}, {c})",
                f"jnp.tanh({inner} * {c})",
                f"jnp.where({inner} > {c}, {of}, {inner})",
                f"({inner} * {of} + {c})",
                f"jnp.pad({inner}[{start}:{start + size}] * {c}, {rest})",
                f"jnp.concatenate([{inner}[{size}:], {inner}[:{size}]])",
                f"lax.reduce_window({inner}, -jnp.inf, lax.max, ({size},), (1,), 'SAME')",
                f"({inner} + {of}[:{size}].sum() * {c})",
                f"({inner} * lax.dynamic_slice({of}, (i,), ({size},)).max())",
                f"({inner} / (jnp.arange({LENGTH}) * {c} + 3))",
                f"jax.nn.sigmoid({inner} * {c})",
            ]
        )

    def statement(self) -> None:
        """One line more, of one of many kinds."""
        kinds = [self.plain, self.several, self.repeated, self.helper, self.compiled, self.scan, self.branch]
        self.random.choice([*kinds, self.loop, self.mapped, self.checkpointed])()

    def add(self, text: str) -> None:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.values.append(name)

    def plain(self) -> None:
        self.add(self.expression(self.value(), 3))

    def several(self) -> None:
        self.add(" + ".join(self.expression(self.value(), 2) for _ in range(3)))

    def repeated(self) -> None:
        constants = ", ".join(self.constant() for _ in range(4))
        cuts = ", ".join(str(self.size()) for _ in range(3))
        of = self.value()
        self.add(
            self.random.choice(
                [
                    f"sum(jnp.sin({of} * c) for c in ({constants}))",
                    f"sum(jnp.where({of} > c, {of}, {self.value()}) for c in ({constants}))",
                    f"sum(jnp.pad({of}[:k], (0, {LENGTH} - k)) for k in ({cuts}))",
                    f"sum(jnp.tanh({of} + {self.value()}[k:].sum()) for k in ({cuts}))",
                    f"sum(jnp.concatenate([{of}[k:], {of}[:k]]) for k in ({cuts}))",
                ]
            )
        )

    def helper(self) -> None:
        name = f"helper{len(self.helpers)}"
        body = self.expression("z", 2)
        self.helpers.append(f"def {name}(z, c, k, i): return jnp.tanh({body} * c) + z[:k].sum()")
        calls = [f"{name}({self.value()}, {self.constant()}, {self.size()}, i)" for _ in range(3)]
        self.add(" * ".join(calls))

    def compiled(self) -> None:
        """Compiled on its own, and called with other sizes each time."""
        name = f"helper{len(self.helpers)}"
        self.helpers.append(f"@jax.jit\ndef {name}(z): return jnp.sin(z * {self.constant()}) + z * {self.constant()}")
        sizes = [self.size() for _ in range(3)]
        self.add(" + ".join(f"jnp.pad({name}({self.value()}[:{k}]), (0, {LENGTH - k}))" for k in sizes))

    def scan(self) -> None:
        body = f"({self.expression('c', 2)} + r * {self.constant()}, None)"
        self.add(f"lax.scan(lambda c, r: {body}, {self.value()}, jnp.stack([x, y, {self.value()}]))[0]")

    def loop(self) -> None:
        self.add(f"lax.fori_loop(0, 3, lambda j, z: {self.expression('z', 2)}, {self.value()})")

    def branch(self) -> None:
        branches = f"lambda z: {self.expression('z', 2)}, lambda z: {self.expression('z', 2)}"
        self.add(f"lax.cond({self.value()}.sum() > {self.constant()}, {branches}, {self.value()})")

    def mapped(self) -> None:
        self.add(f"jax.vmap(lambda z: {self.expression('z', 2)})(jnp.stack([x, {self.value()}])).sum(0)")

    def checkpointed(self) -> None:
        self.add(f"jax.checkpoint(lambda z: {self.expression('z', 3)})({self.value()})")


def generate(seed: int, statements: int = 4) -> tuple[Callable[..., Any], Any, Any, Any]:
    """A program and its arguments; those of odd seeds give the gradient too."""
    program = Program(Random(seed))
    for _ in range(statements):
        program.statement()
    lines = ["import jax", "import jax.numpy as jnp", "from jax import lax", *program.helpers, "def f(x, y, i):"]
    lines += [f"    {line}" for line in program.lines]
    lines.append(f"    return {' + '.join(name for name in program.values[2:])}")
    file, text = f"<generated {seed}>", "\n".join(lines)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {}
    exec(compile(text, file, "exec"), names)
    f = names["f"]
    function = jax.value_and_grad(lambda x, y, i: jnp.sum(f(x, y, i) ** 2), (0, 1)) if seed % 2 else f
    x = jnp.linspace(-1.0, 1.0, LENGTH)
    return function, x, x**2, 3
