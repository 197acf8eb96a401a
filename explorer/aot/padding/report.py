"""What an executable's padding has come to, as a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from explorer.aot.binaries import Binary
from explorer.aot.exported import ExportedProgram
from explorer.aot.padding.buckets import Sizes
from explorer.aot.padding.padded_calls import IN_BACKGROUND, PaddedCalls
from explorer.aot.padding.verdict import Dynamic
from explorer.aot.program import Program
from explorer.aot.symbols import Symbols
from explorer.model.results.dynamic_report import DynamicBinary, DynamicReport, DynamicVerdict, PaddedSizes
from explorer.padding.flops import count_flops


def dynamic_report(
    name: str,
    symbols: Symbols,
    dynamic: Dynamic,
    padded: PaddedCalls | None,
    exact: Sequence[tuple[Mapping[str, int], Binary]],
    program: Program | ExportedProgram,
) -> DynamicReport:
    """How an executable serves sizes that vary, by now.

    Args:
        name: Of the function.
        symbols: Of its inputs.
        dynamic: What was decided.
        padded: What serves calls that are padded; None where none is.
        exact: Binaries of one size each.
        program: Of the executable.
    """
    verdict: DynamicVerdict = "padded" if padded is not None else "specialised" if symbols.is_dynamic else "static"
    binaries = [_row(sizes, binary, IN_BACKGROUND in binary.specialization.reason) for sizes, binary in exact]
    if padded is not None:
        binaries = [
            *(
                _row(padded.buckets.named(each.bucket), each.binary, each.is_background, each.calls)
                for each in padded.ready
            ),
            *binaries,
        ]
    return DynamicReport(
        function=name,
        dimensions={symbol: (its.min, its.opt, its.max) for symbol, its in symbols.bounds.items()},
        choice=dynamic.choice,
        verdict=verdict,
        why=dynamic.why,
        refusals=dynamic.refusals,
        rules=dict(dynamic.proof.rules) if dynamic.proof is not None else {},
        masks=dynamic.proof.masks if dynamic.proof is not None else 0,
        buckets=dict(dynamic.buckets.ladder) if dynamic.buckets is not None else {},
        binaries=tuple(binaries),
        waiting=tuple(padded.waiting) if padded is not None else (),
        sizes=_usage(padded, program) if padded is not None else (),
        faults=tuple(padded.faults) if padded is not None else (),
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
    flops: dict[Sizes, float | None] = {}

    def counted(sizes: Sizes) -> float | None:
        if sizes not in flops:
            flops[sizes] = None
            if isinstance(program, Program) and program.symbolic is not None:
                with suppress(Exception):  # an equation that is unlike all that is known: then nobody knows
                    flops[sizes] = count_flops(program.symbolic.closed, padded.buckets.named(sizes))
        return flops[sizes]

    return tuple(
        PaddedSizes(
            sizes=padded.buckets.named(sizes),
            bucket=padded.buckets.named(usage.bucket),
            calls=usage.calls,
            seconds=tuple(usage.seconds),
            is_waited=usage.is_waited,
            bytes=padded.footprint.bytes(sizes),
            padded_bytes=padded.footprint.bytes(usage.bucket),
            flops=counted(sizes),
            padded_flops=counted(usage.bucket),
        )
        for sizes, usage in sorted(padded.usage.copy().items())
    )
