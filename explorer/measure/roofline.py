"""roofline(): how far each kernel of a function is from the machine's limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from explorer.analysis.least_time import estimated_roofline
from explorer.analysis.roofline import build_roofline
from explorer.capture.call import Call, takes_call
from explorer.capture.explore import explore
from explorer.errors import NotCallableError, OptionError
from explorer.hardware.names import parse_target, peaks_of
from explorer.measure.peaks import peaks as measured_peaks
from explorer.measure.profile import profile as measure_profile
from explorer.measure.targets import target_notes
from explorer.model.results.profile import Profile
from explorer.model.results.roofline import Peaks, Roofline
from explorer.model.target import Target


@takes_call
def roofline(
    function: Callable[..., Any] | Profile | Call,
    /,
    *args: Any,
    profile: Profile | None = None,
    peaks: Peaks | None = None,
    target: str | Target | None = None,
    **kwargs: Any,
) -> Roofline:
    """Measure how far each kernel of a function is from this machine's limits, and what holds it back.

    The function is profiled. The machine's peaks are measured the first time, which takes a few seconds.

    An operation is an HLO instruction per element: an exponential counts as one, though it takes many times as long as
    a sum. For kernels with such operations, `efficiency` is a lower bound and `speedup` an upper bound.

    Args:
        function: Any callable, a `jax.jit` function, or an `Executable`; or a `Profile` of one.
        args, kwargs: Its arguments. For a keyword that is also an option here, see `explorer.Call`.
        profile: A profile of it by `explorer.profile`; None measures one.
        peaks: Limits of the machine; None takes `explorer.peaks()`, or a target's published ones.
        target: Hardware to compile for, present or not, as for `explorer.explore`. Nothing runs then: each kernel's
            time is the least that the peaks allow, and `.is_estimated` is True.

    Raises:
        NotCallableError: `function` can't be called.
        OptionError: `profile` or `peaks` has another type, or there are both a `profile` and a `target`.
        UnknownTargetError, MissingCompilerError: As for `explore`.
        ProfilerBusyError: A trace is being recorded in this process already.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> machine = explorer.Peaks("a slow machine", bandwidth=1e6, matmul={"f32": 1e6}, fma={"f32": 1e6})
        >>> measured = explorer.roofline(jax.jit(lambda x: x @ x), jnp.ones((256, 256)), peaks=machine)
        >>> measured.points[0].bound, measured.points[0].least
        ('compute', 33.554432)
    """
    __tracebackhide__ = True
    if isinstance(function, Profile):
        profile = function
    call = Call.of(function, args, kwargs)
    if profile is None and not callable(call.function):
        raise NotCallableError(
            f"roofline takes a function and its arguments; it got {type(call.function).__name__}. "
            "Hint: write roofline(f, x), not roofline(f(x))."
        )
    _check("profile", profile, Profile, "explorer.profile(f, x)")
    _check("peaks", peaks, Peaks, "explorer.peaks()")
    if target is not None:
        return _estimated(call, profile, peaks, parse_target(target))
    # The peaks first: what a profile leaves in the caches and on the heap would be in their way.
    machine = measured_peaks() if peaks is None else peaks
    return build_roofline(measure_profile(call) if profile is None else profile, machine)


def _estimated(call: Call, profile: Profile | None, peaks: Peaks | None, target: Target) -> Roofline:
    __tracebackhide__ = True
    if profile is not None:
        raise OptionError(
            f"a profile measured here does not apply to {target.device.name}.\n"
            f"  Hint: roofline(f, x, target={str(target)!r}) estimates."
        )
    if not target.device.bandwidth and peaks is None:
        raise OptionError(
            f"no peaks are published for {target.device.name}: they depend on its machine.\n"
            "  Hint: peaks=explorer.Peaks(…) gives them."
        )
    capture = explore(call, target=target)
    return estimated_roofline(capture, peaks_of(target.device) if peaks is None else peaks, target_notes(target))


def _check(name: str, value: object, wanted: type, made: str) -> None:
    __tracebackhide__ = True
    if value is not None and not isinstance(value, wanted):
        raise OptionError(
            f"{name} is {type(value).__name__}; allowed is a {wanted.__name__}, as {made} gives it, or None.\n"
            f"  Hint: for an argument of the function that is called {name}, roofline(explorer.Call(f, {name}=…))."
        )
