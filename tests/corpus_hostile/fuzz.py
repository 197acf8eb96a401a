"""Mutated files of every format, without end: each refused with an error of Explorer's own, or opened and shown.

    python -m tests.corpus_hostile.fuzz SECONDS [FORMAT …]        what `make fuzz` does
    python -m tests.corpus_hostile.fuzz again FORMAT SEED         one file once more

A child opens the files of one format from a random seed on and notes the seed that it is at, so that a crash and a
hang outside of Python are known by it as well. The seeds and their faults are printed; if there are any, the exit
status is 1.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic, process_time, sleep
from typing import Any

from tests.corpus_hostile.formats import ONE
from tests.corpus_hostile.mutations import Case

FIRST = 1_000_000  # seeds below are the crafted ones
ROUND = 120.0  # seconds of one child, six of which it takes to start
STUCK = 10  # seconds of processors for one file, after which the system ends the child
LOST = 1200.0  # by the clock, for one file: a wait that doesn't end, however busy the machine is
STATE, MEMORY = "seed", "/dev/shm"  # which takes a file in a hundredth of the time


def one(name: str, seed: int) -> Case:
    """The mutated file of a seed; of one in four, bytes are others too, which no checksum fits then."""
    done, data = ONE[name](seed)
    chance = Random(-seed)
    if seed % 4 or not data:
        return done, data
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 20))):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    if chance.random() < 0.2:
        del changed[chance.randrange(len(changed)) :]
    return f"{done}; bytes", bytes(changed)


def child(name: str, first: int, seconds: float, folder: Path) -> None:
    """Open files for a while and print what came of them."""
    from tests.corpus_hostile.__main__ import Reader  # which imports JAX

    reader, end, seed = Reader(name, folder), monotonic() + seconds, first
    with (folder / STATE).open("wb", buffering=0) as state:
        while monotonic() < end:
            os.pwrite(state.fileno(), f"{seed:20}".encode(), 0)
            resource.setrlimit(resource.RLIMIT_CPU, (int(process_time()) + STUCK + 1, resource.RLIM_INFINITY))
            done, data = one(name, seed)
            reader.open(data, f"{seed} {done:.200}")
            seed += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    print(json.dumps({**reader.report(), "next": seed, "peak": peak}))


def run(name: str, first: int, seconds: float) -> dict[str, Any]:
    """A child's report; of one that crashed or is stuck, what it was at."""
    with TemporaryDirectory(dir=MEMORY if os.path.isdir(MEMORY) else None) as at:
        folder = Path(at)
        command = [sys.executable, "-m", "tests.corpus_hostile.fuzz", "child", name, str(first), str(seconds), at]
        with (folder / "output").open("wb") as output, (folder / "errors").open("wb") as errors:
            process = subprocess.Popen(command, stdout=output, stderr=errors)
        before, since = b"", monotonic()
        while process.poll() is None and monotonic() - since < LOST:
            state = (folder / STATE).read_bytes() if (folder / STATE).exists() else b""
            before, since = (state, monotonic()) if state != before else (before, since)
            sleep(0.2)
        if process.poll() is None:
            process.kill()
        if process.wait() == 0:
            return json.loads((folder / "output").read_text().splitlines()[-1])
        seed = int(before or first)
        fault = f"{seed}: its process ended with {process.returncode}: {(folder / 'errors').read_text()[-300:]}"
        return {"refused": 0, "opened": seed - first, "faults": [fault], "written": [], "next": seed + 1, "peak": 0}


def main(seconds: float, names: list[str], first: int) -> int:
    end, totals, faults = monotonic() + seconds, dict[str, dict[str, int]](), 0
    at = dict.fromkeys(names, first)
    while monotonic() < end:
        for name in names:
            if (left := end - monotonic()) <= 0:
                break
            report = run(name, at[name], min(ROUND, left, seconds / len(names)))
            at[name] = report["next"]
            total = totals.setdefault(name, {"refused": 0, "opened": 0, "faults": 0, "peak": 0})
            found = [*report["faults"], *(f"wrote {each}" for each in report["written"])]
            faults += len(found)
            total["refused"] += report["refused"]
            total["opened"] += report["opened"]
            total["faults"] += len(found)
            total["peak"] = max(total["peak"], report["peak"])
            print(*(f"{name} {fault}" for fault in found), sep="\n", end="\n" * bool(found), flush=True)
        count = sum(total["refused"] + total["opened"] for total in totals.values())
        print(f"{count:,} files, {faults} faults: {json.dumps(totals)}", flush=True)
    return int(faults > 0)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["child", name, first, seconds, folder]:
            child(name, int(first), float(seconds), Path(folder))
        case ["again", name, seed]:
            from tests.corpus_hostile.__main__ import Reader

            with TemporaryDirectory() as folder:
                reader = Reader(name, Path(folder))
                reader.open(one(name, int(seed))[1], seed)
                print(json.dumps(reader.report(), indent=1))
        case [seconds, *names]:
            start = int(os.environ.get("FUZZ_SEED") or Random().randrange(FIRST, 10**9))
            print(f"FUZZ_SEED={start}", flush=True)
            sys.exit(main(float(seconds), names or list(ONE), start))
        case _:
            sys.exit(__doc__)
