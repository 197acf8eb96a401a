"""python -m tests.benchmarks.peers [--quick] [--only name…] [--write] [--cores n]: see the package."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import explorer as ex
from tests.benchmarks.peers import figures, machine, report
from tests.benchmarks.peers.driver import LIBRARIES, Plan, first_calls, measured, started
from tests.benchmarks.peers.figures import OURS, TUNED
from tests.benchmarks.peers.units import seconds
from tests.benchmarks.table import row

__all__ = ["claims", "main", "run"]

_QUICK = Plan(quick=True, sample=0.01, seconds=3.0, rounds=(7, 15), starts=1, first=("gelu-small",))


def run(plan: Plan, names: Sequence[str], libraries: Sequence[str] = LIBRARIES) -> dict[str, Any]:
    """Measure the workloads of these names, and first calls; the figures as they are kept.

    Args:
        plan: How much.
        names: Of workloads.
        libraries: Those to start; one that isn't installed is left out, and the figures say so.
    """
    cores = machine.cores()
    rows: list[dict[str, Any]] = []
    with started(libraries, cores) as (processes, skipped):
        versions = {"explorer": ex.__version__}
        variants: dict[str, list[str]] = {}
        for library, process in processes.items():
            versions |= process("versions")
            variants[library] = process("variants")
        for name in names:
            rows.append(figures.workload(measured(name, processes, plan)))
            _tell(rows[-1])
    # compiling for longer is what tuning is: its first call is no figure to compare
    plain = {library: [one for one in found if "tuned" not in one] for library, found in variants.items()}
    for name in plan.first:
        rows.append(figures.first_call(first_calls(name, plain, cores, plan)))
        _tell(rows[-1])
    if machine.compiler() is None:
        skipped["what torch.compile and mlx.compile fuse"] = "no C++ compiler was found, which both need on a CPU"
    told = {"machine": machine.described(), "versions": versions}
    return told | {"quick": plan.quick, "skipped": skipped, "workloads": rows}


def claims(found: Mapping[str, Any]) -> bool:
    """Print what must hold of gelu, at the unfavourable end of each interval; True if all does.

    Where a call costs more than its work, it is the tuned executable that is compared with the other compilers.
    """
    held = []
    for figure in found["workloads"]:
        if not figure["name"].startswith("gelu"):
            continue
        ours = TUNED if figure["name"] == "gelu-small" else OURS
        for one, other, limit in ((OURS, "jax", 1 / 3), (ours, "torch.compile", 1.0), (ours, "mlx.compile", 1.0)):
            told = figures.ratio(figure, one, other)
            if told is None:
                print(f"gelu {figure['size']}: no {one} and {other} to compare")
                continue
            held.append(row(f"gelu {figure['size']}: {one} / {other} {told[0]:.3f}, at most", told[2], limit, "×"))
    return bool(held) and all(held)


def _tell(figure: Mapping[str, Any]) -> None:
    print(f"\n{figure['title']}, {figure['size']}")
    for variant, one in figure["seconds"].items():
        low, high = one["interval"]
        print(f"  {variant:<15}{seconds(one['median']):>10}   {seconds(low)} … {seconds(high)}", flush=True)
    for variant, why in figure["failed"].items():
        print(f"  {variant:<15} failed: {why}", flush=True)


def main(arguments: Sequence[str] | None = None) -> bool:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer rounds; writes nothing by itself")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these workloads alone; writes nothing")
    parser.add_argument("--write", action="store_true", help="write docs/peers.json and docs/peers.md all the same")
    parser.add_argument("--cores", type=int, help="how many cores to use, of those there are; all by default")
    asked = parser.parse_args(arguments)
    if asked.cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: asked.cores])
    plan = _QUICK if asked.quick else Plan()
    names = asked.only or list(plan.workloads)
    unknown = [name for name in names if name not in plan.workloads]
    if unknown:
        parser.error(f"there is no {unknown[0]}; there are {', '.join(plan.workloads)}")
    found = run(plan, names)
    if asked.write or not (asked.quick or asked.only):
        report.keep(found)
    print()
    return claims(found)


if __name__ == "__main__":
    sys.exit(not main())
