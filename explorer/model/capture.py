"""One function, one signature: what the compiler made of it, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import ref

from explorer.errors import ForeignNodeError, NotRecordedError, UnknownNameError
from explorer.model.answers import Answer, Facts
from explorer.model.attribution import Attribution, LineTable
from explorer.model.bookmark import Bookmark
from explorer.model.declared import Pictured, cached_property, declared
from explorer.model.fates import Fate, Fates, FateTable
from explorer.model.findings import Findings
from explorer.model.graph import Floats, Graph, Node
from explorer.model.links import EquationSets, Links
from explorer.model.live_memory import LiveMemory
from explorer.model.machine_code import MachineCode
from explorer.model.passes import Passes
from explorer.model.results.estimates import Collectives, Estimates
from explorer.model.shardings import Shardings
from explorer.model.stage import Constant, Durations, Source, Stage

if TYPE_CHECKING:
    import pandas as pd

    from explorer.model.results.timing import Samples


AT_ONCE = 1.0  # seconds of reading passes that a display waits for
_SHARE_AT_ONCE = 0.5  # of the compile's own time: with all that a display computes of them, it takes less than that
# Computed before the passes were read, they say less.
_FROM_PASSES = (
    "_analysis",
    "links",
    "all_fates",
    "summary",
    "wire",
)


def read_graphs(capture: Capture, *names: str) -> Mapping[str, Graph]:
    """Read the named stages (all without names) with their columns and measures; return their graphs by stage name."""
    graphs = {stage.name: stage.graph for stage in capture.stages if not names or stage.name in names}
    for graph in graphs.values():
        graph.read_columns()
        _ = graph.measures
    return graphs


def with_measures(capture: Capture, measures: Mapping[str, Floats]) -> Capture:
    """Return a copy of the capture in which `measures` (name → one value per node) replace those of stage `hlo`."""
    stage, text = capture.hlo, capture.hlo.text

    def same(_: Graph) -> Mapping[str, Floats]:
        return measures

    graph = stage.graph.changed(measure=same)
    measured = Stage("hlo", lambda: (text, graph))
    return replace(capture, stages=tuple([measured if each is stage else each for each in capture.stages]))


_NO_BOOKMARK = Bookmark()


def _no_source(file: str) -> Source | None:
    return None


def _attribution(
    capture: ref[Capture], kind: type[Capture], given: Mapping[str, Any], stage: str, graph: Graph
) -> Attribution:
    return (capture() or kind(**given))._attribute(stage, graph)  # pyright: ignore[reportPrivateUsage] - of this file


@dataclass(frozen=True, eq=False)
class Capture(Pictured):
    """Record of one function compiled for one signature.

    The text is a tree: the stages, and the groups of the last stage with their share of time, FLOPs or bytes. The
    picture, 960 pixels wide, shows these groups, each as wide as its number of kernels.

    Args:
        function: Name of the function.
        file, line: Position of its definition, empty and 0 if unknown.
        signature: Arguments with their types: `(x: f32[8,128])`.
        stages: Stages that succeeded, in the compiler's order.
        durations: Seconds of trace, lower and compile.
        environment: Versions, device and options of the compile.
        failure: Failed step and its error, empty on success.
        cost: XLA's estimate for the whole program (`flops`, `bytes accessed`); a loop's body counts once. For an opened
            module, Explorer's sum over its kernels, each counted as often as it runs.
        memory: Bytes by use: `argument`, `output`, `temp`, `alias`, `generated code`.
        constants: Constant arrays of the program.
        findings: Findings from the trace alone; `explorer.lint` checks more.
        read_source: Function that returns the source of a file in a frame, or None.
        read_passes: Function that reads the recorded passes, without a compile.
        reading_passes: Estimated seconds of `read_passes`; above one second, or half of the compile's time, the
            passes are read on first access.
        read_code: Function that reads the stored machine code, if there is any.
        write_code: Function that makes the machine code with another compile, if possible.
        record: Function that records the passes with another compile, if they were too large to keep.
        recording_note: Reason for missing exact links of a local compile; empty otherwise.
        exact_sets: Known sets of equations of the nodes, by stage; `links` contains them.
        saved_bookmark: Place and notes that a view opens with, from the file of this capture.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def layer(x, w):
        ...     return jnp.tanh(x @ w) * 2
        >>> capture = explorer.explore(layer, jnp.ones((32, 64)), jnp.ones((64, 16)))
        >>> capture.signature, [stage.name for stage in capture.stages]
        ('(x: f32[32,64], w: f32[64,16])', ['jaxpr', 'stablehlo', 'hlo'])
        >>> capture.memory["argument"] == 4 * (32 * 64 + 64 * 16)
        True
        >>> [node.op for node in capture.nodes_at(2, "jaxpr")]
        ['dot_general', 'tanh', 'mul']
        >>> capture.stage("hlo").text.startswith("HloModule jit_layer")
        True
    """

    function: str
    file: str
    stages: Sequence[Stage]
    durations: Durations
    line: int = 0
    signature: str = ""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    failure: str = ""
    cost: Mapping[str, float] = field(default_factory=dict[str, float])
    memory: Mapping[str, int] = field(default_factory=dict[str, int])
    constants: Sequence[Constant] = ()
    findings: Findings = field(default_factory=lambda: Findings(()))
    read_source: Callable[[str], Source | None] = _no_source
    read_passes: Callable[[], Passes] | None = None
    reading_passes: float = 0.0
    read_code: Callable[[], MachineCode] | None = None
    write_code: Callable[[], MachineCode] | None = None
    record: Callable[[], Passes] | None = None
    recording_note: str = ""
    exact_sets: Mapping[str, EquationSets] = field(default_factory=dict[str, EquationSets])
    saved_bookmark: Bookmark = _NO_BOOKMARK

    def __post_init__(self) -> None:
        # `graph.where("line:3")` needs the equations of other stages, which only the capture has. A graph holds a weak
        # reference to the capture, and creates an equal capture if it was deleted. A strong reference would be a cycle:
        # the program's constant arrays would stay in memory until the garbage collector runs.
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        attribute = partial(_attribution, ref(self), type(self), given)
        stages = tuple(stage.attributed(partial(attribute, stage.name)) for stage in self.stages)
        self.__dict__.update(stages=stages, _given=given)

    @declared
    def _attribute(self, stage: str, graph: Graph) -> Attribution:
        """Return the source line of each node in the graph of one stage."""
        ...

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        """Return the source of each file in the stacks of the nodes, by file name.

        The file that defines the function is first. Files without a readable source are left out.
        """
        files = dict.fromkeys([self.file, *(frame.file for stage in self.stages for frame in stage.graph.frames)])
        return {file: source for file in files if file and (source := self.read_source(file)) is not None}

    @cached_property
    @declared
    def links(self) -> Links:
        """Return the links between nodes of different stages that are the same operation."""
        ...

    @cached_property
    def passes(self) -> Passes:
        """Return the effect of each compiler pass, recorded by the compile of this capture.

        Passes of a large program are read on first access, for a question about an equation, on saving, or after a
        display. A program with passes that were too large to keep is compiled once more.

        Raises:
            NotRecordedError: The capture was saved or displayed without passes, so they can't be recorded.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> "fusion" in [done.name for done in explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8)).passes]
            True
        """
        if self.has_passes:
            assert self.read_passes is not None
            return self.read_passes()
        read = self.read_passes or self.record
        if read is None:
            raise NotRecordedError(
                f"the compiler's passes were not recorded in this capture of {self.function}.\n"
                "  Hint: explore the function again and look at `.passes` before saving, or use %explore --passes."
            )
        passes = read()
        for name in _FROM_PASSES:
            self.__dict__.pop(name, None)
        for stage in self.stages:
            # Recorded passes also tell the lines of nodes that have none in their metadata.
            stage.forget_attribution()
        return passes

    @property
    def has_passes(self) -> bool:
        """Return True if the passes are in memory, or can be read within a second and half of the compile's time."""
        limit = min(AT_ONCE, _SHARE_AT_ONCE * self.durations.done.get("compile", AT_ONCE / _SHARE_AT_ONCE))
        return "passes" in self.__dict__ or (self.read_passes is not None and self.reading_passes <= limit)

    @cached_property
    def machine_code(self) -> MachineCode:
        """Return the machine code of each kernel, with known registers, spills and launch sizes.

        A GPU has PTX, LLVM IR and Triton IR; a CPU LLVM IR and, with capstone installed, assembly; a TPU bundles. The
        first access compiles once more; the result is kept in the capture and saved with it.

        Raises:
            NotRecordedError: The capture was saved without code or comes from elsewhere, or a compile would give
                another program.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> code = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(800)).machine_code
            >>> len(code[0].kernels), "llvm" in code[0].texts
            (1, True)
        """
        if self.read_code is not None:
            return self.read_code()
        if self.write_code is None:
            raise NotRecordedError(
                f"the machine code was not kept in this capture of {self.function}.\n"
                "  Hint: explore the function again and look at `.machine_code` before saving."
            )
        code = self.write_code()
        # The encoded capture has no machine code yet.
        self.__dict__.pop("wire", None)
        return code

    @property
    def has_machine_code(self) -> bool:
        """Return True if the machine code is in the capture already."""
        return self.read_code is not None or "machine_code" in self.__dict__

    @cached_property
    def id(self) -> str:
        """Return a hash of the capture's content as 16 hexadecimal digits, to identify the capture.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> one, other = (explorer.explore(jnp.sin, jnp.ones(n)) for n in (8, 9))
            >>> one.id == one.id, one.id == other.id
            (True, False)
        """
        return blake2b(self.wire, digest_size=8).hexdigest()

    @cached_property
    @declared
    def live_memory(self) -> LiveMemory:
        """Return the live buffers at each step of the optimized program.

        Raises:
            NotRecordedError: There is no `hlo` stage, or an opened text has no ENTRY computation.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> explorer.explore(lambda x: jnp.sin(x) @ x, jnp.ones((64, 64))).live_memory.peak
            49152
        """
        ...

    def stage(self, name: str) -> Stage:
        """Return the stage of this name; an UnknownNameError lists the existing ones."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        names = ", ".join(stage.name for stage in self.stages) or "none"
        raise UnknownNameError(f"this capture has no stage {name!r}; it has: {names}" + self._failed())

    @cached_property
    def jaxpr(self) -> Stage:
        return self.stage("jaxpr")

    @cached_property
    def stablehlo(self) -> Stage:
        return self.stage("stablehlo")

    @cached_property
    def hlo(self) -> Stage:
        return self.stage("hlo")

    @declared
    def nodes_at(
        self, line: int, stage: str = "hlo", *, file: str | None = None, through: bool = False
    ) -> tuple[Node, ...]:
        """Return the nodes of a line of user code, as in the view, the line table and `where("line:3")`.

        A node belongs to the line of the innermost frame in user code, a kernel to all lines of its contents;
        `node.place.how` gives the evidence.

        Args:
            line: Source line, from 1.
            stage: Name of the stage.
            file: Source file; by default the file that defines the function.
            through: Return all nodes with the line anywhere in their stack, such as all nodes made by a call. This also
                finds lines of libraries.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> def double(x):
            ...     return x * 2
            >>> def f(x):
            ...     return double(x)
            >>> cap = explorer.explore(f, jnp.ones(8))
            >>> cap.nodes_at(2, "jaxpr"), cap.nodes_at(2, "jaxpr", through=True)
            ((), (b = f32[8] mul(a),))
        """
        ...

    @declared
    def coverage(self, stage: str, grade: str = "") -> float:
        """Return a share, 0 to 1, of a stage's computing nodes (no parameters, constants or tuples).

        Args:
            stage: Name of the stage.
            grade: By default, nodes with a source line count, as in `node.place`. With `exact`, `inferred` or
                `unknown`, nodes with this grade of their equations count; the three shares sum to 1. Without equations,
                as in a module from a file, all nodes are unknown.

        Raises:
            UnknownNameError: The stage or the grade doesn't exist.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> capture = explorer.explore(lambda x: jnp.sin(x) * 2, jnp.ones(8))
            >>> round(sum(capture.coverage("hlo", grade) for grade in ("exact", "inferred", "unknown")), 6)
            1.0
            >>> capture.coverage("jaxpr")
            1.0
        """
        ...

    @declared
    def to_frame(self, stage: str = "hlo") -> pd.DataFrame:
        """Return the nodes of a stage as a pandas DataFrame, one row per node in program order.

        Args:
            stage: Name of the stage.

        Returns:
            Columns `name`, `op`, `type`, `group`, `scope`; `file`, `line` and `how` of the node's `place`; `equations`
            (names of its equations) and their `grade`; then one column per measure (`flops`, `bytes`, …).

        Raises:
            UnknownNameError: The stage doesn't exist.
            MissingPackageError: pandas is not installed.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> frame = explorer.explore(jnp.sin, jnp.ones(8)).to_frame()
            >>> "op" in frame.columns, len(frame) > 0
            (True, True)
        """
        ...

    @cached_property
    @declared
    def all_fates(self) -> Mapping[str, Fates]:
        """Return what happened to the equations of each stage before `hlo`, as a mapping from stage name to columns.

        UnknownNameError without an `hlo` stage.
        """
        ...

    def fates_of(self, stage: str) -> Fates:
        """Return what happened to each equation of one stage before `hlo`, as columns.

        Raises:
            UnknownNameError: The capture has no such stage; a capture of a module has no jaxpr.
        """
        if self.read_passes is not None:
            _ = self.passes  # kept by the compile, they say what became of every equation
        if stage not in self.all_fates:
            names = ", ".join(self.all_fates) or "none"
            raise UnknownNameError(
                f"this capture doesn't know what happened to equations of a stage {stage!r}; it knows for: {names}"
            )
        return self.all_fates[stage]

    def fate(self, node: Node) -> Fate:
        """Return what happened to one equation of the jaxpr, or to one StableHLO operation, in the optimized program.

        Raises:
            ForeignNodeError: The node belongs to another stage or capture.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> capture = explorer.explore(lambda x: jnp.sin(x) + jnp.sin(x), jnp.ones(8))
            >>> for node in capture.jaxpr.graph.nodes:
            ...     if node.op != "parameter":
            ...         print(node.op, capture.fate(node))
            sin fused into sine_add_fusion
            sin merged by cse (pass 1): the same as b, which stands for both
            add fused into sine_add_fusion
        """
        # By identity, because another capture may have equal graphs.
        stage = next((stage.name for stage in self.stages if stage.graph is node.graph), "")
        if stage not in ("jaxpr", "stablehlo"):
            raise ForeignNodeError(f"{node.name} is no node of this capture's jaxpr or stablehlo stage.")
        return self.fates_of(stage)[node.index]

    @declared
    def fate_table(self, by: str | int | None = None, stage: str = "jaxpr") -> FateTable:
        """Return a table of what happened to each equation, ordered by source line.

        Args:
            by: Restrict to equations that one pass ended, merged or rewrote: its name (`algsimp` for all its runs,
                `import`, `lowering`) or its number.
            stage: `jaxpr` or `stablehlo`.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> capture = explorer.explore(lambda x: jnp.tanh(x) * jnp.tanh(x), jnp.ones(8))
            >>> [(row.op, row.kind, row.why) for row in capture.fate_table(by="cse")]
            [('tanh', 'merged', 'the same as b, which stands for both')]
        """
        ...

    def fates(self, stage: str = "jaxpr") -> dict[str, int]:
        """Return the number of equations by what happened to them: kept, fused, merged, folded, …, unknown.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8)).fates("jaxpr")
            {'fused': 3}
        """
        return dict(self.fates_of(stage).counts)

    def mapped(self, stage: str = "jaxpr") -> float:
        """Return the share of a stage's equations whose outcome in the optimized program is known, 0 to 1."""
        return self.fates_of(stage).mapped

    @cached_property
    @declared
    def summary(self) -> Facts:
        """Return a few sentences about the program, most important first, each with its nodes.

        Inferred links and unknown costs are not used. Without an optimized program there are no sentences.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> explorer.explore(lambda x: jnp.tanh(x) * 2, jnp.ones(8)).summary[0].text
            '1 kernel, all of line 1.'
        """
        ...

    @cached_property
    @declared
    def collectives(self) -> Collectives:
        """Return the collectives of a sharded program: kind, mesh axis, groups, bytes, line.

        With a `target`, each also has the estimated minimum time of its links, without latency. Empty for a program of
        one device.

        Raises:
            NotRecordedError: An opened text has no ENTRY computation, so what runs is unknown.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> len(explorer.explore(jnp.sin, jnp.ones(8)).collectives)
            0
        """
        ...

    @cached_property
    @declared
    def shardings(self) -> Shardings:
        """Return the sharding of each value of the optimized program: the mesh axes that split each dimension.

        The shardings of the arguments are propagated along the instructions. NotRecordedError for the program of one
        TPU slice of several; UnknownNameError without an optimized program.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> explorer.explore(jnp.sin, jnp.ones(8)).shardings.mesh.count
            1
        """
        ...

    @cached_property
    @declared
    def estimates(self) -> Estimates:
        """Return the estimated time of each kernel on a `target`; empty without a target.

        Estimates come from the compiler's cost model, or else from published peaks as a minimum; each row names its
        source. Nothing is measured.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> len(explorer.explore(jnp.sin, jnp.ones(8)).estimates)
            0
        """
        ...

    @declared
    def ask(self, question: str, node: Node | None = None) -> Answer:
        """Answer a question in plain words, as the view's question field does (Ctrl-K).

        Topics are the line of a kernel, copies, the biggest buffer, the pass that removed a line or an operation,
        prints, recompiles, the precision of products, donation, the slowest kernel, rematerialization, missing fusions,
        masks in memory.

        Args:
            question: `"why are there transposes"`, `"who removed line 5"`, `"is my product in bf16"`.
            node: Instruction of the `hlo` stage that `this` refers to, as in *which line made this*.

        Returns:
            A sentence with its nodes and a grade; an unknown answer is graded unknown.

        Raises:
            UnknownNameError: The question is not supported; the message lists the supported ones.
            ForeignNodeError: `node` belongs to another stage or capture.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> capture = explorer.explore(lambda x: x + jnp.tanh(x), jnp.ones(8))
            >>> capture.ask("was donation used?").text
            'No argument is donated. x of 32 B could be: a result has its shape and dtype.'
        """
        ...

    @declared
    def lines(self, by: Literal["line", "stack", "scope"] = "line") -> LineTable:
        """Return the cost of each source line: equations, kernels, share of FLOPs, bytes and seconds.

        Args:
            by: `stack` puts each line inside the lines that called it, `scope` inside the named scopes around it. A row
                then has the costs of all rows inside. The captures of a profile have their seconds folded too.

        Raises:
            OptionError: `by` is another text.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> def product(x):
            ...     return x @ x
            >>> def f(x):
            ...     return product(product(x)) + product(x)
            >>> for row in explorer.explore(f, jnp.ones((8, 8))).lines("stack"):
            ...     print(row.depth, row.text, row.flops)
            0 return product(product(x)) + product(x) 2112.0
            1 return x @ x 2048.0
        """
        ...

    @declared
    def save(self, path: str | PathLike[str]) -> None:
        """Write the whole capture to one file; `Capture.load` restores an equal capture.

        The file is written completely or not at all.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     path = Path(folder, "sin.explorer")
            ...     explorer.explore(jnp.sin, jnp.ones(8)).save(path)
            ...     explorer.load(path).signature
            '(x: f32[8])'
        """
        ...

    @staticmethod
    @declared
    def load(path: str | PathLike[str]) -> Capture:
        """Load a capture from a file of `save`.

        Raises:
            CaptureFileError: The file is no capture, truncated, altered, or has a newer format.
            FileNotFoundError: The file doesn't exist.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     explorer.explore(jnp.sin, jnp.ones(8)).save(Path(folder, "sin.explorer"))
            ...     explorer.load(Path(folder, "sin.explorer"))
            Capture(sin: jaxpr → stablehlo → hlo)
        """
        ...

    @cached_property
    @declared
    def wire(self) -> bytes:
        """Return the whole capture as bytes, in the format that `save` writes and the viewer reads."""
        ...

    @declared
    def extract(self, node: Node, height: int = 0) -> str:
        """Return the text of an HLO module that computes one instruction; XLA can parse, compile and run it.

        Fusions become calls, which XLA can fuse again.

        Args:
            node: Instruction of the stage `hlo` or `before`, also inside a kernel or a loop.
            height: Number of preceding steps to include. Earlier values become parameters of the same name, one per
                element of a tuple.

        Raises:
            ForeignNodeError: The node is no instruction of these stages.
            OptionError: `height` is no number of steps.
            UnreadableTextError: XLA can't parse the text that contains the instruction.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> capture = explorer.explore(lambda x: jnp.sin(x) @ x, jnp.ones((8, 8)))
            >>> module = capture.extract(capture.hlo.graph.where("op:sine")[0])
            >>> explorer.open_hlo(module).hlo.graph.where("op:sine")[0].op
            'sine'
        """
        ...

    @declared
    def to_model_explorer_json(self, path: str | PathLike[str]) -> Path:
        """Write the stages as one file that Model Explorer (`ai-edge-model-explorer`) opens, and return its path.

        Groups become layers, with the contents of fusions, loops and calls inside. Type, scope, source line and
        measures become node attributes. Kernel costs go into `f.bytes.json`, `f.flops.json` and, for a profile,
        `f.time.json`; load them with *Add per-node data* or `config.add_node_data_from_path`.

        Raises:
            OSError: The files can't be written.
        """
        ...

    @declared
    def what_if(
        self,
        *,
        donate: Any = None,
        remat: Any = None,
        precision: Any = None,
        dtype: Any = None,
        options: Any = None,
        grad: bool = False,
        time: bool = True,
        seconds: float = 0.3,
        progress: Callable[[float, str], None] | None = None,
    ) -> Any:
        """Compile the function once unchanged and once with a change, and compare the two.

        The switches of the view call this method. Values of the arguments are not kept, so both run on ones.

        Args:
            donate, remat, precision, dtype, options, grad: Changes as in `explorer.what_if`; together they are one
                variant.
            time: True to run both; otherwise only figures of the compile are compared. A capture for a target never
                runs.
            seconds: Time budget of each measurement.
            progress: Callback with the completed fraction and the current step.

        Returns:
            An `explorer.types.WhatIf` of one variant.

        Raises:
            NotRecordedError: The capture comes from a file or from elsewhere, or the function was deleted.
            OptionError: No change is given, or an impossible one.
            ExploreError: The function can't be compiled any more.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> tried = explorer.explore(lambda x: x * 2, jnp.ones(1000)).what_if(donate=0, time=False)
            >>> tried["donate x"].saved(tried.plain)
            4000
        """
        ...

    @declared
    def compiled_for(self, target: Any) -> Capture:
        """Compile the function for other hardware with the same argument types, and return the new capture.

        Args:
            target: As for `explorer.explore`: `"h100"`, `"v5e:4x4"`; None for the devices that are here.

        Raises:
            NotRecordedError: The capture is from a file or from elsewhere, or the function is gone.
            UnknownTargetError, MissingCompilerError, ExploreError: As for `explorer.explore`.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> explorer.explore(jnp.sin, jnp.ones(8)).compiled_for("h100").environment["target"]  # doctest: +SKIP
            'h100'
        """
        ...

    @property
    @declared
    def can_change(self) -> bool:
        """Return True if the explored function still exists in this session, so that `what_if` can compile it."""
        ...

    @property
    @declared
    def steady(self) -> Samples | None:
        """Return the measured seconds of single calls of this program; None if not measured in this session.

        `explorer.time` and other measurements set it.
        """
        ...

    @declared
    def widget(self) -> Any:
        """Return the view as an ipywidget, for use in layouts.

        Its trait `selection` is the list of selected node names. Assigning `highlight`, `filter`, `colour` or `stage`
        changes the widget, as in `view`.
        """
        ...

    @cached_property
    @declared
    def view(self) -> Any:
        """Return the controller of all live views of this capture.

        Read the user's `selection` from it. Assign `highlight`, `filter` or `colour` to change what the views show.
        """
        ...

    @property
    def selection(self) -> tuple[Node, ...]:
        """Return the nodes last selected in any live view of this capture; empty without a selection."""
        return self.view.selection

    @property
    def bookmark(self) -> Bookmark:
        """Return the place that the live view of this capture shows, or without a view the saved place, with notes.

        `cap.view.bookmark = …` moves existing and future views to a place.
        """
        # Reading the place must not create a view.
        return self.view.bookmark if "view" in self.__dict__ else self.saved_bookmark

    @declared
    def to_html(self, path: str | PathLike[str], bookmark: Bookmark | None = None) -> Path:
        """Write the view as one self-contained page, and return its path; it needs no network and no kernel.

        Args:
            bookmark: Place and notes to open with; by default `self.bookmark`.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     page = explorer.explore(jnp.sin, jnp.ones(8)).to_html(Path(folder, "sin.html"))
            ...     page.name, "<html" in page.read_text(encoding="utf-8")
            ('sin.html', True)
        """
        ...

    def _failed(self) -> str:
        return f" ({self.failure})" if self.failure else ""

    def __repr__(self) -> str:
        return f"Capture({self.function}: {' → '.join(s.name for s in self.stages) or 'nothing'}{self._failed()})"
