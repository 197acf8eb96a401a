"""Measure one public program in this process, and print the figures as one line of JSON.

    python -m tests.public.measure plain NAME FOLDER       its compile, and its results, without Explorer
    python -m tests.public.measure explored NAME FOLDER    the same with Explorer; PROFILE names a file for profiles

Both are fresh processes, because JAX keeps traces and programs. The first writes the results that the second compares.
"""

from __future__ import annotations

import gc
import io
import json
import os
import pstats
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from cProfile import Profile
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tests.public.programs import PROGRAMS

COMPILES = "/jax/core/compile/backend_compile_duration"
# Questions that are answered by compiling a variant. They are the only ones that may compile.
COMPILING = ("remat",)
_INSTRUCTION = re.compile(r'^\s+(?:ROOT )?%?([\w.\-]+) = .*metadata=\{op_name="[^"]', re.MULTILINE)
_OPCODE = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = (?:\([^=]*\)|\S+) ([\w\-]+)\(", re.MULTILINE)


class Steps:
    """Seconds of the clock and of the processor, and backend compiles, of each named step.

    Args:
        profile: File that receives profiles of the steps; empty for none. They make the steps slower.
    """

    def __init__(self, profile: str = "") -> None:
        self.wall: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self.compiles: Counter[str] = Counter()
        self._profile = profile
        self._step = ""
        jax.monitoring.register_event_duration_secs_listener(self._count)

    def _count(self, event: str, _: float, **about: Any) -> None:
        if event == COMPILES:
            self.compiles[self._step] += 1

    def run(self, step: str, action: Callable[[], Any]) -> Any:
        """Return the result of an action; its work in other threads counts as processor time, not on the clock."""
        if step in ("explore", "display"):
            gc.collect()
        self._step = step
        profile = Profile(time.thread_time) if self._profile and step not in ("build", "call") else None
        cpu, wall = time.process_time(), time.perf_counter()
        result = profile.runcall(action) if profile is not None else action()
        self.wall[step] = time.perf_counter() - wall
        for thread in threading.enumerate():
            if thread.name.startswith("explorer-"):
                thread.join(60)
        self.cpu[step] = time.process_time() - cpu
        self._step = "after"
        if profile is not None:
            self._write(profile, step)
        return result

    def _write(self, profile: Profile, step: str) -> None:
        text = io.StringIO()
        for order in ("tottime", "cumtime"):
            pstats.Stats(profile, stream=text).sort_stats(order).print_stats(25)
        with Path(self._profile).open("a", encoding="utf-8") as file:
            file.write(f"======== {step}: {self.wall[step]:.2f} s, under the profiler\n{text.getvalue()}\n")


def arrays(tree: Any) -> list[np.ndarray]:
    """Return the arrays of a tree that were not donated, keys as their data."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array) and not leaf.is_deleted()]
    # Keys are stored as their data.
    keys = [jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves]
    return [np.asarray(jax.random.key_data(x) if is_key else x) for x, is_key in zip(leaves, keys, strict=True)]


def results(function: Callable[..., Any], args: tuple[Any, ...]) -> list[np.ndarray]:
    """Return the results of a call, and its arguments after it: some libraries update state in place."""
    return arrays((function(*args), args))


def plain(name: str, folder: Path) -> dict[str, Any]:
    """Return the figures of the program alone, and keep its results and opcodes in the folder."""
    steps = Steps()
    function, *args = steps.run("build", PROGRAMS[name])
    lowered = steps.run("trace and lower", lambda: function.lower(*args))
    compiled = steps.run("compile", lowered.compile)
    opcodes = Counter(_OPCODE.findall(text_of(compiled)))
    values = steps.run("call", lambda: results(compiled, tuple(args)))
    np.savez(folder / "plain.npz", *values)
    (folder / "plain.json").write_text(json.dumps(opcodes))
    names = ("trace and lower", "compile")
    return {
        "cpu": sum(map(steps.cpu.get, names)),
        "wall": sum(map(steps.wall.get, names)),
        "compiles": sum(map(steps.compiles.__getitem__, names)),  # more than one where tracing runs operations eagerly
    }


def text_of(compiled: Any) -> str:
    """Return the HLO text of a compiled program, inside a library's wrapper too."""
    return getattr(compiled, "compiled", compiled).as_text()


def explored(name: str, folder: Path, profile: str = "") -> dict[str, Any]:
    """Return the figures of Explorer on a program, directly after `explore`."""
    import explorer as ex
    from explorer.analysis.question_catalogue import QUESTIONS

    ex.explore(lambda x: x + 1, np.ones(3))._repr_mimebundle_()  # imports belong to no step
    steps = Steps(profile)
    function, *args = steps.run("build", PROGRAMS[name])
    cap = steps.run("explore", lambda: ex.explore(function, *args))
    steps.run("display", cap._repr_mimebundle_)
    links = link_figures(cap)
    steps.run("summary", lambda: cap.summary)
    counts = steps.run("fates", cap.fates)
    steps.run("lines", cap.lines)
    for question in (each for each in QUESTIONS if each.key not in COMPILING):
        steps.run(f"ask {question.key}", lambda title=question.title: cap.ask(title))
    if profile:
        return {}
    steps.run("passes", lambda: len(cap.passes))
    steps.run("save", lambda: cap.save(folder / "capture.explorer"))
    equations = [node for node in cap.jaxpr.graph.nodes if node.op not in ("parameter", "constant")]
    steps.run("fate", lambda: [cap.fate(node) for node in equations])
    values = steps.run("call", lambda: results(function, tuple(args)))
    kept = list(np.load(folder / "plain.npz").values())
    counted = {step: n for step, n in steps.compiles.items() if step != "build"}
    for question in (each for each in QUESTIONS if each.key in COMPILING):
        steps.run(f"compiling ask {question.key}", lambda title=question.title: cap.ask(title))
    return {
        **links,
        "equations": sum(counts.values()),
        "unknown": counts.get("unknown", 0) / max(1, sum(counts.values())),
        "compiles": counted,
        "same_program": Counter(_OPCODE.findall(cap.hlo.text)) == json.loads((folder / "plain.json").read_text()),
        "equal": len(kept) == len(values) and all(map(same_bits, kept, values)),
        "cpu": steps.cpu,
        "wall": steps.wall,
        "note": cap.failure or cap.recording_note,
    }


def link_figures(cap: Any) -> dict[str, Any]:
    """Return the number of instructions with an op_name, the share of exact ones, and the grades and opcodes of others.

    Parameters of reducers count too: JAX gives them an op_name without a scope.
    """
    from explorer.model.links import EXACT, GRADES

    graph, grades = cap.hlo.graph, cap.links.grades("hlo")
    named = [graph[name] for name in {*_INSTRUCTION.findall(cap.hlo.text)} if name in graph]
    others = Counter(f"{GRADES[grades[node.index]]} {node.op}" for node in named if grades[node.index] != EXACT)
    share = 1 - sum(others.values()) / max(1, len(named))
    return {"instructions": len(graph.names), "named": len(named), "exact": share, "not exact": others}


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    return (left.dtype, left.shape) == (right.dtype, right.shape) and left.tobytes() == right.tobytes()


if __name__ == "__main__":
    kind, name, folder = sys.argv[1:4]
    if kind == "plain":
        figures = plain(name, Path(folder))
    else:
        figures = explored(name, Path(folder), os.environ.get("PROFILE", ""))
    print(json.dumps(figures))
