"""Functions that hypothesis composes of steps, each of which keeps an array of two symbolic axes or changes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from hypothesis import strategies as st
from jax import lax, nn

from tests.corpus_padding.cases import Case

# Each takes an array of any shape of two axes, and gives another of two.
STEPS: dict[str, Callable[[Any], Any]] = {
    "transpose": lambda x: x.T,
    "exp": lambda x: jnp.exp(-jnp.abs(x)),
    "shift": lambda x: x + 1.0,
    "reciprocal": lambda x: 1.0 / (1.5 + jnp.sin(x)),
    "softmax": nn.softmax,
    "softmax 0": lambda x: nn.softmax(x, 0),
    "layer norm": lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-3),
    "minus max": lambda x: x - x.max(0),
    "over size": lambda x: x / x.shape[0] + x.shape[1],
    "cumsum": lambda x: jnp.cumsum(x, 1),
    "cumsum reversed": lambda x: lax.cumsum(x, 0, reverse=True),
    "cummax": lambda x: lax.cummax(x, 1),
    "flip": lambda x: x[:, ::-1],
    "flip 0": lambda x: x[::-1],
    "sort": lambda x: jnp.sort(x, 1),
    "order": lambda x: jnp.take_along_axis(x, jnp.argsort(-x, 1), 1),
    "rows by best": lambda x: x[x.argmax(0) % x.shape[0]],
    "gram": lambda x: jnp.tanh(x @ x.T),
    "outer": lambda x: jnp.sin(x[:, 0])[:, None] * x.sum(0)[None],
    "merge and part": lambda x: x.reshape(-1)[::-1].reshape(x.shape),
    "merge and normalise": lambda x: nn.softmax(x.reshape(-1)).reshape(x.shape),
    "swap sizes": lambda x: x.reshape(x.shape[1], x.shape[0]),
    "pad": lambda x: jnp.pad(x, ((0, 1), (1, 0)), constant_values=0.5),
    "append": lambda x: jnp.concatenate([x, x[:1]], 0),
    "twice": lambda x: jnp.concatenate([x, -x], 1),
    "without last": lambda x: jnp.concatenate([x, x], 1)[:, :-1],
    "evens": lambda x: x[:, ::2],
    "differences": lambda x: jnp.concatenate([x, x], 0)[1:] - jnp.concatenate([x, x], 0)[:-1],
    "tile": lambda x: jnp.tile(x, (1, 2)),
    "repeat": lambda x: jnp.repeat(x, 2, 0),
    "causal": lambda x: jnp.where(jnp.arange(x.shape[0])[:, None] >= jnp.arange(x.shape[1])[None], x, -1e9),
    "positions": lambda x: x * jnp.arange(x.shape[1]),
    "scan": lambda x: lax.scan(lambda c, v: (0.5 * c + v, jnp.tanh(c)), x[0], x)[1],
    "scan reversed": lambda x: lax.scan(lambda c, v: (c + v.sum(), c * v), 0.0, x, reverse=True)[1],
    "halve while large": lambda x: lax.while_loop(lambda v: jnp.abs(v).max() > 1.0, lambda v: v / 2, x),
    "halve each": lambda x: jax.vmap(lambda v: lax.while_loop(lambda u: u @ u > 1.0, lambda u: u / 2, v))(x),
    "branch": lambda x: lax.cond(x.sum() > 0, jnp.cos, lambda v: v - v.mean(), x),
    "segments": lambda x: x + jax.ops.segment_sum(x, jnp.arange(x.shape[0]) // 2, 8)[0],
    "scatter": lambda x: x.at[x.argmax(0) % x.shape[0], jnp.arange(x.shape[1])].add(1.0),
    "convolve": lambda x: lax.conv_general_dilated(x[:, None], jnp.ones((1, 1, 3)) / 3, (1,), ((1, 1),))[:, 0],
    "windows": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 1), (1, 1), ((1, 0), (0, 0))),
    "nan where negative": lambda x: jnp.nan_to_num(jnp.where(x < 0, jnp.nan, x)),
    "mask": lambda x: jnp.where(x > x.mean(), x, 0.0),
    "top": lambda x: lax.top_k(x, 1)[0] + x,
    "broadcast": lambda x: x[:1] + x[:, :1],
    "norm of gradient": lambda x: jax.grad(lambda v: nn.logsumexp(v * v))(x),
    "checkpoint": lambda x: jax.checkpoint(lambda v: jnp.sin(v) * v.sum(0))(x),
}
ENDS: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: x,
    "sum": jnp.sum,
    "columns": lambda x: x.mean(0),
    "rows": lambda x: x.max(1),
    "argmax": lambda x: x.argmax(1),
    "norm": jnp.linalg.norm,
    "flat": lambda x: x.reshape(-1),
    "last": lambda x: x[-1],
    "gradient": lambda x: x,
}


def composed(names: Sequence[str], end: str) -> Case:
    """The steps one after another, of an array `f[b,s]`; of the end `gradient`, its derivative."""

    def function(x: Any) -> Any:
        for name in names:
            x = STEPS[name](x)
        return ENDS[end](x)

    case = Case(" → ".join([*names, end]), function, "f[b,s]", family="compositions")
    return case if end != "gradient" else case.gradient() or case


def compositions(longest: int = 4) -> st.SearchStrategy[Case]:
    steps = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=longest)
    return st.builds(composed, steps, st.sampled_from(sorted(ENDS)))
