"""Machine code of kernels, with registers, spills and launch sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from explorer.errors import UnknownNameError
from explorer.model.results.rows import RowSequence
from explorer.model.text import did_you_mean, list_names

LANGUAGES: Mapping[str, str] = {
    "triton": "Triton IR",
    "llvm": "LLVM IR",
    "ptx": "PTX",
    "assembly": "assembly",
    "bundles": "VLIW bundles",
}
"""Languages of the texts and their names, from the highest level to machine code."""


@dataclass(frozen=True)
class KernelCode:
    """Machine code of one kernel. Unknown fields are None or empty.

    Args:
        function: Symbol.
        kernels: Instructions of the `hlo` stage that run it; several if equal kernels share code.
        texts: Code by language, one of `LANGUAGES`.
        grid, block: GPU: number of blocks, and threads per block, by axis.
        registers: GPU: 32-bit registers per thread, from the assembler.
        stack: GPU: bytes per thread for spilled registers and local arrays; 0 means no spills.
        shared: GPU: bytes of shared memory per block.
        occupancy: GPU: upper bound on the share of resident threads of a multiprocessor, from published limits, known
            registers, shared memory and block size.
        matrix_instructions: Matrix instructions as printed: `mma` of a GPU, `vmatmul` of a TPU.
        vector_bits: CPU: width of the widest vectors; 0 for scalar code.
        spills: Number of instructions that spill a register to memory, from a TPU's bundles; unknown for a CPU.
        calls: Called functions of libraries and runtimes.
        bundles: TPU: number of scheduled bundles; a loop's body counts once.

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
        """Return the lowest-level language among `texts`, which is nearest to the code that runs."""
        return [language for language in LANGUAGES if language in self.texts][-1]

    @property
    def has_spills(self) -> bool | None:
        """Return True if registers are spilled to memory, False if not; None if unknown.

        A GPU kernel's stack may hold spilled registers or local arrays, so a `stack` above 0 gives None.
        """
        if self.spills is not None:
            return self.spills > 0
        return False if self.stack == 0 else None

    def __repr__(self) -> str:
        languages = ", ".join(language for language in LANGUAGES if language in self.texts)
        of = f" of {list_names(self.kernels)}" if self.kernels else ""
        return f"KernelCode({self.function}{of}: {languages})"


@dataclass(frozen=True)
class MachineCode(RowSequence[KernelCode]):
    """Machine code of all kernels of a program, indexed by position or by the name of an `hlo` instruction.

    Args:
        platform: Platform of the code: `cuda`, `tpu`, `cpu`, …
        rows: One row per kernel, in the order of the first instruction that runs it.
        notes: Unknown facts with reasons, one sentence each.

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
        # Reversed, so that the first of several rows with one kernel stays.
        by_kernel = {kernel: row for row in reversed(self.rows) for kernel in row.kernels}
        object.__setattr__(self, "_by_kernel", by_kernel)

    def get(self, kernel: str) -> KernelCode | None:
        """Return the code of an instruction of the `hlo` stage; None if it has no code of its own."""
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
