"""Report of an executable's padding, and compiling ahead of calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, cast

from explorer.aot.binaries import Binaries, Binary
from explorer.aot.calls import Calls
from explorer.aot.exported import ExportedProgram
from explorer.aot.inputs import Bounds
from explorer.aot.padded_calls import IN_BACKGROUND, PaddedCalls
from explorer.aot.program import Program
from explorer.aot.symbols import Symbols, sizes_text
from explorer.aot.verdict import serves
from explorer.capture.sources import called_at
from explorer.errors import OptionError
from explorer.model.results.dynamic_report import DynamicBinary, DynamicReport, DynamicVerdict, PaddedSizes
from explorer.padding.program import count_flops
from explorer.padding.transfer import Key
from explorer.view.progress_bar import progress_bar


def dynamic_report(exe: Calls) -> DynamicReport:
    symbols, dynamic, padded = exe.plan.program.symbols, exe.plan.dynamic, exe.padded
    verdict: DynamicVerdict = "padded" if padded is not None else "specialised" if symbols.is_dynamic else "static"
    binaries = [_row(sizes, each, IN_BACKGROUND in each.specialization.reason) for sizes, each in exe.binaries]
    report = DynamicReport(
        function=exe.__name__,
        dimensions={symbol: (its.min, its.opt, its.max) for symbol, its in symbols.bounds.items()},
        choice=dynamic.choice,
        verdict=verdict,
        why=dynamic.why,
        refusals=dynamic.proof.refusals,
        rules=dict(dynamic.proof.rules),
        masks=dynamic.proof.masks,
        buckets=dict(dynamic.buckets.ladder) if dynamic.buckets is not None else {},
        binaries=tuple(binaries),
    )
    if padded is None:
        return report
    named = padded.buckets.named
    of_buckets = [_row(named(each.bucket), each.binary, each.is_background, each.calls) for each in padded.ready]
    return replace(
        report,
        binaries=(*of_buckets, *binaries),
        waiting=tuple(padded.waiting),
        sizes=_usage(padded, exe.plan.program),
        faults=tuple(padded.faults),
    )


def _row(sizes: Mapping[str, int], binary: Binary, is_background: bool, calls: int | None = None) -> DynamicBinary:
    its = binary.specialization
    return DynamicBinary(
        dict(sizes),
        calls is not None,
        its.reason,
        is_background,
        its.seconds,
        its.when,
        calls,
        binary.capture.cost.get("flops"),
    )


def _usage(padded: PaddedCalls, program: Program | ExportedProgram) -> tuple[PaddedSizes, ...]:
    flops: dict[Key, float | None] = {}

    def counted(sizes: Key) -> float | None:
        if sizes not in flops:
            flops[sizes] = None
            if isinstance(program, Program) and program.symbolic is not None:
                with suppress(Exception):  # an equation whose operations can't be counted
                    flops[sizes] = count_flops(program.symbolic.closed, padded.buckets.named(sizes))
        return flops[sizes]

    return tuple(
        PaddedSizes(
            sizes=padded.buckets.named(sizes),
            bucket=padded.buckets.named(usage.bucket),
            calls=usage.calls,
            seconds=tuple(usage.seconds),
            is_waited=usage.is_waited,
            bytes=padded.bytes(sizes),
            padded_bytes=padded.bytes(usage.bucket),
            flops=counted(sizes),
            padded_flops=counted(usage.bucket),
        )
        for sizes, usage in sorted(padded.usage.copy().items())
    )


# Buckets that are compiled ahead if the user named none. Over all sizes of 64 × 64, with work in proportion to
# elements, calls take 3.9 times as long as exact ones with one bucket, 2.2 with four and 1.8 with nine.
_AHEAD = 9
_REASON = "compiled ahead"
_MAX_SAMPLES = 512  # combinations of sizes by which buckets are chosen


def compile_ahead(
    exe: Calls, binaries: Binaries, sizes: Sequence[Mapping[str, int]] | None, progress: bool | None
) -> None:
    """Compile binaries for exact sizes, or if `sizes` is None the best buckets, with a progress bar."""
    __tracebackhide__ = True
    jobs: list[tuple[str, Callable[[], Any]]] = []
    for each in sizes or ():
        wanted = checked_sizes(exe.plan.program.symbols, each)
        jobs.append((sizes_text(wanted), partial(binaries.binary, wanted, _REASON)))
    if sizes is None and exe.padded is not None:
        for bucket in _chosen(exe.padded):
            jobs.append((sizes_text(exe.padded.buckets.named(bucket)), partial(exe.padded.ensure, bucket, _REASON)))
    with progress_bar("compile", progress) as notify:
        for i, (name, run) in enumerate(jobs):
            notify(i / len(jobs), name)
            run()


def _chosen(padded: PaddedCalls) -> list[Key]:
    """Return the buckets to compile ahead: the user's own, else the few that save most if all sizes are called equally
    often, largest first.
    """
    if padded.buckets.is_chosen:  # by the user
        return padded.candidates
    bounds = padded.buckets.bounds.values()
    count = sum(its.min < its.max for its in bounds)
    most = max(2, int(_MAX_SAMPLES ** (1 / max(1, count))))
    samples = list(product(*(_sampled(its, most) for its in bounds)))
    samples = samples[:: max(1, len(samples) // _MAX_SAMPLES)]  # many dimensions have more combinations
    best = {sizes: padded.footprint.elements(padded.buckets.largest) for sizes in samples}
    chosen: list[Key] = []
    left = padded.candidates
    while left and len(chosen) < _AHEAD - 1:
        gains = {bucket: _gain(padded, bucket, best) for bucket in left}
        bucket = max(left, key=lambda bucket: gains[bucket])
        if gains[bucket] <= 0:
            break
        chosen.append(bucket)
        left = [each for each in left if each != bucket]
        its = padded.footprint.elements(bucket)
        best = {sizes: min(now, its) if serves(bucket, sizes) else now for sizes, now in best.items()}
    return sorted(chosen, key=padded.footprint.elements, reverse=True)


def _gain(padded: PaddedCalls, bucket: Key, best: Mapping[Key, float]) -> float:
    its = padded.footprint.elements(bucket)
    return sum(max(0.0, now - its) for sizes, now in best.items() if serves(bucket, sizes))


def _sampled(bounds: Bounds, most: int) -> list[int]:
    smallest, count = max(1, bounds.min), bounds.max - max(1, bounds.min)
    return sorted({smallest + count * i // (most - 1) for i in range(most)})


def checked_sizes(symbols: Symbols, given: Any) -> dict[str, int]:
    """Return the size of every symbol, from a user's dict of the varying ones; raise OptionError if one is missing or
    out of bounds.
    """
    __tracebackhide__ = True
    varying = symbols.varying
    sizes: Mapping[Any, Any] = cast("Mapping[Any, Any]", given) if isinstance(given, Mapping) else {}
    is_right = set(sizes) == set(varying) and all(
        type(size) is int and varying[symbol].min <= size <= varying[symbol].max for symbol, size in sizes.items()
    )
    if not is_right:
        within = ", ".join(f"{its.min} ≤ {symbol} ≤ {its.max}" for symbol, its in varying.items())
        raise OptionError(
            f"sizes has {given!r}; allowed is a dict with {within or 'nothing'}.\n{called_at()}"
            f"  Hint: { ({symbol: its.opt for symbol, its in varying.items()})!r}."
        )
    return {**symbols.opt, **sizes}
