"""HLO in the spellings that people use: printed again by XLA, and then read as XLA's own parser reads it."""

import pytest
from jaxlib import _hlo

import explorer as ex
from explorer._jax.binary_reader import printed_hlo
from explorer.capture.readers.hlo import read_hlo
from explorer.model.shardings import DeviceMesh, parse_groups
from tests.corpus_hlo.compare import differences
from tests.corpus_hlo.xla import computations


def assert_read_alike(text):
    """What XLA prints of a text is read as XLA reads it, and nothing of the text is lost."""
    printed = printed_hlo(text.encode())
    graph = read_hlo(printed)
    expected = computations(_hlo.hlo_module_from_text(printed).as_serialized_hlo_module_proto())
    assert differences(graph, expected) == []
    assert graph.unread == ()
    entry = list(_hlo.hlo_module_from_text(text).computations())[-1]
    assert {instruction.name for instruction in entry.instructions()} <= set(graph.names)
    return graph


SPELLINGS = {
    "an operand inside an operand": """
        HloModule m
        ENTRY e {
          a = s32[] parameter(0)
          ROOT is = pred[] compare(a, s32[] constant(16)), direction=LT
        }""",
    "operands inside operands, without types where XLA infers them": """
        HloModule m
        ENTRY e {
          a = f32[2,3]{1,0} parameter(0)
          ROOT r = add(negate(f32[2,3]{1,0} a), multiply(a, f32[2,3] negate(%a
              )))
        }""",
    "names with % and without, types before some": """
        HloModule m
        ENTRY %e {
          %a = f32[4] parameter(0)
          b = f32[4]{0} parameter(1)
          c = f32[4] add(%a, b)
          d = f32[4] add(a,%b)
          ROOT %t = (f32[4], f32[4]) tuple(f32[4]{0} c, %d)
        }""",
    "a computation on one line": """
        HloModule m
        sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
        ENTRY e { x = f32[8] parameter(0) z = f32[] constant(0)
          ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum }""",
    "two instructions on a line, the second after attributes": """
        HloModule m
        ENTRY e {
          a = f32[8,2] parameter(0), metadata={op_name="left"}   b = f32[2,8] transpose(a), dimensions={1,0}
          c = f32[8,2] negate(a) ROOT d = f32[8,2] abs(c)
        }""",
    "all on one line": "HloModule m ENTRY e { a = f32[] parameter(0) ROOT b = f32[] negate(a) }",
    "nothing indented": "HloModule m\nENTRY e {\na = f32[] parameter(0)\nROOT b = f32[] negate(a)\n}\n",
    "a header over several lines": """
        HloModule m, is_scheduled=true,
          entry_computation_layout={
            (f32[8]{0}, /*index=1*/ (s32[], f32[]))
            ->f32[8]{0}
          },
          frontend_attributes={fingerprint="a { b", other={"c":"d }"}}

        ENTRY e (p: f32[8], q: (s32[], f32[])) -> f32[8] {
          p = f32[8]{0} parameter(0)
          q = (s32[], f32[]) parameter(1)
          ROOT r = f32[8]{0} negate(p)
        }""",
    "a tuple's type over several lines": """
        HloModule m
        ENTRY e {
          p = (f32[8]{0},
               s32[], /*index=2*/
               (pred[],   // whether
                f32[2, 3] {1, 0})
              ) parameter(0)
          ROOT r = f32[8]{0} get-tuple-element(p), index=0
        }""",
    "a signature over several lines": """
        HloModule m
        ENTRY
        %e.1 (
          a: f32[4],
          b: (f32[4], s32[])
        ) -> f32[4]
        {
          a = f32[4] parameter(0)
          b = (f32[4], s32[]) parameter(1)
          ROOT c = f32[4] negate(a)
        }""",
    "comments": """
        // ENTRY no { x = f32[] parameter(0) }
        HloModule m // , is_scheduled=true
        /* a = f32[] parameter(0)
           b = f32[] negate(a) */
        ENTRY e { // begins
          a = f32[] /* of one */ parameter(0) // first
          b = f32[] negate(a /* , c */), metadata={op_name="x // y /* z"} // } ends
          /* c = f32[] negate(b) */ ROOT d = f32[] add(a, // and
            b)
        } // ends""",
    "attributes over several lines": """
        HloModule m
        ENTRY e {
          a = f32[1,3,3,1] parameter(0)
          k = f32[2,2,1,1] parameter(1)
          ROOT c = f32[1,2,2,1] convolution(a, k)
            , window={
                size=2x2
              },
            dim_labels=b01f_01io->b01f
            , metadata={op_type="conv"
                        op_name="net/conv"}
        }""",
    "a configuration in braces": """
        HloModule m
        ENTRY e {
          a = f32[] parameter(0)
          ROOT c = f32[] custom-call(a), custom_call_target="do", backend_config={"a": {"b": ["}", "\\"{"],
            "c = f32[] negate(a)": {"d": {"e": {"f": {"g": {"h": {}}}}}}}}, metadata={op_name="after"}
        }""",
    "a configuration in a string": """
        HloModule m
        ENTRY e {
          a = f32[] parameter(0)
          ROOT c = f32[] custom-call(a), custom_call_target="do",
            backend_config="to_apply=%e, metadata={op_name=\\"no\\"}
              d = f32[] negate(a)"
        }""",
    "metadata inside a sharding": """
        HloModule m
        ENTRY e {
          a = f32[4] parameter(0), sharding={maximal device=0 metadata={op_name="not this"}}, metadata={op_name="this"}
          ROOT b = f32[4] negate(a), sharding={replicated metadata={op_name="nor this"}}
        }""",
    "computations written out where they are called": """
        HloModule m
        ENTRY e {
          x = f32[8] parameter(0)
          is = s32[] parameter(1)
          zero = f32[] constant(0)
          sum = f32[] reduce(x, zero), dimensions={0}, to_apply={ a = f32[] parameter(0) b = f32[] parameter(1)
            ROOT c = f32[] add(a, b) }, metadata={op_name="sum"}
          ROOT r = f32[] conditional(is, sum, zero), branch_computations={
            { p = f32[] parameter(0) ROOT q = f32[] negate(p) },
            { ROOT s = f32[] parameter(0) }
          }
        }""",
    "loops inside each other": """
        HloModule m
        ENTRY e {
          p = (s32[]) parameter(0)
          ROOT w = (s32[]) while(p), body={
            q = (s32[]) parameter(0)
            ROOT v = (s32[]) while(q), condition={
              a = (s32[]) parameter(0)
              ROOT less = pred[] compare(s32[] constant(1), s32[] constant(3)), direction=LT
            }, body={ ROOT b = (s32[]) parameter(0) }
          }, condition={
            c = (s32[]) parameter(0)
            ROOT true.0 = pred[] constant(true)
          }
        }""",
    "an asynchronous operation by its own name": """
        HloModule m
        ENTRY e {
          a = f32[8] parameter(0)
          s = ((f32[8]), f32[8], u32[]) negate-start(a), metadata={op_name="n"}
          u = ((f32[8]), f32[8], u32[]) negate-update(s)
          ROOT d = f32[8] negate-done(u)
        }""",
    "an asynchronous call that says what it runs, on another thread": """
        HloModule m
        async { p = f32[8] parameter(0) ROOT n = f32[8] negate(p) }, execution_thread="other"
        ENTRY e {
          a = f32[8] parameter(0)
          s = ((f32[8]), f32[8], u32[]) async-start(a), async_execution_thread="other", calls=async
          ROOT d = f32[8] async-done(s)
        }""",
    "constants of every kind": """
        HloModule m
        ENTRY e {
          a = f32[2,2] constant({ { 1, -2e3 },
                                  { nan, -inf } /* all */ })
          b = c64[2] constant({(1, 2), (3, 4)})
          c = (f32[], s32[2]) constant((0.5, {1, 2}))
          d = pred[] constant(false)
          ROOT t = () tuple()
        }""",
    "a literal as an attribute": """
        HloModule m
        ENTRY e {
          a = f32[2] parameter(0)
          b = f32[2] custom-call(a), custom_call_target="x", literal=s32[2]{0} {1, 2}
          c = f32[2] custom-call(a), custom_call_target="y", literal=pred[] true
          ROOT d = f32[2] custom-call(a), literal=( s32[] 1, f32[] 2 ), custom_call_target="z"
        }""",
    "groups with spaces": """
        HloModule m, replica_count=4
        add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
        ENTRY e {
          a = f32[2] parameter(0)
          ROOT b = f32[2] all-reduce(a), replica_groups=[2,2] <= [4], to_apply= add
        }""",
    "letters escaped": r"""
        HloModule m
        ENTRY e {
          ROOT a = f32[] parameter(0), metadata={op_name="state[\'w\']\303\251\n\"x\""}
        }""",
    "tables of stack frames without lines of their own": """
        HloModule m FileNames 1 "f.py" FunctionNames 1 "f" FileLocations
        1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=2 end_column=9} StackFrames
        1 {file_location_id=1 parent_frame_id=1}
        ENTRY e { ROOT a = f32[] parameter(0), metadata={op_name="x" stack_frame_id=1} }""",
    "a type with a tiled layout before an operand": """
        HloModule m
        ENTRY e {
          a = (f32[8,128]{1,0:T(8,128)}, u32[]{:T(128)S(2)}) parameter(0)
          b = f32[8,128]{1,0:T(8,128)} get-tuple-element((f32[8,128]{1,0:T(8,128)}, u32[]{:T(128)S(2)}) %a), index=0
          ROOT c = f32[8,128]{1,0:T(8,128)} add(f32[8,128]{1,0:T(8,128)} b, f32[8,128]{1,0:T(8,128)} negate(b))
        }""",
    "equal names in two computations": """
        HloModule m
        f { x = f32[] parameter(0) ROOT y = f32[] negate(x) }
        ENTRY e { x = f32[] parameter(0) ROOT y = f32[] call(x), to_apply=f }""",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_read_as_xla_reads_it(spelling):
    assert_read_alike(SPELLINGS[spelling])


def test_a_text_is_shown_as_xla_prints_it_with_a_note():
    capture = ex.open_hlo(SPELLINGS["operands inside operands, without types where XLA infers them"])
    assert sorted(capture.hlo.graph.names) == ["a", "multiply.anon", "negate.anon", "negate.anon.1", "r"]
    assert [o.name for o in capture.hlo.graph["r"].operands] == ["negate.anon", "multiply.anon"]
    assert capture.hlo.text.splitlines()[0].startswith("HloModule m, entry_computation_layout")
    assert "as the compiler prints it" in capture.environment["text"]
    assert not capture.failure


def test_a_text_that_xla_refuses_is_shown_as_it_is_with_the_reason():
    text = """HloModule m
ENTRY e {
  a = f32[] parameter(0)
  b = f32[] add(a, what is this)
  c = f32[] add(a, a), what is this
  d = f32[] negate(a), metadata={op_name="never closed}
  // nothing
  f = f32[] negate(a),
  ROOT i = f32[] abs(a)
}
}
"""
    capture = ex.open_hlo(text)
    assert capture.hlo.text == text
    assert capture.hlo.graph.names == ["a", "i"]
    assert capture.hlo.graph.unread == (3, 4, 5, 7, 10)
    assert capture.failure.startswith("5 lines unread; XLA's parser says of line 4: ")


def test_each_of_two_modules_has_its_own_stacks():
    def module(file):
        return (
            f'HloModule m\nFileNames\n1 "{file}"\n\nFunctionNames\n1 "f"\n\nFileLocations\n'
            "1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=0 end_column=1}\n\nStackFrames\n"
            "1 {file_location_id=1 parent_frame_id=1}\n\n"
            'ENTRY e {\n  ROOT a = f32[] parameter(0), metadata={op_name="x" stack_frame_id=1}\n}\n\n'
        )

    graph = read_hlo(module("one.py") + module("two.py"))
    assert [[frame.file for frame in node.source] for node in graph.nodes] == [["one.py"], ["two.py"]]


def test_lines_that_say_nothing_are_not_unread():
    graph = read_hlo("# of a dump\n\n// by hand\nENTRY e {\n\n  ROOT a = f32[] parameter(0)\n\t\n}\n\n")
    assert graph.unread == ()


COLLECTIVE = """
HloModule m, num_partitions=8
sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
ENTRY e {{
  x = f32[8,4]{{1,0}} parameter(0), sharding={sharding}
  ROOT r = f32[8,4]{{1,0}} all-reduce(x), replica_groups={groups}, channel_id=1, to_apply=sum
}}"""


@pytest.mark.parametrize("groups", [
    "[4,2]<=[8]", "[2,4] <= [4,2] T(1,0)", "[2,4]<= [4,2]T (1,0)", "[ 2, 4 ] <=[4 ,2] T( 1, 0 )",
    "[2,4]<=[4,2] /*c*/ T(1,0)", "{{0, 1},{2,3}, {4,5},{6,7}}",
])  # fmt: skip
@pytest.mark.parametrize("sharding", [
    "{devices=[4,1,2] <= [8] last_tile_dim_replicate}", "{devices=[2,1,4]<=[4,2] T(1,0) last_tile_dim_replicate}",
    "{devices=[4, 2] 0,2, 4,6,1,3,5,7}",
])  # fmt: skip
def test_devices_are_the_same_however_their_numbers_are_spaced(groups, sharding):
    text = COLLECTIVE.format(groups=groups, sharding=sharding)
    ours, printed = assert_read_alike(text), read_hlo(_hlo.hlo_module_from_text(text).to_string())
    mesh = DeviceMesh(("a", "b"), (4, 2))
    (of_groups, of_tiles), *others = (
        (
            parse_groups(next(node.attributes["replica_groups"] for node in graph.nodes if node.op == "all-reduce")),
            mesh.split(next(node.attributes["sharding"] for node in graph.nodes if "sharding" in node.attributes), 2),
        )
        for graph in (printed, ours)
    )
    assert of_groups
    assert of_tiles is not None
    assert others == [(of_groups, of_tiles)]
    assert next(node.attributes["to_apply"] for node in ours.nodes if node.op == "all-reduce") == "sum"
