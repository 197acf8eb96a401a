"""A program with a pitfall, and the same with its cure written in by hand: what the judge of cures runs.

In the text a line that starts with `-` is the pitfall's, one with `+` is of the cure, all others are in both. Below a
line `# ---` stands who calls it: `run(jit)` gives what the program computes, by `jax.jit` or by nothing; `expected()`,
where there is one, what it should compute, by NumPy; `cost()` what the pitfall costs, where it is no result that is
wrong. There a line with `~` is for the rewrite alone, where that is called in another way.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = """\
import dataclasses
import functools
import random
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

X = jnp.arange(1.0, 5.0)
KEY = jax.random.key(7)
"""


@dataclass(frozen=True)
class CureCase:
    """One program.

    Args:
        rule: What finds the pitfall.
        source: Where it was told of; empty for a simple one.
        told: The code of the cure as it is told, which the cured text has, whatever it has for the parts in ⟨…⟩
            and for `…`. Several pieces are several lines here.
        text: The program, with the lines of both.
        call: What is linted.
        words: A piece of the sentence that isn't code.
        cured, rewritten: What is linted of the cured program and of the rewritten one, where that isn't called alike.
    """

    rule: str
    source: str
    told: str
    text: str
    call: str = "f, X"
    words: str = ""
    cured: str = ""
    rewritten: str = ""

    @property
    def before(self) -> str:
        return self._lines(" -")

    @property
    def after(self) -> str:
        return self._lines(" +")

    def rewritten_by(self, program: str) -> str:
        """A program that was rewritten, under who calls it."""
        calls = self.text.partition("# ---")[2]
        driver = self._lines(" ~" if "\n~" in calls else " -")
        return program.partition("# ---")[0] + "# ---" + driver.partition("# ---")[2]

    def _lines(self, kinds: str) -> str:
        lines = (line if line[:1] in "-+~" and line else f" {line}" for line in self.text.strip("\n").splitlines())
        return HEAD + "".join(f"{line[1:]}\n" for line in lines if line[0] in kinds)
