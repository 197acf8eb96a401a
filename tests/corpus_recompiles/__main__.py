"""The table: each cause, the truth, what this library names and what JAX does."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from tempfile import TemporaryDirectory

_FLAG = "--xla_force_host_platform_device_count=4"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_FLAG}".strip()

import jax  # noqa: E402

from tests.corpus_recompiles import (  # noqa: E402, F401  # noqa: E402, F401, I001
    fresh_calls,
    fresh_states,
    functions,
    libraries,
    mixed,
    places,
    public_equinox,
    public_flax,
    public_held_out,
    public_jax,
    public_orbax,
    public_sharding,
    settings,
    sizes,
    statics,
    structures,
    threads_functions,
    threads_states,
    types,
)
from tests.corpus_recompiles.causes import CAUSES  # noqa: E402

with suppress(ImportError):  # NumPyro and Diffrax are not installed everywhere
    from tests.corpus_recompiles import public_numpyro  # noqa: F401
from tests.corpus_recompiles.run import Outcome, run  # noqa: E402


def main(asked: list[str]) -> None:
    names = [name for name in asked if not name.startswith("-")]
    with _compiling_once():
        outcomes = [run(cause) for cause in CAUSES if not names or cause.name in names]
    if "--json" in asked:
        print(json.dumps([asdict(outcome) for outcome in outcomes]))
    else:
        print(table(outcomes))
        for outcome in outcomes:
            if names or "-v" in asked:
                print(f"\n{outcome.name}\n  {outcome.ours_text}\n  fix: {outcome.ours_fix}\n  JAX: {outcome.jaxs}")


@contextmanager
def _compiling_once() -> Iterator[None]:
    """A scenario runs up to five times from empty caches; XLA needs each of its programs only once.

    JAX traces, lowers and counts compiles as it does without: half of the processor's time was XLA's.
    """
    with TemporaryDirectory() as directory:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        jax.config.update("jax_compilation_cache_dir", directory)
        try:
            yield
        finally:
            jax.config.update("jax_compilation_cache_dir", None)


def table(outcomes: list[Outcome]) -> str:
    """One row for each cause, and the scores below."""
    lines = [f"{'cause':<52} {'truth':<44} {'explorer':<44} ✓ {'JAX'}"]
    for outcome in outcomes:
        ours = _format_cause(outcome.ours, outcome.ours_leaf)
        proven = (
            "" if outcome.recompiles and not outcome.cured else f"  not proven: {outcome.recompiles}, {outcome.cured}"
        )
        lines.append(
            f"{outcome.name:<52} {_format_cause(outcome.kind, (outcome.leaves or ('',))[0]):<44} {ours:<44} "
            f"{_mark(outcome.ours_true)} {_mark(outcome.jaxs_true)}{proven}"
        )
    count = len(outcomes)
    ours, jaxs = sum(o.ours_true for o in outcomes), sum(o.jaxs_true for o in outcomes)
    lines.append(
        f"jax {jax.__version__}: of {count} causes explorer names {ours} ({ours / count:.1%}), "
        f"JAX {jaxs} ({jaxs / count:.1%})"
    )
    return "\n".join(lines)


def _format_cause(kind: str, leaf: str) -> str:
    return f"{kind} {leaf}".strip()


def _mark(true: bool) -> str:
    return "✓" if true else "✗"


if __name__ == "__main__":
    main(sys.argv[1:])
