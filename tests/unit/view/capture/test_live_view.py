"""What Python shows in the live views of a capture, and what it hears from them."""

import gc
import weakref

import jax.numpy as jnp
import pytest

import explorer as ex


def curve(x):
    return jnp.tanh(x) * jnp.exp(x) + 1


@pytest.fixture
def capture():
    return ex.explore(curve, jnp.ones(8))


@pytest.fixture
def widget(capture):
    return capture.widget()


def test_what_is_set_before_the_view_is_shown_is_there_when_it_is(capture):
    capture.view.highlight = "op:tanh"
    shown = capture.widget().shown
    assert shown["highlight"] == {"stage": "hlo", "nodes": [node.index for node in capture.hlo.graph.where("op:tanh")]}


def test_a_highlight_is_a_query_nodes_or_one_node_and_goes_to_their_stage(capture, widget):
    (tanh,) = capture.jaxpr.graph.where("op:tanh")
    for shown in (tanh, [tanh], capture.jaxpr.graph.where("op:tanh")):
        widget.highlight = shown
        assert widget.shown["stage"] == capture.view.stage == "jaxpr"
        assert widget.shown["highlight"] == {"stage": "jaxpr", "nodes": [tanh.index]}
        assert widget.highlight == capture.view.highlight == (tanh,)
    widget.highlight = "op:exp"  # a query is of the stage that is shown
    assert [node.op for node in widget.highlight] == ["exp"]
    widget.highlight = None
    assert widget.shown["highlight"] is None


def test_a_filter_keeps_nodes_and_none_keeps_all(capture, widget):
    capture.view.filter = "op:fusion or op:tanh"
    assert widget.shown["filter"]["nodes"] == [node.index for node in capture.view.filter] != []
    capture.view.filter = None
    assert widget.shown["filter"] is None


def test_a_colour_is_a_column_or_numbers_of_the_users_own(capture, widget):
    widget.colour = "bytes"
    assert widget.shown["colour"] == {"by": "bytes"}
    (tanh,) = capture.jaxpr.graph.where("op:tanh")
    capture.view.color = {tanh: 2, capture.jaxpr.graph.where("op:exp")[0]: float("nan")}
    colour = widget.shown["colour"]
    assert (colour["by"], colour["stage"], colour["values"]) == ("python", "jaxpr", [2.0, None])
    capture.view.stage = "jaxpr"
    capture.view.colour = {tanh.name: 3}
    assert (widget.shown["colour"]["nodes"], widget.shown["colour"]["values"]) == ([tanh.index], [3.0])
    capture.view.colour = None
    assert "colour" not in widget.shown


def test_every_live_view_of_a_capture_shows_the_same(capture):
    one, other = capture.widget(), capture.widget()
    one.highlight = "op:tanh"
    assert one.shown == other.shown


def test_what_is_no_node_of_the_capture_is_refused_with_a_hint(capture, widget):
    other = ex.explore(curve, jnp.ones(4))
    with pytest.raises(ex.errors.ViewError, match="nodes are of another capture"):
        widget.highlight = other.hlo.graph.where("op:tanh")
    with pytest.raises(ex.errors.ViewError, match="nodes are of several stages"):
        widget.filter = [*capture.hlo.graph.nodes, *capture.jaxpr.graph.nodes]
    with pytest.raises(ex.errors.ViewError, match=r"got int: 7\. Hint: "):
        widget.highlight = [7]
    with pytest.raises(ex.errors.QueryError):
        widget.highlight = "bytes >"
    with pytest.raises(KeyError, match="no stage 'llvm'"):
        widget.stage = "llvm"
    assert widget.shown["highlight"] is None


def test_the_view_says_in_words_what_is_shown(capture, widget):
    assert repr(capture.view) == "View(curve, hlo: 0 selected)"
    widget.selected = {"stage": "jaxpr", "nodes": [0, 1]}
    capture.view.filter = "op:tanh"
    capture.view.colour = "flops"
    assert repr(capture.view) == "View(curve, jaxpr: 2 selected, 1 kept, coloured by flops)"


def test_the_wire_of_a_display_does_not_keep_its_capture_alive(monkeypatch):
    monkeypatch.setattr("explorer.view.capture.in_kernel", lambda: True)
    capture = ex.explore(curve, jnp.ones(3))
    assert "text/html" in capture._repr_mimebundle_()
    (wire,) = capture.view._wires
    capture.view.highlight = "op:tanh"
    assert wire.shown["highlight"]["nodes"]
    known = weakref.ref(capture)
    del capture
    gc.collect()
    assert known() is None
    assert wire.capture
