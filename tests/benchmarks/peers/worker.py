"""One library in a process of its own, told over pipes what to run: one JSON line in, one out.

Each has its own pool of threads, which would disturb the others'; so they are apart, and run in turns.
"""

import json
import os
import sys
from collections.abc import Callable
from gc import collect
from importlib import import_module
from time import perf_counter
from typing import Any

from tests.benchmarks.peers.workloads import QUICK, WORKLOADS, Arrays, Workload, error

__all__ = ["Worker", "main"]

_SETTLED = 0.3  # seconds of calls, or so many calls, after which caches and memory are as they stay
_CALLS = 10


class Worker:
    """Runs a library's variants of one workload after the other.

    Args:
        library: `jax`, `torch` or `mlx`.
    """

    def __init__(self, library: str) -> None:
        self.library = import_module(f"tests.benchmarks.peers.in_{library}")
        self.calls: dict[str, Callable[[], Any]] = {}

    def prepare(self, name: str, quick: bool) -> dict[str, Any]:
        """Make all variants of a workload ready, and check each result.

        Returns:
            For each variant `{"error": …, "call": seconds of one call once settled}`, or `{"failed": why}`.
        """
        self.release()
        workload = (QUICK if quick else WORKLOADS)[name]
        if workload.function not in self.library.FUNCTIONS and workload.steps == 1:
            return {}
        inputs = workload.inputs()
        expected = workload.reference(inputs)
        return {variant: self._prepared(variant, workload, inputs, expected) for variant in self.library.VARIANTS}

    def _prepared(self, variant: str, workload: Workload, inputs: Arrays, expected: Arrays) -> dict[str, Any]:
        try:
            call = self.library.ready(variant, workload, inputs)
            result = None
            for _ in range(workload.steps):
                result = call()
            off = error(self.library.values(result), expected)
        except Exception as failure:  # a variant that doesn't work here is named in the table, the others are measured
            return {"failed": f"{type(failure).__name__}: {str(failure).partition(chr(10))[0]}"}
        if off > workload.tolerance:
            return {
                "failed": f"its result is off by {off:.1e} of the largest value; {workload.tolerance:.0e} is allowed"
            }
        self.calls[variant] = call
        return {"error": off, "call": _settled(call)}

    def time(self, variant: str, calls: int) -> float:
        """Seconds of one call, as the mean of so many."""
        call = self.calls[variant]
        start = perf_counter()
        for _ in range(calls):
            call()
        return (perf_counter() - start) / calls

    def first(self, variant: str, name: str, quick: bool) -> float:
        """Seconds from the function as it is to its first result: what wraps, traces, compiles and runs."""
        workload = (QUICK if quick else WORKLOADS)[name]
        call = self.library.ready(variant, workload, workload.inputs())
        start = perf_counter()
        call()
        return perf_counter() - start

    def release(self) -> None:
        """Let go of the last workload's arrays and of what was compiled for it."""
        self.calls.clear()
        collect()
        self.library.forget()

    def variants(self) -> list[str]:
        return list(self.library.VARIANTS)

    def versions(self) -> dict[str, str]:
        return self.library.versions()


def _settled(call: Callable[[], Any]) -> float:
    """Call until it is as it stays; the seconds of the quickest of the last calls."""
    spent: list[float] = []
    while not spent or (sum(spent) < _SETTLED and len(spent) < 1000):
        start = perf_counter()
        call()
        spent.append(perf_counter() - start)
    return min(spent[-_CALLS:])


def main(library: str) -> None:
    """Answer requests `[method, arguments…]` until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library or a compiler prints is no answer
    worker = Worker(library)
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        print(json.dumps(getattr(worker, method)(*arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
