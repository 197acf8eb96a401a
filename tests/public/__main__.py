"""Measure Explorer on public programs, one process each, and print a table.

    python -m tests.public [NAMES…] [--out FOLDER] [--profile]

The libraries are in `requirements.txt`. `--out` keeps the figures of each program as NAME.json. `--profile` measures
each program above a limit once more, and keeps profiles of all its steps as NAME.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.public.programs import DEVICES, PROGRAMS

ROOT = Path(__file__).parents[2]
MAX_SECONDS = 2.0
MAX_RATIO = 1.0  # of a step's processor seconds to those of the plain trace, lower and compile
MIN_EXACT, MAX_UNKNOWN = 0.99, 0.03
TIMEOUT = 600
STEPS = ("display", "summary", "fates", "lines", "ask", "passes", "save")


def measured(kind: str, name: str, folder: Path, profile: str = "") -> dict[str, Any]:
    """Return the figures of one fresh process; `error` instead where it fails."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={DEVICES.get(name, 1)}"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, "PROFILE": profile}
    command = [sys.executable, "-W", "ignore", "-m", "tests.public.measure", kind, name, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"{kind}: no end within {TIMEOUT} s"}
    if done.returncode:
        return {"error": f"{kind}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"}
    return json.loads(done.stdout.strip().splitlines()[-1])


def figures_of(name: str) -> dict[str, Any]:
    """Return the figures of a program without and with Explorer."""
    folder = Path(mkdtemp(prefix="public-"))
    plain = measured("plain", name, folder)
    explored = plain if "error" in plain else measured("explored", name, folder)
    if "error" in explored:
        return explored
    for unit in ("cpu", "wall"):
        asked = [seconds for step, seconds in explored[unit].items() if step.startswith("ask ")]
        explored[unit] |= {"ask": sum(asked), "slowest ask": max(asked)}
    return {**explored, "folder": str(folder), "plain": plain}


def misses(figures: dict[str, Any]) -> list[str]:
    """Return the limits that a program misses, in words."""
    if "error" in figures:
        return [figures["error"]]
    cpu, plain = figures["cpu"], figures["plain"]["cpu"]
    slow = [
        f"{step} {cpu[step]:.2f} s, {cpu[step] / plain:.2f}× the compile"
        for step in STEPS
        if cpu[step] > min(MAX_SECONDS, MAX_RATIO * plain)
    ]
    wrong = {
        f"exact {figures['exact']:.1%}": figures["exact"] < MIN_EXACT,
        f"unknown {figures['unknown']:.1%}": figures["unknown"] > MAX_UNKNOWN,
        f"compiles {figures['compiles']}": figures["compiles"] != {"explore": figures["plain"]["compiles"]},
        "other results": not figures["equal"],
        "another program": not figures["same_program"],
        figures["note"]: bool(figures["note"]),
    }
    return slow + [text for text, is_missed in wrong.items() if is_missed]


def row(name: str, figures: dict[str, Any]) -> str:
    """Return one line of the table; seconds are of the processor."""
    if "error" in figures:
        return f"{name:24} {figures['error'][:120]}"
    cpu, plain = figures["cpu"], figures["plain"]
    worst = max(STEPS, key=cpu.__getitem__)
    seconds = " ".join(f"{cpu[step]:7.2f}" for step in ("explore", *STEPS))
    ratios = f"{cpu[worst] / plain['cpu']:6.2f} {cpu[worst] / plain['wall']:6.2f}"
    shares = f"{figures['exact']:7.1%} {figures['unknown']:7.1%} {sum(figures['compiles'].values()):4}"
    sizes = f"{figures['named']:6} {figures['equations']:6}"
    return f"{name:24} {sizes} {shares} {plain['cpu']:7.2f} {plain['wall']:7.2f} {seconds} {ratios} {worst}"


HEAD = (
    f"{'program':24} {'named':>6} {'equat.':>6} {'exact':>7} {'unknown':>7} {'comp':>4} {'compile':>7} {'clock':>7} "
    + " ".join(f"{step:>7}" for step in ("explore", *STEPS))
    + f" {'/cpu':>6} {'/clock':>6} slowest"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.public")
    parser.add_argument("names", nargs="*", default=[*PROGRAMS], help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--out", type=Path, help="folder for the figures, and for profiles")
    parser.add_argument("--profile", action="store_true", help="profile the programs above a limit")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(PROGRAMS)):
        parser.error(f"no program is named {', '.join(unknown)}; there are: {', '.join(PROGRAMS)}")
    out = options.out or Path(mkdtemp(prefix="public-"))
    out.mkdir(parents=True, exist_ok=True)
    print(HEAD, flush=True)
    missed: dict[str, list[str]] = {}
    for name in options.names:
        figures = figures_of(name)
        (out / f"{name}.json").write_text(json.dumps(figures, indent=1))
        print(row(name, figures), flush=True)
        if missing := misses(figures):
            missed[name] = missing
        if options.profile and "error" not in figures and any("compile" in text for text in missing):
            (out / f"{name}.txt").unlink(missing_ok=True)
            measured("explored", name, Path(figures["folder"]), str(out / f"{name}.txt"))
    print(f"\n{len(options.names) - len(missed)} of {len(options.names)} programs hold every limit; figures in {out}")
    for name, texts in missed.items():
        print(f"  {name}: {'; '.join(texts)}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
