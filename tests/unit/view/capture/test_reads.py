"""Showing a capture reads what the compiler printed once, and showing it again reads nothing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import jax
import jax.numpy as jnp

import explorer as ex
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.jaxpr import read_jaxpr
from explorer.capture.readers.stablehlo import read_stablehlo

READERS = {reader.__code__: reader.__name__ for reader in (read_hlo, read_stablehlo, read_jaxpr)}


def loss(weights, x):
    return jnp.sum(jax.nn.softmax(jnp.tanh(x @ weights) @ weights.T))


def reads(action: Callable[[], object]) -> Counter[tuple[str, str]]:
    """What the readers were given, and how often; as the interpreter's own hook sees it."""
    given: Counter[tuple[str, str]] = Counter()

    def seen(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in READERS:
            first = next(iter(frame.f_locals.values()))
            given[READERS[frame.f_code], first if isinstance(first, str) else str(id(first))] += 1

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        action()
    finally:
        sys.setprofile(before)
    return given


def test_each_text_is_read_at_most_once_however_often_it_is_shown(tmp_path: Path):
    capture = ex.explore(jax.jit(jax.grad(loss)), jnp.ones((16, 16)), jnp.ones((8, 16)))

    def show() -> None:
        capture._repr_mimebundle_()
        capture.to_html(tmp_path / "page.html")
        capture.to_text()

    once = reads(show)
    assert {reader for reader, _ in once} == set(READERS.values())
    assert set(once.values()) == {1}
    assert not reads(show)
