"""One function, one signature: what the compiler made of it, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import ref

from explorer.errors import ForeignNodeError, NotRecordedError, UnknownNameError
from explorer.model.answers import Answer, Facts
from explorer.model.attribution import Attribution
from explorer.model.bookmark import Bookmark
from explorer.model.declared import Pictured, cached_property, declared
from explorer.model.fates import Fate, Fates, FateTable
from explorer.model.findings import Findings
from explorer.model.graph import Graph, Node
from explorer.model.line_table import LineTable
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
# Computed before the passes were read, they say less.
_FROM_PASSES = (
    "_analysis",
    "links",
    "all_fates",
    "summary",
    "wire",
)


def _no_source(file: str) -> Source | None:
    return None


def _attribution(
    capture: ref[Capture], kind: type[Capture], given: Mapping[str, Any], stage: str, graph: Graph
) -> Attribution:
    return (capture() or kind(**given))._attribute(stage, graph)  # pyright: ignore[reportPrivateUsage] - of this file


@dataclass(frozen=True, eq=False)
class Capture(Pictured):
    """What was seen of one function compiled for one signature.

    As text it is a tree: the stages, and the last one's groups with their share of the time, FLOPs or bytes. Its
    picture, 960 pixels wide, is of these groups, each as wide as the number of its kernels.

    Args:
        function: The function's name.
        file, line: Where it is defined, empty and 0 where that is unknown.
        signature: Its arguments with their types, as a person reads them: `(x: f32[8,128])`.
        stages: The stages that worked, in the compiler's order.
        durations: Seconds of trace, lower and compile.
        environment: Versions, device and options it was compiled with.
        failure: The step that raised and what it raised, empty if none did.
        cost: XLA's own estimate for the whole program (`flops`, `bytes accessed`); a loop's body counts once. Of a
            module that was opened, what Explorer counts of its kernels, each as often as it runs.
        memory: Bytes by use: `argument`, `output`, `temp`, `alias`, `generated code`.
        constants: The arrays baked into the program.
        findings: What may go wrong with it, as far as the trace alone tells; `explorer.lint` looks closer.
        read_source: Gives the source of a file that frames name, or None.
        read_passes: Gives the passes that are kept with the capture; compiles nothing.
        reading_passes: Seconds that this takes, about. What takes more than one is read when it is asked for.
        read_code: Gives the code of the kernels that is kept with the capture, where it is.
        write_code: Gives it by compiling once more, where that can be done.
        record: Gives the passes by compiling once more, where they were too large to be kept.
        recording_note: Why there are no exact links, for a program that was compiled here; empty where there are.
        exact_sets: By each stage of which it is known, from which equations its nodes come; `links` has them.
        saved_bookmark: Where a view opens, with the notes, as the file has it that this is from.

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
    saved_bookmark: Bookmark = field(default_factory=Bookmark)

    def __post_init__(self) -> None:
        # So that `graph.where("line:3")` knows what only the capture does: the equations of other stages. A graph that
        # is left alone makes the capture anew: if it held it, both would wait for the garbage collector, and with them
        # the arrays that the program has as constants.
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        attribute = partial(_attribution, ref(self), type(self), given)
        stages = tuple(stage.attributed(partial(attribute, stage.name)) for stage in self.stages)
        self.__dict__.update(stages=stages, _given=given)

    @declared
    def _attribute(self, stage: str, graph: Graph) -> Attribution:
        """The lines that the nodes of a stage's graph belong to."""
        ...

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        """By file name, the source of every file that a stack goes through; the function's own file first."""
        files = dict.fromkeys([self.file, *(frame.file for stage in self.stages for frame in stage.graph.frames)])
        return {file: source for file in files if file and (source := self.read_source(file)) is not None}

    @cached_property
    @declared
    def links(self) -> Links:
        """Which nodes of different stages are the same operation."""
        ...

    @cached_property
    def passes(self) -> Passes:
        """What each pass of the compiler did, from the compile that made the capture.

        Those of a large program are read at the first access, when it is saved, or after it is displayed. A program
        whose passes were too large to be kept is compiled once more.

        Raises:
            NotRecordedError: A capture that was saved or displayed without them can't record them any more.

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
            stage.forget_attribution()
        return passes

    @property
    def has_passes(self) -> bool:
        """True if the passes are read, or read in a moment."""
        return "passes" in self.__dict__ or (self.read_passes is not None and self.reading_passes <= AT_ONCE)

    @cached_property
    def machine_code(self) -> MachineCode:
        """What lies below HLO: the code of each kernel, with its registers, spills and launch, as far as known.

        PTX, LLVM IR and Triton IR of a GPU; LLVM IR and, with capstone installed, assembly of a CPU; bundles of a TPU.
        The first access takes one more compilation; from then on it is kept in the capture, and saved with it.

        Raises:
            NotRecordedError: A capture that was saved without it, or is from elsewhere, can't compile any more; or it
                would be of another program.

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
        self.__dict__.pop("wire", None)
        return code

    @property
    def has_machine_code(self) -> bool:
        """Whether the code of its kernels is kept already."""
        return self.read_code is not None or "machine_code" in self.__dict__

    @cached_property
    def id(self) -> str:
        """A name for this capture among others, the same for the same content.

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
        """What is in memory at each step of the optimised program; NotRecordedError where there is none.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> explorer.explore(lambda x: jnp.sin(x) @ x, jnp.ones((64, 64))).live_memory.peak
            49152
        """
        ...

    def stage(self, name: str) -> Stage:
        """The stage of this name; UnknownNameError lists the ones there are."""
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
        """The nodes that belong to a line of the user's source, as in the view, the line table and `where("line:3")`.

        A node belongs to the line of the innermost frame in the user's own code, a kernel to those of all that is
        inside it; `node.place.how` says how that is known.

        Args:
            line: Line of the source, from 1.
            stage: Where to look.
            file: The source file; the one that defines the function if not given.
            through: Give all nodes whose stack goes through the line instead: of a call, all that it led to. So are
                lines of libraries found.

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
        """The share, 0 to 1, of the nodes of a stage that do something: no parameters, constants or tuples.

        Args:
            stage: Which stage.
            grade: Nothing for those that belong to a line of the source, as `node.place` says it. `exact`, `inferred`
                or `unknown` for those of which it is so sure from which equations they come: the three are 1 together.
                Without equations, as in a module from a file, all are unknown.

        Raises:
            UnknownNameError: There is no such stage, or no such grade.

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
        """The nodes of a stage as a pandas DataFrame, one row a node in program order.

        Args:
            stage: Which stage.

        Returns:
            The columns `name`, `op`, `type`, `group`, `scope`; `file`, `line` and `how` of the node's `place`;
            `equations`, the names of those that it comes from, and `grade`, how sure that is; then a column for each
            measure (`flops`, `bytes`, …).

        Raises:
            UnknownNameError, MissingPackageError: There is no such stage; pandas is not installed.

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
        """By stage before `hlo`, what became of its equations, column-wise; UnknownNameError without `hlo`."""
        ...

    def fates_of(self, stage: str) -> Fates:
        """What became of every equation of a stage before `hlo`, column-wise.

        Raises:
            UnknownNameError: The capture has no such stage, as one of a module alone has no jaxpr.
        """
        if stage not in self.all_fates:
            names = ", ".join(self.all_fates) or "none"
            raise UnknownNameError(f"this capture has no fates of a stage {stage!r}; it has those of: {names}")
        return self.all_fates[stage]

    def fate(self, node: Node) -> Fate:
        """What became of an equation of the jaxpr, or of a StableHLO operation, in the optimised program.

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
        stage = next((stage.name for stage in self.stages if stage.graph is node.graph), "")
        if stage not in ("jaxpr", "stablehlo"):
            raise ForeignNodeError(f"{node.name} is no node of this capture's jaxpr or stablehlo stage.")
        return self.fates_of(stage)[node.index]

    @declared
    def fate_table(self, by: str | int | None = None, stage: str = "jaxpr") -> FateTable:
        """What became of every equation, by source line; or what one pass did to the lines.

        Args:
            by: Only what this pass ended, merged or rewrote: its name (`algsimp`, all its runs; `import`, `lowering`)
                or its number.
            stage: `jaxpr` or `stablehlo`.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> capture = explorer.explore(lambda x: jnp.tanh(x) * jnp.tanh(x), jnp.ones(8))
            >>> [(row.op, row.kind, row.why) for row in capture.fate_table(by="cse")]
            [('tanh', 'merged', 'the same as b, which stands for both')]
        """
        ...

    def fates(self, stage: str = "jaxpr") -> dict[str, int]:
        """How many equations of a stage were kept, fused, merged, folded, eliminated, …, or are of unknown fate.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8)).fates("jaxpr")
            {'fused': 3}
        """
        return dict(self.fates_of(stage).counts)

    def mapped(self, stage: str = "jaxpr") -> float:
        """The share of a stage's equations, 0 to 1, of which it is known what became of them."""
        return self.fates_of(stage).mapped

    @cached_property
    @declared
    def summary(self) -> Facts:
        """The capture in a few sentences, the most important first; each knows the nodes that it speaks of.

        Only what is so: a link that is inferred, or a cost that isn't known, is in none of them.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> explorer.explore(lambda x: jnp.tanh(x) * 2, jnp.ones(8)).summary[0].text
            '1 kernel, all of line 1.'
        """
        ...

    @cached_property
    @declared
    def collectives(self) -> Collectives:
        """What the devices of a sharded program send each other: kind, mesh axis, groups, bytes, line.

        Where the capture names a `target`, also the time that its links need for that, at the least and without their
        latency: an estimate.
        Empty for a program of one device.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> len(explorer.explore(jnp.sin, jnp.ones(8)).collectives)
            0
        """
        ...

    @cached_property
    @declared
    def shardings(self) -> Shardings:
        """How each value of the optimised program lies on the devices: which dimension is split along which axis.

        The arguments' shardings are carried along the instructions. NotRecordedError or UnknownNameError where there is
        no optimised program.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> explorer.explore(jnp.sin, jnp.ones(8)).shardings.mesh.count
            1
        """
        ...

    @cached_property
    @declared
    def estimates(self) -> Estimates:
        """What each kernel is expected to take on a `target` that isn't here; empty for a program compiled without one.

        By the compiler's own cost model where it says that, else the least by published peaks; each row says by whom.
        Nothing of it is measured, and no estimate is among times that are.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> len(explorer.explore(jnp.sin, jnp.ones(8)).estimates)
            0
        """
        ...

    @declared
    def ask(self, question: str, node: Node | None = None) -> Answer:
        """The answer to a question in your own words, as the view's field gives it (Ctrl-K).

        Which line made a kernel, why there are copies, the biggest buffer, what removed a line or an operation, whether
        prints run, why it compiled again, in which precision products run, donation, the slowest kernel, what
        recomputing would bring, what isn't fused, whether a mask is in memory.

        Args:
            question: `"why are there transposes"`, `"who removed line 5"`, `"is my product in bf16"`.
            node: The instruction of the `hlo` stage that `this` is, in *which line made this*.

        Returns:
            A sentence with the nodes that it speaks of, and how sure it is; what nobody says is not known, and the
            answer says so.

        Raises:
            UnknownNameError: The question is none that is answered; lists those that are.
            ForeignNodeError: `node` is of another stage or capture.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> capture = explorer.explore(lambda x: jnp.tanh(x) * 1.0, jnp.ones(8))
            >>> capture.ask("was donation used?").text
            'No argument is donated. x of 32 B could be: a result has its type.'
        """
        ...

    @declared
    def lines(self) -> LineTable:
        """What each line of the source costs: its equations, its kernels, its share of FLOPs, bytes and seconds."""
        ...

    @declared
    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, whole or not at all; `Capture.load` gives it back exactly.

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
        """Read what `save` wrote.

        Raises:
            CaptureFileError: The file is no capture, truncated, altered, or of a newer format.
            FileNotFoundError: There is none.

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
        """Everything as bytes: what `save` writes and the viewer reads."""
        ...

    @declared
    def extract(self, node: Node, height: int = 0) -> str:
        """The text of an HLO module that computes what one instruction computes; XLA parses, compiles and runs it.

        What the compiler fused is a call there, to be fused anew.

        Args:
            node: An instruction of the stage `hlo` or `before`; inside a kernel or a loop too.
            height: How many steps before it are computed as well. What is farther is a parameter of its name; of a
                tuple, one for each element.

        Raises:
            ForeignNodeError: It is no instruction of these stages.
            OptionError: `height` is no number of steps.
            UnreadableTextError: XLA doesn't parse the text that the instruction stands in.

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

        Groups become its layers, with what a fusion, a loop or a call does inside of it; type, scope, source line and
        measures the attributes of its nodes. What each kernel takes is written beside `f.json`, as `f.bytes.json`,
        `f.flops.json` and, of a profile, `f.time.json`: there *Add per-node data*, or `config.add_node_data_from_path`.

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
        """Compile the same function once more as it is and once with something changed, and hold one against the other.

        It is what the switches of the view do. The arguments' values are not kept, so both run on ones.

        Args:
            donate, remat, precision, dtype, options, grad: As for `explorer.what_if`; all together are one variant.
            time: Whether to run them; without, only what compiling tells is there.
            seconds: To spend on the time of each.
            progress: Called with the part that is done and what is being done.

        Returns:
            An `explorer.types.WhatIf` of one variant.

        Raises:
            NotRecordedError: The capture is from a file or from elsewhere, or the function is gone.
            OptionError: Nothing is asked for, or something that can't be done.
            ExploreError: The function itself can't be compiled any more.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> tried = explorer.explore(lambda x: x * 2, jnp.ones(1000)).what_if(donate=0, time=False)
            >>> tried["donate x"].saved(tried.plain)
            4000
        """
        ...

    @declared
    def compiled_for(self, target: Any) -> Capture:
        """The capture of the same function and types of arguments, compiled for other hardware.

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
        """Whether `what_if` knows what this was compiled from."""
        ...

    @property
    @declared
    def steady(self) -> Samples | None:
        """Time of a call of this program, as `explorer.time` and others measured it; None where nothing did here."""
        ...

    @declared
    def widget(self) -> Any:
        """The view as an ipywidget, for composing layouts.

        Its trait `selection` is the list of selected node names; assigning `highlight`, `filter`, `colour` or `stage`
        shows as with `view`.
        """
        ...

    @cached_property
    @declared
    def view(self) -> Any:
        """The live views of this capture: `selection`, and what Python shows there, `highlight`, `filter`, `colour`."""
        ...

    @property
    def selection(self) -> tuple[Node, ...]:
        """The nodes last selected in a live view of this capture, in any output of this kernel."""
        return self.view.selection

    @property
    def bookmark(self) -> Bookmark:
        """What a person looks at in a live view of this capture, with their notes; `save` keeps it.

        `cap.view.bookmark = …` goes to a place, in the views that are there and in those to come.
        """
        return self.view.bookmark if "view" in self.__dict__ else self.saved_bookmark

    @declared
    def to_html(self, path: str | PathLike[str], bookmark: Bookmark | None = None) -> Path:
        """Write the view as one self-contained page, and return its path; it needs no network and no kernel.

        Args:
            bookmark: Where it opens, with which notes; `self.bookmark` if not given.

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
