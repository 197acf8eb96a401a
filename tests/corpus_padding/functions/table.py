"""Cases out of a text, one a line: `expression : arguments : s>=3`; the arguments are called x, y, z, w, v, u."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn, random

from tests.corpus_padding.cases import Case

_NAMES = {"jax": jax, "jnp": jnp, "np": np, "lax": lax, "nn": nn, "random": random, "special": jax.scipy.special}


def table(family: str, text: str, **names: Any) -> list[Case]:
    """The cases of a family; `names` are what its expressions use, besides JAX's modules and NumPy."""
    cases: list[Case] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        expression, arguments, *limits = re.split(r"\s+:\s+", line)
        given = ", ".join("xyzwvu"[: len(arguments.split())])
        function = eval(f"lambda {given}: ({expression})", {**_NAMES, **names})
        smallest = {s: int(size) for s, size in re.findall(r"(\w)>=(\d+)", " ".join(limits))}
        largest = {s: int(size) for s, size in re.findall(r"(\w)<=(\d+)", " ".join(limits))}
        cases.append(Case(expression, function, arguments, smallest, family, largest))
    return cases
