"""What a compiler made below HLO: the code of each kernel, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from explorer.errors import UnknownNameError
from explorer.model.results.rows import RowSequence
from explorer.model.text import did_you_mean

LANGUAGES: Mapping[str, str] = {
    "triton": "Triton IR",
    "llvm": "LLVM IR",
    "ptx": "PTX",
    "assembly": "assembly",
    "bundles": "VLIW bundles",
}
"""What texts may be in, from the highest to what runs, and what each is called."""


@dataclass(frozen=True)
class KernelCode:
    """The code of one kernel. What isn't known of it is None, or empty.

    Args:
        function: Its symbol.
        kernels: The instructions of the `hlo` stage that run it: more than one where equal kernels share their code.
        texts: The code by language, one of `LANGUAGES`.
        grid, block: Of a GPU, how many blocks run, and how many threads a block has, by axis.
        registers: Of a GPU, how many 32-bit registers its assembler gave each thread.
        stack: Of a GPU, bytes of memory that each thread has for spilled registers and arrays of its own; 0: no spills.
        shared: Of a GPU, bytes of shared memory that a block has.
        occupancy: Of a GPU, the share of a multiprocessor's threads that can be resident, at most: from published
            limits, registers where they are known, shared memory and the size of a block.
        matrix_instructions: The matrix instructions in it, as the text writes them: a GPU's `mma`, a TPU's `vmatmul`.
        vector_bits: Of a CPU, the width of the widest vectors that it computes with; 0 where it has scalars alone.
        spills: How many instructions store a register to memory for want of registers. Of a TPU its bundles say it; of
            a CPU it is not known.
        calls: Functions of libraries and runtimes that it calls.
        bundles: Of a TPU, how many bundles are scheduled, each once: a loop's body counts once.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> code = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(800)).machine_code
        >>> code[0].language, len(code[0].texts["llvm"]) > 0, code[0].registers
        ('assembly', True, None)
    """

    function: str
    kernels: tuple[str, ...]
    texts: Mapping[str, str]
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    registers: int | None = None
    stack: int | None = None
    shared: int | None = None
    occupancy: float | None = None
    matrix_instructions: tuple[str, ...] = ()
    vector_bits: int | None = None
    spills: int | None = None
    calls: tuple[str, ...] = ()
    bundles: int | None = None

    @property
    def language(self) -> str:
        """The language nearest to what runs."""
        return [language for language in LANGUAGES if language in self.texts][-1]

    @property
    def has_spills(self) -> bool | None:
        """Whether registers are spilled; None where that isn't known, as where a GPU's threads have a stack."""
        if self.spills is not None:
            return self.spills > 0
        return False if self.stack == 0 else None


@dataclass(frozen=True)
class MachineCode(RowSequence[KernelCode]):
    """The code of all kernels of a program; by position, or by the name of an instruction of the `hlo` stage.

    Args:
        platform: Whose code it is: `cuda`, `tpu`, `cpu`, …
        rows: One for each kernel, in the order of the first instruction that runs it.
        notes: What isn't known, and why, a sentence each.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(800))
        >>> code = capture.machine_code
        >>> code.platform, len(code), code.get(code[0].kernels[0]) is code[0]
        ('cpu', 1, True)
    """

    platform: str
    rows: tuple[KernelCode, ...] = ()
    notes: tuple[str, ...] = ()
    _by_kernel: Mapping[str, KernelCode] = field(default_factory=dict[str, KernelCode], repr=False, compare=False)

    def __post_init__(self) -> None:
        by_kernel = {kernel: row for row in reversed(self.rows) for kernel in row.kernels}
        object.__setattr__(self, "_by_kernel", by_kernel)

    def get(self, kernel: str) -> KernelCode | None:
        """The code that an instruction of the `hlo` stage runs; None where there is none of its own."""
        return self._by_kernel.get(kernel)

    def __getitem__(self, at: int | str) -> KernelCode:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not isinstance(at, str):
            return self.rows[at]
        row = self._by_kernel.get(at)
        if row is None:
            raise UnknownNameError(f"no kernel {at!r} has code of its own.{did_you_mean(at, list(self._by_kernel))}")
        return row

    def __repr__(self) -> str:
        return f"MachineCode({self.platform}: {len(self.rows)} kernels)"
