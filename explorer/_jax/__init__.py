"""Non-public or version-dependent parts of JAX, used nowhere else. Each use has a comment with the reason."""

from explorer._jax.arguments import registered_fields
from explorer._jax.dispatch import KeyedArguments, checks_dtypes, dispatcher, with_fast_path
from explorer._jax.native import (
    Native,
    called_targets,
    hlo_text,
    load_native,
    mlir_text,
    native_code,
    printed_again,
    stable_targets,
)
from explorer._jax.numbering import NUMBERED_SCOPE, NumberedProgram, keep_executable, kept_lowering, number_equations
from explorer._jax.profiling import may_profile
from explorer._jax.rules import freeze_rules
from explorer._jax.settings import CARRIES_SETTINGS, as_written, local_settings, shows_compiled, with_settings
from explorer._jax.symbolic import Undecided, at_sizes, undecided_equalities, without_held_frames
from explorer._jax.traces import (
    foreign_tracers,
    inner_jaxprs,
    is_in_jaxpr_trace,
    is_top_level,
    scan_inputs,
    user_stack,
)

__all__ = [
    "CARRIES_SETTINGS",
    "NUMBERED_SCOPE",
    "KeyedArguments",
    "Native",
    "NumberedProgram",
    "Undecided",
    "as_written",
    "at_sizes",
    "called_targets",
    "checks_dtypes",
    "dispatcher",
    "foreign_tracers",
    "freeze_rules",
    "hlo_text",
    "inner_jaxprs",
    "is_in_jaxpr_trace",
    "is_top_level",
    "keep_executable",
    "kept_lowering",
    "load_native",
    "local_settings",
    "may_profile",
    "mlir_text",
    "native_code",
    "number_equations",
    "printed_again",
    "registered_fields",
    "scan_inputs",
    "shows_compiled",
    "stable_targets",
    "undecided_equalities",
    "user_stack",
    "with_fast_path",
    "with_settings",
    "without_held_frames",
]
