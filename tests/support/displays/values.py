"""Results that no file format keeps, or that no run gives twice: made by hand, with a case of each kind in them."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate
from math import nan
from pathlib import Path
from typing import Any

import explorer as ex
from explorer.model.results.hot_paths import (
    LoggedCompile,
    Operation,
    OperationTimeline,
    RepeatedSequence,
    ThreadOperations,
)
from explorer.model.results.statistics import Axis

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


# As libtpu writes it.
_FULL = "Ran out of memory in memory space hbm. Used 18.63G of 15.75G hbm."


def _calls(ways: list[tuple[int, Any, float]], first: int = 1) -> ex.types.CallTimes:
    """So many calls of each way, around so many seconds each: no two take the same."""
    every = [(way, seconds * (1 + (i * 7 % 11) / 40)) for count, way, seconds in ways for i in range(count)]
    starts = [round(start, 6) for start in accumulate((seconds * 1.1 for _, seconds in every), initial=0.0)][:-1]
    numbers = range(first, first + len(every))
    return ex.types.CallTimes(tuple(numbers), tuple(starts), tuple(s for _, s in every), tuple(way for way, _ in every))


def _hot_rows() -> tuple[ex.types.HotRow, ...]:
    step = ex.types.HotRow(
        "train_step", "train.py", 12, "compiled", eager_calls=13, compiled_calls=61, eager_seconds=0.0131,
        compiled_seconds=0.0016, eager_samples=7, compiled_samples=9, basis="both ways", compile_seconds=0.4,
        variants=2, holds=(ex.types.HeldValue("loss", "global"), ex.types.HeldValue("self.w", "attribute", True)),
        misses={"SCALE": 2, "rate": 1}, eager_interval=(0.0125, 0.0138), compiled_interval=(0.0014, 0.0019),
        times=_calls([(10, "eager", 0.013), (3, "both", 0.0146), (30, "compiled", 0.0016), (2, "missed", 0.014),
                      (29, "compiled", 0.0015)]),
    )  # fmt: skip
    late = _calls([(6, "eager", 2e-4), (3, "both", 3e-4), (40, "compiled", 1.2e-5)])
    ahead = replace(
        step, name="metrics", line=40, eager_seconds=2e-4, compiled_seconds=2.4e-4, is_background=False, signal="eval",
        basis="before", misses={}, holds=(), variants=1, eager_interval=(nan, nan), compiled_interval=(nan, nan),
        times=replace(late, numbers=(*late.numbers[:20], *(n + 1000 for n in late.numbers[20:]))),
    )  # fmt: skip
    log = ex.types.HotRow(
        "log", "train.py", 30, "eager", "`float(…)` reads a value", "train.py", 31, "leave it an array", eager_calls=40,
        eager_seconds=0.002, eager_samples=40, basis="returned",
        times=_calls([(40, "eager", 0.002)]),
    )  # fmt: skip
    states = [ex.types.HotRow(f"f_{state}", "lib/nets.py", 3, state, eager_calls=n, times=_calls([(n, "eager",
        0.1 * n)]))
              for n, state in enumerate(("counting", "compiling", "comparing"), 3)]  # fmt: skip
    inner = replace(log, name="inner", inside="train_step", reason="", cure="", state="counting")
    return step, ahead, log, *states, inner, ex.types.HotRow("helper", "train.py", 2)


def _hot_paths() -> ex.HotPaths:
    matmul = Operation(1, "matmul", "", ("f32[8,8]", "f32[8,8]"), ("f32[8,8]",))
    sines = Operation(2, "sin", "accuracy=None", ("f32[8,8]",), ("f32[8,8]",), True)
    repeat = RepeatedSequence("0" * 12, (matmul, sines), (((-1, 0),), ((0, 0),)), (1, 3, 5), "train.py", 40, 41)
    kinds = ("detected", "trigger", "compile", "compiled", "speedup", "miss", "eager", "restored")
    events = [ex.types.HotEvent(0.05 + 0.07 * i, "train_step", kind) for i, kind in enumerate(kinds)]
    return ex.HotPaths(
        _hot_rows(), (*events, ex.types.HotEvent(0.2, "metrics", "compile"), ex.types.HotEvent(0.31, "metrics",
            "compiled")),
        dropped=3, seconds=4.6, threshold=7, labels={"train.py": "cell [3]"}, notes=("another thread called `log`",),
        proposed=(ex.types.ProposedFunction("update_x", "train.py", 40, 41,
            "def update_x(x):\n    return sin(x @ x)", 4),),
        left=(ex.types.LeftStatement("train.py", 43, "`step` is another number at each turn", "keep it in an array"),),
        operations=8, repeats=(repeat,), environment={"jax": "0.10.2", "device": "cpu"},
    )  # fmt: skip


def _padded() -> ex.types.DynamicReport:
    large = ex.types.DynamicBinary({"b": 64, "s": 64}, True, "padded, the largest sizes", False, 0.4, WHEN, 3, 8192.0)
    own = replace(large, sizes={"b": 5, "s": 7}, reason="its own", is_padded=False, calls=None, seconds=1.25)
    sizes = [
        ex.types.PaddedSizes({"b": b, "s": s}, {"b": 16 if b <= 16 else 64, "s": 64}, n, (0.001 * n, 0.003, 0.002),
            True,
                       4 * b * s, 4 * 64 * 64, 25.0 * b * s, 25.0 * 64 * 64 * (1 + (b > 16)))
        for n, (b, s) in enumerate([(8, 48), (16, 64), (17, 33), (63, 64), (64, 64)], 1)
    ]  # fmt: skip
    return ex.types.DynamicReport(
        "f", {"b": (1, 8, 64), "s": (1, 32, 64)}, "pad", "padded", "all are proven", rules={"add": 2, "dot_general": 5},
        masks=3, buckets={"b": (16, 64), "s": (64,)},
        binaries=(large, replace(large, sizes={"b": 16, "s": 64}, calls=1), own),
        waiting=({"b": 2, "s": 2},), sizes=tuple(sizes),
    )  # fmt: skip


def _refused() -> ex.types.DynamicReport:
    svd = ex.types.PaddingRefusal(
        "f32[b] = svd f32[b,b]", "svd", "/x/m.py", 12, "`svd` has no rule", "solve outside", "m.py", "y = svd(x)"
    )
    fft = ex.types.PaddingRefusal("c64[b] = fft c64[b]", "fft", "", 0, "`fft` has no rule")
    return ex.types.DynamicReport("g", {"b": (1, 8, 64)}, "auto", "specialised", "it can't be padded", (svd, svd, fft))


def _timeline() -> OperationTimeline:
    main = ThreadOperations("MainThread", (30, 10, 0, 4, 700), (0, 5, 60, 0, 1))
    other = ThreadOperations("loader", (0, 0, 12, 11, 0), (0, 0, 0, 0, 0))
    compiles = (LoggedCompile("step", 0.5, 0.71, True), LoggedCompile("_mean", 0.9, 0.93, False))
    counts = {("add", False): 412, ("step", True): 66, ("dot_general", False): 300} | {
        (f"op_{i}", False): 20 - i for i in range(14)
    }
    return OperationTimeline("a.log", 0.25, 2.25, (main, other), compiles, counts)


def _findings() -> ex.Findings:
    where = {"file": "train.py", "label": "cell [4]"}
    diff = "--- before\n+++ after\n@@ -1 +1 @@\n-    print(x)\n+    jax.debug.print('{}', x)\n"
    fix = ex.types.Fix("use jax.debug.print", "def f(x):\n    jax.debug.print('{}', x)\n", diff)
    rows = (
        ex.types.Finding("impure-print", "warning", "`print` ran once, while `f` was traced", line=3,
            evidence="printed `x`",
                   fix=fix, code="EX001", text="print(x, 'ü')", column=4, end_line=3, end_column=9, **where),
        ex.types.Finding("nan-gradient", "error", "the gradient of `sqrt` at 0 is `inf`", line=7, end_line=8,
            end_column=5,
                   evidence="x = 0.0", fix=ex.types.Fix("guard with `jnp.where`"), code="EX016", text="y = jnp.sqrt(x)",
                   documentation="https://docs.jax.dev/en/latest/faq.html", **where),
        ex.types.Finding("dead-code", "note", "nothing uses `z`", code="EX026"),
    )  # fmt: skip
    return ex.Findings(rows, "f", faults=("key-reuse: KeyError('a')",), rules=("impure-print", "nan-gradient"))


def _session() -> ex.types.SessionReport:
    items = (
        ex.types.SessionItem("capture", "c1", "capture (x: f32[8])"),
        ex.types.SessionItem("findings", "f1", "2 findings"),
    )
    step = ex.types.SessionRow(
        "step", "train.py", 12, "cell [4], line 3", compiles=3, recompiles=2, trace=0.1, lower=0.05, compile=1.25,
        leaf="x.shape[0]", why="`x.shape[0]` was 8, then 9", cure="pad it", run=0.0021, memory=3.2e6, errors=1,
        warnings=2, notes=1, hot="compiled", items=items,
    )  # fmt: skip
    rows = (step, ex.types.SessionRow("eval", basis="explored", compiles=1, compile=0.3, trace=0.0, lower=0.0),
            ex.types.SessionRow("old", basis="before", compiles=2))  # fmt: skip
    return ex.types.SessionReport(rows, 7, 0.25, "now", ("nobody watched before cell [2]",))


def _targets() -> ex.types.TargetComparison:
    text = "HloModule m\n\nENTRY %e (x: f32[8]) -> f32[8] {\n  ROOT %x = f32[8] parameter(0)\n}"
    capture = ex.open_hlo(text)
    node = capture.hlo.graph["x"]
    kernels = ex.types.Estimate(node, 5.2e-5, "XLA's cost model"), ex.types.Estimate(node, 4e-6, "published peaks")
    vars(capture)["estimates"] = ex.types.Estimates(kernels, 1)  # of hardware whose compiler isn't everywhere
    h100 = ex.types.TargetResult(
        "h100", "NVIDIA H100 SXM", capture, "", 3_200_000, 80_000_000_000, 12, 4.5e9, 1.2e8, 0.0, 3e-5
    )
    return ex.types.TargetComparison("step", (
        h100,
        ex.types.TargetResult("8xh100", "NVIDIA H100 SXM", None, "", 600_000, 80_000_000_000, 19, 6e8, 2e7, 3e6,
            9e-5, False),
        ex.types.TargetResult("v5e", "TPU v5e", None, _FULL, capacity=16_000_000_000),
        ex.types.TargetResult("v4", "TPU v4", None, "no compiler is installed"),
    ))  # fmt: skip


def _load(kind: Any, name: str) -> Any:
    return kind.load(Path(__file__).parent / f"{name}.json")


def _sweep() -> ex.Sweep:
    """One row failed, one is far slower than the others, no measurement agrees with its neighbour."""
    sweep = _load(ex.Sweep, "Sweep")
    first, *others, last = sweep.rows
    slow = replace(last, steady=replace(last.steady, samples=tuple(40 * s for s in last.steady.samples)))
    failed = replace(first, steady=None, error="ValueError: the size is too small")
    return replace(sweep, rows=(failed, *others, slow), notes=("a note",))


def _kinds() -> ex.Sweep:
    """No number is swept, and one axis has one value."""
    sweep = _load(ex.Sweep, "Sweep")
    rows = [replace(row, at=(at, 0), values={"dtype": at, "n": 64}) for at, row in enumerate(sweep.rows[:3])]
    return replace(sweep, axes=(Axis("dtype", ("f16", "f32", "f64")), Axis("n", ("64",), (64.0,))), rows=tuple(rows))


def _memory() -> ex.types.MemoryUse:
    """Sizes that fit, two that were measured, a lower bound, one that doesn't fit, one that failed."""
    use = _load(ex.types.MemoryUse, "MemoryUse")
    sizes = (1, 2, 4, 8, 16, 32)
    rows = [
        replace(use.rows[0], at=(at,), values={"batch": size}, is_least=size == 4, live=nan,
                uses={kind: bytes * size for kind, bytes in use.rows[0].uses.items()},
                measured=2.4e5 * size if size in (2, 8) else nan)
        for at, size in enumerate(sizes)
    ]  # fmt: skip
    rows[-1] = replace(rows[-1], uses={}, error="XlaRuntimeError: out of memory")
    axis = Axis("batch", tuple(map(str, sizes)), tuple(map(float, sizes)))
    return replace(use, axes=(axis,), rows=tuple(rows), limit=2_000_000, notes=("a note",))


def _what_if() -> ex.types.WhatIf:
    """Variants that are faster, slower, wrong in their results, and one that failed."""
    what_if = _load(ex.types.WhatIf, "WhatIf")
    plain, failed, row = what_if.rows
    wrong = replace(row.difference, absolute=0.5, relative=0.25)
    quick = replace(
        row, name="remat", kind="remat", kernels=3, notes=(), ratio=replace(row.ratio, ratio=0.5, low=0.45, high=0.56),
        memory={**row.memory, "temp": 1024},
    )  # fmt: skip
    slow = replace(
        row, name="no fusion", ratio=replace(row.ratio, ratio=3.0, low=2.5, high=3.3), difference=wrong, notes=()
    )
    return replace(what_if, rows=(plain, quick, slow, failed), notes=())


def _comparison() -> ex.types.Comparison:
    comparison = _load(ex.types.Comparison, "Comparison")
    return replace(comparison, baseline=list(comparison.samples)[-1], notes=())


def _roofline() -> ex.types.Roofline:
    roofline = _load(ex.types.Roofline, "Roofline")
    points = [replace(point, flops=nan if n == 1 else point.flops) for n, point in enumerate(roofline.points)]
    return replace(roofline, points=tuple(points), notes=())


def _profile() -> ex.Profile:
    """Without captures: nobody knows of a kernel what it computes."""
    profile = _load(ex.Profile, "Profile")
    return replace(profile, lines=(), captures={}, unattributed=profile.device_seconds, notes=("a note",))


VALUES = {
    "Sweep_failed": _sweep,
    "Sweep_kinds": _kinds,
    "MemoryUse_sizes": _memory,
    "WhatIf_varied": _what_if,
    "Comparison_other": _comparison,
    "Roofline_unknown": _roofline,
    "Profile_alone": _profile,
    "HotPaths": _hot_paths,
    "HotPaths_none": ex.HotPaths,
    "DynamicReport": _padded,
    "DynamicReport_refused": _refused,
    "OperationTimeline": _timeline,
    "Findings": _findings,
    "SessionReport": _session,
    "TargetComparison": _targets,
    "Ledger_none": lambda: ex.Ledger([]),
}
