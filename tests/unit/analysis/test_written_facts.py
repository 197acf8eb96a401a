"""The sentences that sum a module up, of modules written by hand: each figure is worked out from the types.

An element is 4 bytes, and a kernel's bytes are those that it reads and writes.
"""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.model.attribution import ONE_ITERATION

HERE = "/home/a/train.py"


def at(line, file=HERE):
    return f', metadata={{op_name="jit(f)/op" source_file="{file}" source_line={line}}}' if line else ""


def summary(*lines, more="", attributes=""):
    """The facts of a module whose entry has these lines."""
    entry = "\n".join(f"  {line}" for line in lines)
    text = f"HloModule m, is_scheduled=true{attributes}\n{more}\nENTRY main {{\n{entry}\n}}\n"
    return {fact.kind: fact for fact in ex.open_hlo(text).summary}


def chain(sizes_and_lines, op="negate"):
    """Kernels that have nothing to do with each other, each of an argument of its own, as one tuple."""
    rows, results = [], []
    for number, (size, line) in enumerate(sizes_and_lines):
        rows += [
            f"x{number} = f32[{size}]{{0}} parameter({number})",
            f"k{number} = f32[{size}]{{0}} {op}(x{number}){at(line)}",
        ]
        results.append((f"f32[{size}]{{0}}", f"k{number}"))
    types, names = (", ".join(column) for column in zip(*results, strict=True))
    return [*rows, f"ROOT r = ({types}) tuple({names})"]


# Kernels and lines ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["ROOT x = f32[8]{0} parameter(0)"], "No kernel runs: the results are arguments or constants."),
        (chain([(8, 3)]), "1 kernel, all of line 3."),
        (chain([(8, 3), (9, 3)]), "2 kernels, all of line 3."),
        (chain([(8, 0), (9, 0)]), "2 kernels."),
        (chain([(8, 3), (24, 5)]), "2 kernels; line 5 moves 75% of the bytes."),
        (chain([(8, 3), (8, 0)]), "2 kernels; line 3 moves 50% of the bytes."),
        (chain([(8, line) for line in (3, 4, 5, 6, 7)]), "5 kernels; line 3 moves 20% of the bytes."),
        (chain([(8, line) for line in (3, 4, 5, 6, 7, 8)]), "6 kernels."),  # a sixth stands out from nothing
    ],
)
def test_the_kernels_are_counted_and_the_line_that_stands_out_is_named(lines, text):
    fact = summary(*lines)["cost"]
    assert (fact.text, fact.share) == (text, 1.0)


def test_a_line_of_another_file_has_its_name():
    lines = chain([(8, 3), (8, 4), (64, 0)])
    lines[5] = lines[5].replace("negate(x2)", "negate(x2)" + at(9, "/home/a/layers.py"))
    assert summary(*lines)["cost"].text == "3 kernels; line 9 of layers.py moves 80% of the bytes."


@pytest.mark.parametrize(
    ("size", "text"),
    [
        # 2 n³ FLOPs beside 5 n² elements of 4 bytes, of which 3 n² are the product's: at 100 ten for each byte.
        (101, "2 kernels; line 3 does 100% of the FLOPs."),
        (100, "2 kernels; line 3 moves 60% of the bytes."),
    ],
)
def test_what_computes_much_is_said_by_flops(size, text):
    shape = f"f32[{size},{size}]{{1,0}}"
    dot = "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    facts = summary(
        f"x = {shape} parameter(0)", f"y = {shape} parameter(1)", f"d = {shape} {dot}{at(3)}",
        f"ROOT n = {shape} copy(d){at(4)}",
    )  # fmt: skip
    assert facts["cost"].text == text


def test_of_a_loop_whose_length_nobody_knows_one_iteration_is_counted_and_that_is_said():
    body = f"""
body {{
  p = f32[8]{{0}} parameter(0)
  ROOT b = f32[8]{{0}} negate(p){at(5)}
}}
cond {{
  q = f32[8]{{0}} parameter(0)
  z = f32[]{{}} constant(0)
  s = f32[1]{{0}} slice(q), slice={{[0:1]}}
  e = f32[]{{}} bitcast(s)
  ROOT c = pred[]{{}} compare(e, z), direction=LT
}}
"""
    fact = summary("x = f32[8]{0} parameter(0)", "ROOT w = f32[8]{0} while(x), condition=cond, body=body", more=body)[
        "cost"
    ]
    assert fact.text.endswith(f" of the bytes, {ONE_ITERATION}.")


# Copies --------------------------------------------------------------------------------------------------------------


def transposed(*others):
    lines = chain([(8, 0), *others])
    lines[0] = "x0 = f32[4,2]{1,0} parameter(0)"
    lines[1] = f"k0 = f32[2,4]{{1,0}} transpose(x0), dimensions={{1,0}}{at(3)}"
    lines[-1] = lines[-1].replace("(f32[8]{0}", "(f32[2,4]{1,0}", 1)
    return lines


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (chain([(8, 3)], "copy"), "The kernel only copies or transposes, for line 3: 100% of the bytes."),
        (chain([(8, 0)], "copy"), "The kernel only copies or transposes: 100% of the bytes."),
        (chain([(8, 3), (8, 5)], "copy"), "All kernels only copy or transpose, for lines 3 and 5: 100% of the bytes."),
        (transposed((24, 5)), "1 kernel only copies or transposes, for line 3: 25% of the bytes."),
        (transposed((152, 5)), "1 kernel only copies or transposes, for line 3: 5% of the bytes."),
        (transposed((153, 5)), None),  # less than one in twenty is worth no sentence
        (chain([(8, 3)]), None),
    ],
)
def test_kernels_that_only_copy_are_counted(lines, text):
    fact = summary(*lines).get("copies")
    assert (fact.text if fact else None) == text


@pytest.mark.parametrize(("inner", "is_copy"), [("copy", True), ("bitcast", False), ("negate", False)])
def test_a_fusion_copies_where_nothing_in_it_computes(inner, is_copy):
    fused = f"""
fused {{
  p = f32[4,2]{{1,0}} parameter(0)
  i = f32[4,2]{{1,0}} {inner}(p)
  ROOT t = f32[8]{{0}} bitcast(i)
}}
"""
    facts = summary(
        "x = f32[4,2]{1,0} parameter(0)", f"ROOT k = f32[8]{{0}} fusion(x), kind=kLoop, calls=fused{at(3)}", more=fused
    )
    assert ("copies" in facts) is is_copy


def test_several_of_many_kernels_are_counted():
    lines = transposed((8, 5), (8, 6))
    lines[3] = lines[3].replace("negate", "copy")
    fact = summary(*lines)["copies"]
    assert fact.text == "2 kernels only copy or transpose, for lines 3 and 5: 67% of the bytes."
    assert len(fact.nodes) == 2
    assert fact.share == pytest.approx(2 / 3)


# Devices -------------------------------------------------------------------------------------------------------------

SUM = """
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""


def reduced(*sizes_and_lines, partitions=2):
    """A ring sends 2 · (n − 1) / n of what it sums: all of it between two devices."""
    lines = chain(sizes_and_lines, "all-reduce")
    how = "), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum"
    lines = [
        f"{head}all-reduce({rest.replace(')', how, 1)}" if name else head
        for head, name, rest in (line.partition("all-reduce(") for line in lines)
    ]
    return summary(*lines, more=SUM, attributes=f", num_partitions={partitions}")["collectives"]


def test_what_devices_send_each_other():
    assert reduced((1000, 3)).text == (
        "1 collective between 2 devices: each sends 4.0 kB or more, all of it for line 3."
    )
    assert reduced((1000, 0)).text == "1 collective between 2 devices: each sends 4.0 kB or more."
    assert reduced((1000, 3), (3000, 5)).text == (
        "2 collectives between 2 devices: each sends 16.0 kB or more, most of it for line 5."
    )
    # Just half of it is not most.
    assert reduced((1000, 3), (1000, 5)).text == "2 collectives between 2 devices: each sends 8.0 kB or more."
    assert len(reduced((1000, 3), (3000, 5)).nodes) == 2


def test_devices_that_send_nothing_are_worth_a_sentence():
    assert summary(*chain([(8, 3)]), attributes=", num_partitions=4")["collectives"].text == (
        "Its 4 devices send each other nothing."
    )
    assert "collectives" not in summary(*chain([(8, 3)]))


# Memory --------------------------------------------------------------------------------------------------------------

MIB = 2**18  # elements


def filled(size, line=0, before=()):
    """An argument, an array that is made of it, and the sum of that."""
    return [
        "x = f32[] parameter(0)",
        *before,
        f"b = f32[{size}]{{0}} broadcast(x), dimensions={{}}{at(line)}",
        "ROOT r = f32[] reduce(b, x), dimensions={0}, to_apply=sum",
    ]


def test_memory_is_worth_a_sentence_from_a_mebibyte_on():
    """At the peak are the argument and the sum, of 4 bytes each, and the array between."""
    fact = summary(*filled(MIB, 3), more=SUM)["memory"]
    assert fact.text == "Memory peaks at 1.0 MB; the largest buffer then, 1.0 MB, is made on line 3."
    assert fact.share == pytest.approx(0.5, abs=0.001)
    assert summary(*filled(MIB), more=SUM)["memory"].text == (
        "Memory peaks at 1.0 MB; the largest buffer then, 1.0 MB."
    )
    assert "memory" not in summary(*filled(MIB - 3), more=SUM)
    assert "memory" in summary(*filled(MIB - 2), more=SUM)


def test_the_largest_buffer_can_be_an_argument_and_that_be_donated():
    lines = [f"x = f32[{MIB}]{{0}} parameter(0)", f"ROOT n = f32[{MIB}]{{0}} negate(x){at(3)}"]
    facts = summary(*lines)
    assert facts["donation"].text == "The argument x of 1.0 MB could be donated: an output has its shape and dtype."
    assert facts["donation"].share == pytest.approx(0.5)
    assert summary(*lines, attributes=", num_partitions=2")["memory"].text.startswith(
        "Memory peaks at 2.1 MB on each of 2 devices; "
    )
    two = [
        f"x = f32[{MIB}]{{0}} parameter(0)", f"y = f32[{2 * MIB}]{{0}} parameter(1)",
        f"m = f32[{MIB}]{{0}} negate(x)", f"n = f32[{2 * MIB}]{{0}} negate(y)",
        f"ROOT r = (f32[{MIB}]{{0}}, f32[{2 * MIB}]{{0}}) tuple(m, n)",
    ]  # fmt: skip
    facts = summary(*two)
    assert facts["donation"].text == "2 arguments of 3.1 MB could be donated: outputs have the same shapes and dtypes."
    assert facts["donation"].share == pytest.approx(0.5)
    reads = [f"x = f32[{2 * MIB}]{{0}} parameter(0)", "z = f32[] constant(0)"]
    facts = summary(*reads, "ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum", more=SUM)
    assert facts["memory"].text == ("Memory peaks at 2.1 MB; the largest buffer then, 2.1 MB, is an argument, x.")
    assert "donation" not in facts


# What became of equations --------------------------------------------------------------------------------------------


def test_equations_that_were_eliminated_are_counted_with_their_lines():
    def one(x):
        return jnp.sin(x * 1.0)

    def two(x):
        y = jnp.sin(x * 1.0)
        return y + 0.0

    line = one.__code__.co_firstlineno
    for function, text in (
        (one, f"1 of 2 equations was eliminated, on line {line + 1}."),
        (two, f"2 of 3 equations were eliminated, on lines {line + 4} and {line + 5}."),
    ):
        capture = ex.explore(function, jnp.ones(64))
        assert len(capture.passes)
        (fact,) = [fact for fact in capture.summary if fact.kind == "eliminated"]
        assert fact.text == text
        equations = {"one": 2, "two": 3}[function.__name__]
        assert fact.share == pytest.approx((equations - 1) / equations * 0.2)


def test_narrow_products_that_run_wide_are_counted():
    def twice(x, w):
        y = x @ w
        return jnp.tanh(y) @ w

    x = jnp.ones((128, 128), "bfloat16")
    if "f32[128,128]{1,0} dot(" not in jax.jit(twice).lower(x, x).compile().as_text():
        pytest.skip("this jaxlib has a library's kernel for bf16")
    capture = ex.explore(twice, x, x)
    assert len(capture.passes)
    (fact,) = [fact for fact in capture.summary if fact.kind == "precision"]
    line = twice.__code__.co_firstlineno
    assert fact.text == f"2 bf16 products run in f32 here, of lines {line + 1} and {line + 2}."
    assert fact.share == 1.0
