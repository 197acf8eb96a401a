"""Our readers against XLA's and MLIR's own, on functions of every kind and on modules made at random."""

import subprocess
import sys

import jax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.corpus import CORPUS
from tests.support.mlir_oracle import assert_read_as_mlir_does
from tests.support.xla_oracle import SPELLINGS, _hlo, assert_read_as_xla_does, spelled

FEW = ("elementwise", "reduction of two", "scan, differentiated", "sort", "a tree", "named scopes of odd names")


def lowered(name):
    function, *arguments = CORPUS[name]
    static = (1,) if name == "static argument" else ()
    return (function if hasattr(function, "lower") else jax.jit(function, static_argnums=static)).lower(*arguments)


def assert_both_stages_are_read(name):
    low = lowered(name)
    assert_read_as_xla_does(low.as_text(dialect="hlo"))
    assert_read_as_xla_does(low.compile().as_text())
    assert_read_as_mlir_does(low)


@pytest.mark.parametrize("name", FEW)
def test_a_function_is_read_as_xla_and_mlir_do(name):
    assert_both_stages_are_read(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CORPUS if name not in FEW])
def test_every_function_of_the_corpus_is_read_as_xla_and_mlir_do(name):
    assert_both_stages_are_read(name)


def test_the_corpus_is_large_enough_to_mean_something():
    assert len(CORPUS) >= 40


COLLECTIVES = """
import sys
sys.path[:0] = ["."]
import jax
from tests.support.mlir_oracle import assert_read_as_mlir_does
from tests.support.xla_oracle import assert_read_as_xla_does
from tests.support.mlir_oracle import assert_read_as_mlir_does
from tests.examples.corpus import collectives
mesh = jax.sharding.Mesh(jax.devices(), "i")
assert mesh.size == 4
for name, (function, *arguments) in collectives(mesh).items():
    low = jax.jit(function).lower(*arguments)
    graph = assert_read_as_xla_does(low.compile().as_text())
    assert_read_as_mlir_does(low)
    print(name, *sorted(op for op in graph.ops if op.startswith(("all-", "reduce-scatter", "collective-"))))
"""


@pytest.mark.slow
def test_collectives_over_several_devices_are_read_as_xla_does():
    environment = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", COLLECTIVES], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert {"psum all-reduce", "ppermute collective-permute"} <= set(done.stdout.split("\n"))


# Modules made at random ----------------------------------------------------------------------------------------------

UNARY = ("negate", "exponential", "tanh", "abs", "sqrt", "log-plus-one")
BINARY = ("add", "multiply", "subtract", "maximum", "divide")
SHAPES = ("f32[]", "f32[4]{0}", "f32[4,4]{1,0}")
METADATA = (
    "",
    ', metadata={op_name="jit(f)/tanh" stack_frame_id=1}',
    r', metadata={op_type="Add" op_name="scope\"quoted\"/a}b" source_file="/a b/c.py" source_line=3}',
)


class _Module:
    """A module's text in the making: every instruction has operands that were defined before it."""

    def __init__(self, draw):
        self.draw = draw
        self.computations = []
        self.count = 0

    def name(self, stem):
        self.count += 1
        return f"{stem}.{self.count}" if self.draw(st.booleans()) else f"{stem}-{self.count}_x"

    def choose(self, choices):
        return self.draw(st.sampled_from(choices))

    def computation(self, kind, shapes, depth):
        """Parameters of these shapes, a few instructions of every kind, and a root of the first shape."""
        known, lines = [], []
        for i, shape in enumerate(shapes):
            known.append((self.name("p"), shape))
            lines.append(f"%{known[-1][0]} = {shape} parameter({i})")
        for _ in range(self.draw(st.integers(0, 6))):
            self.instruction(known, lines, depth, is_fused=kind == "fused")
        root = next(name for name, shape in reversed(known) if shape == shapes[0])
        lines.append(f"ROOT %{self.name('root')} = {shapes[0]} copy(%{root})")
        name = self.name(kind)
        signature = ", ".join(f"{k}: {s.partition('{')[0]}" for (k, _), s in zip(known, shapes, strict=False))
        opening = f"%{name} ({signature}) -> {shapes[0].partition('{')[0]}" if self.draw(st.booleans()) else f"%{name}"
        self.computations.append((opening, lines))
        return name

    def instruction(self, known, lines, depth, is_fused):
        name, (operand, shape) = self.name("v"), self.choose(known)
        what = self.choose(("unary", "binary", "constant", "call", "while", "conditional", "reduce", "tuple", "dot"))
        if depth <= 0 or is_fused:
            what = what if what in ("unary", "binary", "tuple", "dot") else "constant"
        text, result = f"{self.choose(UNARY)}(%{operand})", shape
        if what == "binary":
            other = self.choose([k for k, s in known if s == shape])
            text = f"{self.choose(BINARY)}(%{operand}, {shape} %{other})"
        elif what == "constant":
            text, result = f"constant({self.choose(('1', '-inf', '2.5e-07', 'nan'))})", "f32[]"
        elif what == "call":
            how = self.choose(("call", "fusion"))
            called = self.computation("fused" if how == "fusion" else "called", [shape], depth - 1)
            text = f"call(%{operand}), to_apply=%{called}"
            if how == "fusion":
                text = f"fusion(%{operand}), kind=kLoop, calls=%{called}"
        elif what == "while":
            body = self.computation("body", [shape], depth - 1)
            text = f"while(%{operand}), condition=%{self.condition(shape)}, body=%{body}"
            text += ', backend_config={"known_trip_count":{"n":"3"}}' * self.draw(st.booleans())
        elif what == "conditional":
            branches = [self.computation("branch", [shape], depth - 1) for _ in range(2)]
            predicate = self.name("is")
            lines.append(f"%{predicate} = pred[] constant(true)")
            text = f"conditional(%{predicate}, %{operand}, %{operand}), "
            text += f"true_computation=%{branches[0]}, false_computation=%{branches[1]}"
        elif what == "reduce" and shape == "f32[4]{0}":
            zero = self.name("zero")
            lines.append(f"%{zero} = f32[] constant(0)")
            text, result = f"reduce(%{operand}, %{zero}), dimensions={{0}}, to_apply=%{self.reducer()}", "f32[]"
        elif what == "tuple":
            pair = self.name("pair")
            lines.append(f"%{pair} = ({shape}, /*index=1*/{shape}) tuple(%{operand}, %{operand})")
            text = f"get-tuple-element(({shape}, {shape}) %{pair}), index=1"
        elif what == "dot" and shape == "f32[4,4]{1,0}":
            text = f"dot(%{operand}, %{operand}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        lines.append(f"%{name} = {result} {text}{self.choose(METADATA)}")
        known.append((name, result))

    def condition(self, shape):
        name = self.name("condition")
        lines = [f"%{self.name('p')} = {shape} parameter(0)", f"ROOT %{self.name('c')} = pred[] constant(false)"]
        self.computations.append((f"%{name}", lines))
        return name

    def reducer(self):
        name, a, b = self.name("reducer"), self.name("a"), self.name("b")
        lines = [f"%{a} = f32[] parameter(0)", f"%{b} = f32[] parameter(1)"]
        self.computations.append((f"%{name}", [*lines, f"ROOT %{self.name('sum')} = f32[] add(%{a}, %{b})"]))
        return name

    def text(self):
        shapes = self.draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
        self.computation("main", shapes, depth=2)
        opening, lines = self.computations.pop()
        blocks = [*self.computations, (f"ENTRY {opening}", lines)]
        body = "".join(f"{o} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n\n" for o, lines in blocks)
        return f"HloModule random\n\n{body}"


@st.composite
def modules(draw):
    return _Module(draw).text()


@settings(max_examples=60)
@given(modules(), st.sampled_from(sorted(SPELLINGS)))
def test_a_module_made_at_random_is_read_as_xla_does_in_every_spelling(text, spelling):
    assert_read_as_xla_does(text)
    assert_read_as_xla_does(spelled(_hlo.hlo_module_from_text(text), spelling))


@pytest.mark.slow
@settings(max_examples=2000)
@given(modules(), st.sampled_from(sorted(SPELLINGS)))
def test_thousands_of_modules_made_at_random_are_read_as_xla_does(text, spelling):
    assert_read_as_xla_does(spelled(_hlo.hlo_module_from_text(text), spelling))
