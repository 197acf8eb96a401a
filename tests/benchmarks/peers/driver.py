"""The libraries' processes, and turns: each round runs every variant once, so what slows the machine slows all."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

from tests.benchmarks.peers.workloads import QUICK, WORKLOADS, Workload

__all__ = ["LIBRARIES", "Measured", "Plan", "Process", "first_calls", "measured", "started"]

LIBRARIES = ("jax", "jax_tuned", "torch", "mlx")
_ROOT = Path(__file__).parents[3]
_PAUSE = 0.005  # seconds between two processes: OpenMP's threads still spin a moment after their last call


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Args:
        quick: Smaller inputs.
        sample: Seconds that one sample of a fast variant takes: as many calls as fit.
        seconds: Of all samples of one workload, after which the least of rounds must do.
        rounds: The least and the most.
        starts: Fresh processes for each first call.
        first: Workloads whose first call is measured.
    """

    quick: bool = False
    sample: float = 0.02
    seconds: float = 15.0
    rounds: tuple[int, int] = (7, 61)
    starts: int = 3
    first: Sequence[str] = ("gelu-small", "mlp")

    @property
    def workloads(self) -> Mapping[str, Workload]:
        return QUICK if self.quick else WORKLOADS


@dataclass
class Measured:
    """One workload: each variant's samples in seconds, in the order of the rounds, and which couldn't be measured."""

    workload: Workload
    samples: dict[str, list[float]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


class Process:
    """A library's worker, which answers one request after the other."""

    def __init__(self, library: str, cores: int, temporary: str) -> None:
        self.library = library
        threads = {f"{name}_NUM_THREADS": str(cores) for name in ("OMP", "OPENBLAS", "MKL", "VECLIB")}
        # compiled code is kept in files by torch and mlx; a first call is one without them
        own = {"TMPDIR": temporary, "TORCHINDUCTOR_CACHE_DIR": temporary, "JAX_PLATFORMS": "cpu"}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.peers.worker", library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=_ROOT,
            env={**os.environ, **threads, **own},
        )

    def __call__(self, method: str, *arguments: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps([method, *arguments]) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline()
        if not answer:
            raise ChildProcessError(
                f"the process of {self.library} ended ({self.process.wait()}) at {method} {arguments}"
            )
        return json.loads(answer)

    def close(self) -> None:
        self.process.communicate()  # closes its input, at which it ends, and waits


@contextmanager
def started(libraries: Sequence[str], cores: int) -> Iterator[tuple[dict[str, Process], dict[str, str]]]:
    """A process for each library that is installed here, and why there is none for the others."""
    with ExitStack() as stack:
        found: dict[str, Process] = {}
        missing: dict[str, str] = {}
        for library in libraries:
            process = Process(library, cores, stack.enter_context(TemporaryDirectory()))
            stack.callback(process.close)
            try:
                process("versions")
                found[library] = process
            except ChildProcessError:
                missing[library] = f"{library} can't be imported in this environment"
        yield found, missing


def measured(name: str, processes: Mapping[str, Process], plan: Plan) -> Measured:
    """One workload by all libraries, in turns."""
    found = Measured(plan.workloads[name])
    where: dict[str, Process] = {}
    for process in processes.values():
        for variant, told in process("prepare", name, plan.quick).items():
            if "failed" in told:
                found.failed[variant] = told["failed"]
                continue
            where[variant], found.samples[variant], found.errors[variant] = process, [], told["error"]
            found.calls[variant] = max(1, round(plan.sample / told["call"]))
    variants = list(where)
    start = perf_counter()
    for turn in range(plan.rounds[1]):
        if turn >= plan.rounds[0] and perf_counter() - start > plan.seconds:
            break
        first = turn % len(variants)  # each round begins elsewhere, and every other runs backwards
        order = variants[first:] + variants[:first]
        for variant in order if turn % 2 else reversed(order):
            sleep(_PAUSE)
            found.samples[variant].append(where[variant]("time", variant, found.calls[variant]))
    for process in processes.values():
        process("release")
    return found


def first_calls(name: str, libraries: Mapping[str, Sequence[str]], cores: int, plan: Plan) -> Measured:
    """Each variant's first call, each time in a fresh process with nothing kept from an earlier one.

    Args:
        name: Of the workload.
        libraries: The variants of each.
        cores: That they may use.
        plan: How often.
    """
    found = Measured(plan.workloads[name])
    for _ in range(plan.starts):
        for library, variants in libraries.items():
            for variant in variants:
                with TemporaryDirectory() as temporary:
                    process = Process(library, cores, temporary)
                    try:
                        seconds = process("first", variant, name, plan.quick)
                        found.samples.setdefault(variant, []).append(seconds)
                    except ChildProcessError:
                        found.failed[variant] = "its first call failed"
                    finally:
                        process.close()
    return found
