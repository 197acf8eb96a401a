"""what_if(): a function compared with donated arguments, rematerialization, and compiler options."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

from explorer._jax.calls import suppress_recording
from explorer.capture.agreement import difference_of
from explorer.capture.backends import backend_of
from explorer.capture.call import Call, takes_call
from explorer.capture.origins import agree_on_time, origin_of
from explorer.capture.script import Prints, printed_once
from explorer.errors import ChangedFunctionError, NotCallableError, OptionError, WorkerError
from explorer.executors import Item, cache_in, distribution, program_folders
from explorer.hardware.names import parse_target
from explorer.measure.arguments import distinct_labels
from explorer.measure.calls import Calls, name_of
from explorer.measure.compare import compare
from explorer.measure.compiled_subject import CompiledSubject, error_line, flops_and_bytes, kernels_of
from explorer.measure.machine import environment_with_cores
from explorer.measure.steady import check_seconds, steady
from explorer.measure.targets import check_time, least_seconds, target_notes
from explorer.measure.variants import PLAIN, Change, Subject, changes_of, reusable, subject_of, together
from explorer.model.capture import Capture
from explorer.model.results.sweep import Variant, WhatIf
from explorer.model.target import Target
from explorer.view.progress_bar import ProgressCallback, progress_bar

_UNUSED = re.compile(r"donated buffers were not usable: (.*?)\.?\s*(?:\n|$)")


@takes_call
def what_if(
    function: Callable[..., Any] | Call,
    /,
    *args: Any,
    donate: Any = None,
    remat: Any = None,
    precision: Any = None,
    dtype: Any = None,
    options: Any = None,
    grad: bool = False,
    combine: bool = False,
    time: bool | None = None,
    seconds: float = 0.5,
    progress: bool | None = None,
    executor: Any = None,
    target: str | Target | None = None,
    **kwargs: Any,
) -> WhatIf:
    """Try changes that could make a function faster or smaller, one at a time, and report what each brings.

    Every variant is compiled and its results are compared with the plain ones. All are run alternately, so that a
    slow moment of the machine affects all. If a variant fails, only its row holds the error. The arguments
    survive, donated or not. Without requested changes, donation of what can be donated and bfloat16 are tried.

    Args:
        function: Any callable, or a `jax.jit` function.
        args, kwargs: Arguments of the call. For a keyword that is also an option here, see `explorer.Call`.
            Descriptions of arrays, such as `jax.ShapeDtypeStruct`, are filled with ones.
        donate: An argument to donate, by position or name; a tuple of some; or True for all that an output could
            reuse.
        remat: `jax.checkpoint` around the function: True, the name of a policy of `jax.checkpoint_policies`, or a
            callable policy. It has an effect where a derivative is taken: see `grad`.
        precision: Of matrix products, as for `jax.default_matmul_precision`: `"bfloat16"`, `"highest"`.
        dtype: Floating-point dtype to cast the arguments to.
        options: XLA's compiler options as a dict, or a dict of names to such dicts.
        grad: Measure `jax.value_and_grad(function)` instead, with `remat` inside of it.
        combine: Also try the first change of each kind, all together.
        time: Run the programs. False only compiles. None runs what is compiled for this machine.
        seconds: Time to spend on each variant.
        progress: Show a progress bar after one second; None shows it in interactive sessions.
        executor: Workers that compile the variants in parallel, as for `explorer.sweep`. One of them then runs all
            alternately while the others wait.
        target: Hardware to compile for, present or not, as for `explorer.explore`. Nothing is run then, and
            `row.least` is the least time by published figures.

    A list for one of the first five options is several variants.

    Returns:
        A row for each variant, `["donate x"]` by name. Its `.diff` compares its program with the plain one.

    Raises:
        NotCallableError: `function` can't be called.
        OptionError: A change is impossible, or `time=True` with a target.
        UnknownTargetError, MissingCompilerError: As for `explore`.
        ExploreError: The function itself can't be compiled.
        ArgumentsError: The function can't be sent to another process.
        WorkerError: No worker of `executor` can do it.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> tried = explorer.what_if(lambda x: x * 2, jnp.ones(1000), donate=0, seconds=0.01)
        >>> tried["donate x"].saved(tried.plain), tried["donate x"].diff.stages["hlo"].is_empty
        (4000, True)
    """
    __tracebackhide__ = True
    call = Call.of(function, args, kwargs)
    function, args, kwargs = call.function, call.args, call.kwargs
    check_seconds(seconds)
    if not callable(function):
        raise NotCallableError(
            f"what_if takes a function and its arguments; it got {type(function).__name__}. "
            "Hint: write what_if(f, x), not what_if(f(x))."
        )
    meant = None if target is None else parse_target(target)
    # With 0 seconds, variants are compiled and not run.
    seconds *= check_time("what_if", time, meant)
    # Raises if the target's compiler is missing, before anything is traced or sent to workers.
    backend_of(meant)
    subject = replace(subject_of(function, args, kwargs, grad), target=meant)
    wanted = {"donate": donate, "remat": remat, "precision": precision, "dtype": dtype, "options": options}
    changes = _changes(subject, wanted, combine)
    with progress_bar(f"trying {len(changes)} variants", progress) as notify, printed_once() as prints:
        if executor is not None:
            return _try_on(executor, _Variants(subject, changes, seconds), notify)
        tried = _Trial(subject, changes, seconds, notify).run()
    return _with_prints(tried, prints)


def what_if_of(
    capture: Capture,
    *,
    donate: Any = None,
    remat: Any = None,
    precision: Any = None,
    dtype: Any = None,
    options: Any = None,
    grad: bool = False,
    time: bool = True,
    seconds: float = 0.3,
    progress: ProgressCallback | None = None,
) -> WhatIf:
    """Compile the function of a capture once as it is and once with all changes together: see `Capture.what_if`."""
    __tracebackhide__ = True
    check_seconds(seconds)
    function, args, kwargs = origin_of(capture)
    there = capture.environment.get("target")
    target = None if there is None else parse_target(there)
    # Compiles of a trial aren't the user's.
    with suppress_recording(), printed_once() as prints:
        subject = replace(subject_of(function, args, kwargs, grad), target=target)
        wanted = {"donate": donate, "remat": remat, "precision": precision, "dtype": dtype, "options": options}
        changes = changes_of(subject, **wanted)
        if not changes:
            raise OptionError("no change is requested.\n  Hint: capture.what_if(donate=True).")
        name = " + ".join(change.name for change in changes)
        changes = [changes[0] if len(changes) == 1 else replace(together(changes), name=name, doing=name)]
        trial = _Trial(subject, changes, seconds * (time and target is None), progress or (lambda fraction, text: None))
        tried = trial.run(None if grad else capture)
    return _with_prints(tried, prints)


def _changes(subject: Subject, wanted: dict[str, Any], combine: bool) -> list[Change]:
    """Return the variants to try, with distinct names."""
    __tracebackhide__ = True
    if all(value is None for value in wanted.values()):
        wanted = {**wanted, "donate": True, "precision": "bfloat16"}
    changes = changes_of(subject, **wanted)
    if not changes:
        raise OptionError(
            f"what_if has nothing to try: no value is given for {', '.join(wanted)}.\n  Hint: what_if(f, x, donate=0)."
        )
    if combine and len({change.kind for change in changes}) > 1:
        changes.append(together(changes))
    names = distinct_labels(["plain", *(change.name for change in changes)])[1:]
    return [replace(change, name=name) for change, name in zip(changes, names, strict=True)]


@dataclass
class _Attempt:
    """A variant in progress; `built` is None if it can't be compiled."""

    row: Variant
    built: CompiledSubject | None = None


class _Trial:
    """Run of `what_if`: compiles the function and its variants, then times them alternately."""

    def __init__(
        self,
        subject: Subject,
        changes: Sequence[Change],
        seconds: float,
        notify: ProgressCallback,
        caches: Sequence[str] = (),
    ) -> None:
        self.subject, self.changes, self.seconds, self.notify = subject, changes, seconds, notify
        self.caches = dict(zip(["plain", *(change.name for change in changes)], caches, strict=False))
        self.result: Any = None

    def run(self, shown: Capture | None = None) -> WhatIf:
        """Try all changes and return the result; ChangedFunctionError if the plain program differs from `shown`."""
        __tracebackhide__ = True
        plain = self.compiled(PLAIN, None)
        if plain.built is None:
            raise OptionError(f"there is nothing to compare with: the function itself fails: {plain.row.error}")
        if shown is not None and plain.row.kernels != (kernels := kernels_of(shown)):
            raise ChangedFunctionError(
                f"{shown.function} compiles to {plain.row.kernels:,} kernels now, and the program that is shown has "
                f"{kernels:,}. Values that its Python reads, or a setting of JAX, have changed.\n"
                "  Hint: explore it again."
            )
        tried = [plain]
        for done, change in enumerate(self.changes):
            self.notify(done / len(self.changes) / 2, f"compiling {change.name}")
            tried.append(self.tried(change, plain))
        self.result = None  # freed before others are measured
        notes = self.timed(tried) if self.seconds else []
        capture = plain.built.capture
        rows = [attempt.row for attempt in tried]
        target = self.subject.target
        environment = environment_with_cores() if target is None else backend_of(target).environment()
        return WhatIf(
            name_of(self.subject.shown), capture.signature, rows, [*target_notes(target), *notes], environment
        )

    def tried(self, change: Change, plain: _Attempt) -> _Attempt:
        """Return a variant, compiled, and called once if times are measured; if that fails, its row holds the error."""
        row = Variant(change.name, change.kind, change.doing, plain=plain.row.capture)
        try:
            cache = self.caches.get(change.name, "")
            if change.donate is None and plain.built is not None:
                change = self.resolved(change, plain.built)
                row = replace(row, name=change.name, doing=change.doing)
            return self.compiled(change, plain.row, cache)
        except Exception as error:  # what fails for one may work for the next
            return _Attempt(replace(row, error=error_line(error)))

    def resolved(self, change: Change, built: CompiledSubject) -> Change:
        """Return a change that donates "all that can be reused" with those arguments named.

        Raises:
            OptionError: It only donates, and nothing can be reused.
        """
        places = reusable(self.subject, built)
        if not places and change.kind == "donate":
            raise OptionError("no output has the type of an argument that is not donated already")
        names = ", ".join(self.subject.name(place) for place in places)
        if change.kind != "donate" or any(other.name == f"donate {names}" for other in self.changes):
            return replace(change, donate=places)
        return replace(change, donate=places, name=f"donate {names}", doing=f"donating {names}")

    def _compared(
        self, row: Variant, change: Change, plain_memory: Mapping[str, int], plain: Capture, capture: Capture
    ) -> Variant:
        """Return the row with `is_same`: True if the variant compiled to the plain program.

        If the reason is known, the row has a note about it.
        """
        plain_lines, lines = ([line.without_names for line in shown.hlo.written_lines] for shown in (plain, capture))
        # Options may also change the machine code, which is not compared.
        is_same = plain_memory == row.memory and plain_lines == lines and not change.options
        notes = row.notes
        if is_same and change.kind == "remat" and not self.subject.is_derived:
            notes += (
                "the function computes no gradient, so jax.checkpoint has nothing to recompute. Hint: grad=True "
                "measures jax.value_and_grad of it; in a training step, put jax.checkpoint around the loss",
            )
        elif is_same and change.kind == "precision":
            notes += ("the compiler does the same here whatever the precision",)
        return replace(row, is_same=is_same, notes=notes)

    def compiled(self, change: Change, plain: Variant | None, cache: str = "") -> _Attempt:
        """Compile a variant, call it once if times are measured, and return it with its figures."""
        __tracebackhide__ = True
        cache = cache or self.caches.get(change.name, "")
        with warnings.catch_warnings(record=True) as caught, cache_in(cache, keeps_all=True):
            # By default Python shows a warning of one line once, so a later variant's would be missing.
            warnings.simplefilter("always")
            built = self.subject.built(change, "tried")
        capture = built.capture
        flops, moved = flops_and_bytes(capture)
        row = Variant(
            change.name,
            change.kind,
            change.doing,
            stages=dict(capture.durations.done if capture.durations.reused else capture.durations.seconds),
            memory=capture.memory,
            flops=flops,
            bytes=moved,
            kernels=kernels_of(capture),
            least=nan if self.subject.target is None else least_seconds(capture, self.subject.target)[0],
            capture=capture,
            plain=capture if plain is None else plain.capture,
            notes=_notes(caught),
        )
        if plain is not None and plain.capture is not None:
            row = self._compared(row, change, plain.memory, plain.capture, capture)
        if self.seconds:
            calls = Calls(built.call, built.args, built.kwargs)
            result = calls.first()
            row = replace(row, stages={**row.stages, "run": calls.first_seconds})
            if plain is None:
                self.result = result
            else:
                row = replace(row, difference=difference_of(result, self.result))
        return _Attempt(row, built)

    def timed(self, tried: Sequence[_Attempt]) -> list[str]:
        """Run all compiled variants alternately, put their samples into their rows, and return notes."""
        calls = {
            attempt.row.name: Call(attempt.built.call, *attempt.built.args, **attempt.built.kwargs)
            for attempt in tried
            if attempt.built is not None
        }
        self.notify(0.5, "running in turns")
        plain = tried[0]
        if len(calls) == 1:
            call = calls[plain.row.name]
            made = Calls(call.function, call.args, call.kwargs)
            made.first()  # notes which arguments a call deletes: `prepare` makes them again
            samples = steady(made.call, prepare=made.prepare, seconds=self.seconds)
            plain.row = replace(plain.row, steady=samples)
            return self.known_time(plain)
        compared = compare(calls, baseline="plain", seconds=self.seconds * len(calls), check=False, progress=False)
        for attempt in tried:
            if attempt.built is not None:
                name = attempt.row.name
                ratio = None if attempt is plain else compared[name]
                attempt.row = replace(attempt.row, steady=compared.samples[name], ratio=ratio)
        return [*compared.notes, *self.known_time(plain)]

    def known_time(self, plain: _Attempt) -> list[str]:
        """Replace the plain row's samples by those known of the function's program; return a note if they disagree."""
        if plain.row.steady is None or self.subject.is_derived:
            return []
        steady, note = agree_on_time(self.subject.shown, *self.subject.given, plain.row.steady)
        plain.row = replace(plain.row, steady=steady)
        return [note] if note else []


@dataclass(frozen=True)
class _Variants:
    """Shared input of the workers.

    Args:
        subject, changes: The function, and the changes to try.
        seconds: Time to spend on each variant.
        folder: Parent of a folder per variant's program; the plain one's is `0`.
    """

    subject: Subject
    changes: Sequence[Change]
    seconds: float
    folder: str = ""

    def trial(self, seconds: float) -> _Trial:
        caches = [str(Path(self.folder, str(at))) for at in range(len(self.changes) + 1)]
        return _Trial(self.subject, self.changes, seconds, lambda fraction, text: None, caches)


def _try_on(executor: Any, variants: _Variants, notify: ProgressCallback) -> WhatIf:
    """Compile the variants on parallel workers, let one worker run all alternately, and return the result."""
    __tracebackhide__ = True
    changes = variants.changes
    with (
        program_folders(len(changes) + 1) as folder,
        distribution(executor, _do, replace(variants, folder=folder), "what_if", notify) as work,
    ):
        # The arguments that can be donated are read from the plain program, so those variants come later.
        at_once = [0, *(at for at, change in enumerate(changes, 1) if change.donate is not None)]
        later = [at for at in range(len(changes) + 1) if at not in at_once]
        stages: dict[int, Mapping[str, float]] = {}
        for each in (at_once, later):
            outcomes = work.run([("compile", at) for at in each], "compiled")
            stages |= {at: outcome.value or {} for at, outcome in zip(each, outcomes, strict=True)}
        (outcome,) = work.alone([("run", 0)], "run in turns")
        notes = work.notes()
    if outcome.failure:
        raise WorkerError(f"the variants could not be run: {outcome.failure}.")
    tried: WhatIf = outcome.value
    rows = [replace(row, stages={**row.stages, **stages[at]}) for at, row in enumerate(tried.rows)]
    beside = "compiled by parallel workers, then run by one of them alone: a compile alone may take less"
    return replace(tried, rows=rows, notes=(*tried.notes, *notes, beside))


def _do(variants: _Variants, item: Item) -> Any:
    """Do a worker's item: ("compile", index) or ("run", 0), which returns the whole `WhatIf`.

    A compile returns the seconds by step of the variant, 0 for the plain function; empty if it failed.
    """
    what, at = item
    if what == "run":
        with printed_once() as prints:
            tried = variants.trial(variants.seconds).run()
        return _with_prints(tried, prints)
    trial = variants.trial(0.0)
    change = variants.changes[at - 1] if at else PLAIN
    if at and change.donate is not None:
        attempt = trial.tried(change, _Attempt(Variant("plain", "plain", "")))
    else:
        plain = trial.compiled(PLAIN, None)
        attempt = trial.tried(change, plain) if at else plain
    return attempt.row.stages if attempt.built is not None else {}


def _with_prints(tried: WhatIf, prints: Prints) -> WhatIf:
    return replace(tried, notes=(*tried.notes, *(note for note in prints.notes if note not in tried.notes)))


def _notes(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return JAX's warnings about donations as notes; issue every other warning again."""
    notes: list[str] = []
    for warning in caught:
        unused = _UNUSED.search(str(warning.message))
        if unused is None:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        else:
            notes.append(f"donated, but not reused: {unused[1]}")
    return tuple(notes)
