"""What a capture of a padded executable says of each value: which axes are padded, with what, and what masks."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex

B, N = ex.NamedDimension("b", 1, 4, 16), ex.NamedDimension("n", 1, 4, 12)


def softmax_sum(x, w):
    return jnp.sum(jax.nn.softmax(jnp.cos(x), axis=1), axis=0) @ w.T


@pytest.fixture(scope="module")
def graph():
    args = [ex.InputInfo((B, N), "float32"), ex.InputInfo((3, N), "float32")]
    return ex.compile(softmax_sum, args=args, dynamic="pad").explore().jaxpr.graph


def test_inputs_and_results_name_the_dimension_of_each_padded_axis(graph):
    inputs = {node.scope: node.attributes for node in graph.nodes if node.op == "parameter"}
    assert inputs["x"]["padded"] == "0=b,1=n"
    assert inputs["x"]["padding"] == "0=0,1=0"
    assert inputs["w"]["padded"] == "1=n"
    assert not any("padded" in inputs[name] for name in inputs if name.startswith("sizes"))
    (summed,) = (node for node in graph.nodes if node.op == "reduce_sum" and node.type == "f32[12]")
    assert summed.attributes["padded"] == "0=n"
    (product,) = graph.where("op:dot_general")
    assert "padded" not in product.attributes  # f32[3]: the padded axis is summed over


def test_masks_say_what_they_fill_along_which_axis_and_are_found_by_a_search(graph):
    masks = {node.attributes["mask"] for node in graph.where("attr:mask")}
    assert masks >= {"1=-inf", "0=0"}  # for the maximum along n, and for the sum along b
    assert all(node.op == "select_n" for node in graph.where("attr:mask"))
    (maximum,) = graph.where("op:reduce_max")
    assert [node.attributes["mask"] for node in maximum.operands] == ["1=-inf"]
    assert maximum.operands[0].attributes["padding"] == "0=anything,1=-inf"
    # Each mask is counted by the proof, and none that isn't there.
    args = [ex.InputInfo((B, N), "float32"), ex.InputInfo((3, N), "float32")]
    assert ex.compile(softmax_sum, args=args, dynamic="pad").dynamic_report.masks == len(graph.where("attr:mask"))


def test_it_is_kept_in_files(graph, tmp_path):
    capture = ex.compile(lambda x: jnp.cos(x).sum(), args=[ex.InputInfo((N,), "float32")], dynamic="pad").explore()
    capture.save(tmp_path / "sum.capture")
    (mask,) = ex.load(tmp_path / "sum.capture").jaxpr.graph.where("attr:mask")
    assert mask.attributes["mask"] == "0=0"


def test_what_is_not_padded_says_nothing():
    capture = ex.compile(lambda x: x.sum(), args=[ex.InputInfo((N,), "float32")]).explore()
    assert not capture.jaxpr.graph.where("attr:padded or attr:mask")


def test_a_loops_carry_is_marked_inside_of_its_body():
    def total(x):
        return jax.lax.scan(lambda carry, row: (carry + row, carry.max()), jnp.zeros(x.shape[1]), x)

    graph = ex.compile(total, args=[ex.InputInfo((8, N), "float32")], dynamic="pad").explore().jaxpr.graph
    (maximum,) = graph.where("op:reduce_max")
    assert maximum.operands[0].attributes["mask"] == "0=-inf"
    assert maximum.group.parent >= 0
