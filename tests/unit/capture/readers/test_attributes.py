"""What readers keep of an instruction beside its operands, in each stage's notation."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.hlo_attributes import read_attributes, read_header
from explorer.capture.readers.jaxpr import read_jaxpr
from explorer.capture.readers.stablehlo import read_stablehlo


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        (", dimensions={0,1}, to_apply=%add.3", [("dimensions", "{0,1}"), ("to_apply", "add.3")]),
        (", calls=%f, kind=kLoop", [("calls", "f"), ("kind", "kLoop")]),
        (', custom_call_target="a\\"b, c=d"', [("custom_call_target", 'a"b, c=d')]),
        (", groups=[2,4]<=[4,2]T(1,0), channel_id=1", [("groups", "[2,4]<=[4,2]T(1,0)"), ("channel_id", "1")]),
        (
            ", replica_groups=mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b':(1)2}, dimensions={1}",
            [("replica_groups", "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b':(1)2}"), ("dimensions", "{1}")],
        ),
        (", branch_computations={%a, /*index=1*/%b}", [("branch_computations", "{a, b}")]),
        (
            ', backend_config="{\\"known_trip_count\\":{\\"n\\":\\"7\\"}}"',
            [("known_trip_count", "7"), ("backend_config", '{"known_trip_count":{"n":"7"}}')],
        ),
        (
            ', calls=%f, backend_config={"fusion_config":{"kind":"a, {b"},"partitions":["2"]}, kind=kLoop',
            [
                ("calls", "f"),
                ("backend_config", '{"fusion_config":{"kind":"a, {b"},"partitions":["2"]}'),
                ("kind", "kLoop"),
            ],
        ),
        (", deep={{{{{%a, 1}}}}}, last=(2, [3])", [("deep", "{{{{{%a, 1}}}}}"), ("last", "(2, [3])")]),
        (", slice={[0:8], [0:4:2]}, damaged={", [("slice", "{[0:8], [0:4:2]}"), ("damaged", "{")]),
    ],
)  # fmt: skip
def test_pairs_of_an_hlo_instruction(text, pairs):
    assert read_attributes(text) == pairs


def test_the_header_of_a_module():
    line = "HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) }, num_partitions=4"
    assert read_header(line) == {
        "name": "jit_f",
        "is_scheduled": "true",
        "input_output_alias": "{ {0}: (1, {}, may-alias) }",
        "num_partitions": "4",
    }
    assert read_header("ENTRY main {") == {}


HLO = """HloModule m, is_scheduled=true
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b), metadata={op_name="jit(f)/add" stack_frame_id=3}
}
ENTRY %main (x: f32[8]) -> f32[] {
  %x = f32[8]{0:T(256)S(1)} parameter(0), sharding={devices=[2]<=[2]}, metadata={op_name="x"}
  %zero = f32[] constant(0)
  ROOT %all = f32[] reduce(%x, %zero), dimensions={0}, to_apply=%add, metadata={op_name="sum"}, backend_config={"a":"}"}
}
"""


def test_attributes_of_a_module_and_of_its_nodes():
    graph = read_hlo(HLO)
    assert graph.attributes == {"name": "m", "is_scheduled": "true"}
    assert graph["sum"].attributes == {"root": "true"}
    assert graph["x"].attributes == {"parameter_number": "0", "sharding": "{devices=[2]<=[2]}"}
    assert graph["zero"].attributes == {"literal": "0"}
    assert graph["all"].attributes == {
        "root": "true", "dimensions": "{0}", "to_apply": "add", "backend_config": '{"a":"}"}',
    }  # fmt: skip
    total = graph["all"].index
    assert [(call.node, call.role, graph.groups[call.group].name) for call in graph.calls] == [
        (total, "to_apply", "add")
    ]


def test_computations_written_out_inside_an_instruction_are_called_by_it():
    capture = ex.open_hlo(
        "ENTRY main {\n  x = f32[8] parameter(0)\n  z = f32[] constant(0)\n"
        "  ROOT t = f32[] reduce(x, z), dimensions={0}, to_apply={\n"
        "    a = f32[] parameter(0)\n    b = f32[] parameter(1)\n"
        '    ROOT s = f32[] add(a, b)\n  }, metadata={op_name="sum"}\n}\n'
    )
    graph = capture.hlo.graph
    assert [call.role for call in graph.calls] == ["to_apply"]
    assert graph["t"].attributes["dimensions"] == "{0}"


def test_the_jaxprs_parameters_literals_and_results():
    def f(x):
        q, r = jnp.linalg.qr(x)
        return r, jax.lax.scan(lambda c, y: (c + y, c * 2.0), x[0], x, length=4)[0], q.sum(axis=1)

    _, graph = read_jaxpr(jax.make_jaxpr(f)(jnp.ones((4, 4))))
    by_op = {node.op: node.attributes for node in graph.nodes}
    assert by_op["scan"]["length"] == "4"
    assert by_op["mul"]["literals"] == "1=2.0:f32[]"
    assert (by_op["reduce_sum"]["axes"], by_op["reduce_sum"]["returned"]) == ("(1,)", "2")
    qr = next(node for node in graph.nodes if node.op in ("jit", "pjit"))
    assert qr.attributes["returned"] == "0=1"  # the second result of what it calls


def test_pretty_and_generic_stablehlo():
    def f(x, w):
        return jnp.concatenate([x[0:2], w]) @ w, x > 0.0, jnp.linalg.qr(x)[1]

    low = jax.jit(f, donate_argnums=0).lower(jnp.ones((4, 4)), jnp.ones((4, 4)))
    pretty = read_stablehlo(low.as_text())
    by_op = {}
    for node in pretty.nodes:
        by_op.setdefault(node.op.rpartition(".")[2], node.attributes)
    assert pretty.attributes["name"] == "jit_f"
    assert by_op["slice"] == {"slice": "[0:2, 0:4]"}
    assert by_op["concatenate"] == {"dim": "0"}
    assert by_op["dot_general"]["contracting_dims"] == "[1] x [0]"
    assert by_op["compare"]["comparison_direction"] == "GT"
    assert {"call_target_name"} <= {key for node in pretty.nodes for key in node.attributes}
    generic = read_stablehlo(low.compiler_ir().operation.get_asm(print_generic_op_form=True))
    by_op = {node.op.rpartition(".")[2]: node.attributes for node in generic.nodes}
    assert by_op["concatenate"] == {"dimension": "0"}
    assert "lhs_contracting_dimensions = [1]" in by_op["dot_general"]["dot_dimension_numbers"]


def test_attributes_travel_with_a_capture(tmp_path):
    capture = ex.explore(lambda x: jnp.sort(x @ x), jnp.ones((8, 8)))
    capture.save(tmp_path / "f.capture")
    loaded = ex.load(tmp_path / "f.capture")
    for mine, other in zip(capture.stages, loaded.stages, strict=True):
        assert [dict(node.attributes) for node in mine.graph.nodes] == [
            dict(node.attributes) for node in other.graph.nodes
        ]
        assert mine.graph.attributes == other.graph.attributes
