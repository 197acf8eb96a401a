"""The stream of operations that a program ran one by one, outside of any trace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """What an operation is, without the values that it was given.

    Args:
        key: The same number for the same operation: primitive or function, parameters, kinds of all inputs. Of one
            recording.
        name: Of the primitive (`dot_general`), or of the compiled function (`matmul`).
        parameters: What the program was made for, by name: `axis=0`.
        inputs: The kind of each input, `f32[128,784]`; a Python number by its class.
        outputs: Those of its results.
        is_primitive: Whether it is one of JAX's primitives; else a function that `jax.jit` compiled, jnp's or the
            user's.

    Example:
        >>> print(Operation(1, "_reduce_sum", "axis=0", ("f32[8,4]",), ("f32[4]",)))
        _reduce_sum[axis=0](f32[8,4]) -> f32[4]
    """

    key: int
    name: str
    parameters: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    is_primitive: bool = False

    def __str__(self) -> str:
        parameters = f"[{self.parameters}]" if self.parameters else ""
        return f"{self.name}{parameters}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation as it ran, or a moment at which the program looked at a value.

    Args:
        seconds: Since the recording began, when it had been dispatched.
        number: Counts the steps of the recording, from 1.
        thread: The name of the thread.
        operation: What ran; None where a value was looked at.
        observed: How it was looked at: `value`, `item`, `block_until_ready`; empty for an operation.
        inputs: Which value each input was: a number for each array, the same wherever it comes again; 0 for what isn't
            an array of JAX's.
        outputs: The same for the results; of what was looked at, it.
        file, line: The innermost line of the user's.
        top_line: The line at the top of the same file's cell or script from which it came; 0 where it came from
            another file, or from a thread's function.
    """

    seconds: float
    number: int
    thread: str
    operation: Operation | None
    observed: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    file: str
    line: int
    top_line: int = 0
