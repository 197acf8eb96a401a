"""Changes of JAX's settings end with their context, wherever an interrupt comes."""

import dis
import sys

import jax
import pytest

from explorer._jax.settings import local_settings, nothing_cached, settings_by_name, with_settings
from explorer.padding.transfer import unguarded
from explorer.pitfalls.gradient_probes import quiet

pytestmark = pytest.mark.skipif(sys.gettrace() is not None, reason="what measures coverage traces already")

CONTEXTS = {
    "quiet": quiet,
    "unguarded": unguarded,
    "nothing cached": nothing_cached,
    "another thread's": lambda: with_settings(settings_by_name({"jax_enable_x64": True, "jax_debug_nans": True})),
}

FILES = ("jax/_src/config.py", "_jax/settings.py", "padding/transfer.py", "pitfalls/gradient_probes.py")


def interrupted(context, number):
    """Enter and leave a context, with an interrupt at the `number`th place for one; return True if it has so many."""
    left, instructions = number, {}

    def trace(frame, event, _):
        nonlocal left
        if not frame.f_code.co_filename.endswith(FILES):
            return trace
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before = instructions.get(frame, "")
            instructions[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            left -= before.startswith(("CALL", "RESUME", "JUMP_BACKWARD"))  # where Python looks for signals
            if left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    try:
        sys.settrace(trace)
        with context():
            pass
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("name", CONTEXTS)
def test_an_interrupt_at_any_instruction_of_a_change_of_settings_leaves_them_as_they_were(name):
    with jax.transfer_guard("log"):
        before, values = local_settings(), dict(jax.config.values)
        number = 1
        while interrupted(CONTEXTS[name], number):
            assert (local_settings(), dict(jax.config.values)) == (before, values), number
            number += 1
    assert number > 10
