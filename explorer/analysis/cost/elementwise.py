"""How much an elementwise operation costs, as a multiple of an addition: what splits a kernel's time over its lines.

Operations are counted as one each (analysis/cost/cost.py), which is what FLOPs are; but a power takes as long as
hundreds of additions. Measured by tests/benchmarks/op_weights.py with JAX 0.10.2 and 0.12.0 on x86-64 with AVX-512, in
float32, rounded. Those that the compiler makes one by one instead of by vectors stand out. On a GPU the ratios are
smaller, in much the same order.
"""

from __future__ import annotations

from collections.abc import Mapping

WEIGHTS: Mapping[str, float] = {
    "divide": 13,
    "sqrt": 17,
    "rsqrt": 20,
    "erf": 27,
    "exponential": 30,
    "tanh": 31,
    "logistic": 33,
    "log": 35,
    "exponential-minus-one": 49,
    "log-plus-one": 51,
    "cosh": 56,
    "asinh": 89,
    "atanh": 93,
    "sinh": 97,
    "acosh": 100,
    "sine": 220,
    "cosine": 220,
    "power": 300,
    "tan": 430,
    "asin": 570,
    "remainder": 730,
    "cbrt": 770,
    "atan2": 860,
    "acos": 870,
}

# No arithmetic, but an element of theirs has to be looked for: additions in that time.
SEARCHES: Mapping[str, float] = {"concatenate": 18, "gather": 45, "pad": 18}
