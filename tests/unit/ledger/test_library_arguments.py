"""Arguments that libraries hand to `jax.jit` in a form of their own are named as their user wrote them."""

import flax.linen as nn
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax.training.train_state import TrainState

import explorer as ex
from explorer.model.events.ledger import Ledger

X = np.ones((2, 4), np.float32)


def recompiled(function, *calls):
    with ex.watch() as ledger:
        for call in calls:
            function(*call)
    assert ledger.faults == ()
    return next(event.reason for event in reversed(ledger.events) if not event.key.function.eager)


MODEL, SGD = nn.Dense(2), optax.sgd(0.1)


def state(**changed):
    given = {"apply_fn": MODEL.apply, "params": {"kernel": X}, "tx": SGD} | changed
    return TrainState.create(**given)


@pytest.mark.parametrize(
    ("field", "changed"), [("tx", lambda: optax.sgd(0.1)), ("apply_fn", lambda: nn.Dense(2, name="head").apply)]
)
def test_a_field_of_a_train_state_that_was_made_anew_is_named_though_it_prints_alike(field, changed):
    norm = jax.jit(lambda state: optax.tree.norm(state.params))
    reason = recompiled(norm, [state()], [state(**{field: changed()})])
    assert (reason.kind, reason.leaf) == ("structure", f"state.{field}")
    assert f"make `state.{field}` once" in reason.fix


class Net(nnx.Module):
    def __init__(self, width=3):
        self.layers = nnx.List([nnx.Linear(4, width, rngs=nnx.Rngs(0))])
        self.drop = nnx.Dropout(0.5, rngs=nnx.Rngs(1))

    def __call__(self, x):
        return self.drop(self.layers[0](x))


def forward():
    return nnx.jit(lambda model, x: model(x))


def test_pairs_that_a_class_of_ones_own_keeps_are_no_attributes_of_it():
    class System:
        def __init__(self, state, settings):
            self.state, self.settings = state, settings

    jax.tree_util.register_pytree_node(
        System,
        lambda system: ((system.state,), tuple(system.settings.items())),
        lambda settings, children: System(children[0], dict(settings)),
    )
    step = jax.jit(lambda system: system.state * system.settings["dt"])
    with ex.watch() as ledger:
        step(System(jnp.ones(2), {"dt": 0.1}))
        step(System(jnp.ones(2), {"dt": 0.2}))
    (event,) = ledger.recompiles(step)
    assert (event.reason.kind, event.reason.leaf) == ("structure", "system")
    assert "0.1" in event.reason.text


def test_an_array_of_an_nnx_module_has_its_path():
    model, half = Net(), Net()
    nnx.update(half, jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), nnx.state(half, nnx.Param)))
    reason = recompiled(forward(), [model, X], [half, X])
    assert (reason.kind, reason.leaf) == ("dtype", "model.layers[0].bias")


def test_a_flag_of_an_nnx_module_is_named():
    evaluated = Net()
    evaluated.eval()
    reason = recompiled(forward(), [Net(), X], [evaluated, X])
    assert (reason.kind, reason.leaf, reason.before, reason.after) == (
        "structure", "model.drop.deterministic", "False", "True",
    )  # fmt: skip


def test_the_optimizer_of_an_nnx_module_that_was_made_anew_is_named():
    @nnx.jit
    def step(model, optimizer, x):
        optimizer.update(model, nnx.grad(lambda model: model(x).sum())(model))

    def pair():
        model = Net()
        return model, nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param), X

    reason = recompiled(step, pair(), pair())
    assert (reason.kind, reason.leaf) == ("structure", "optimizer.tx")


def test_a_pmap_is_of_its_users_function_and_arguments():
    made = lambda: jax.pmap(lambda v, by=1: v * by)  # noqa: E731
    with ex.watch() as ledger:
        for _ in range(2):
            made()(X[:1], by=X[:1])
    function = ledger.events[-1].key.function
    assert (function.name, function.file, function.eager) == ("<lambda>", __file__, False)
    assert [leaf.path for leaf in ledger.events[-1].key.leaves] == ["v", "by"]
    (again,) = ledger.recompiles()
    assert (again.reason.kind, again.reason.leaf) == ("function", "")
    assert "jax.pmap(…)" in again.reason.text
    assert f"test_library_arguments.py, line {function.line}" in again.reason.text


def test_the_fields_of_a_class_survive_a_file(tmp_path):
    norm = jax.jit(lambda state: optax.tree.norm(state.params))
    with ex.watch() as ledger:
        norm(state())
    ledger.save(tmp_path / "ledger.jsonl")
    tree = Ledger.load(tmp_path / "ledger.jsonl").events[0].key.tree
    assert tree is ledger.events[0].key.tree
    (node,) = [node for node in tree.distinct() if node.name == "TrainState"]
    assert [*dict.fromkeys(step for step, _, _ in node.fields)] == ["", ".apply_fn", ".tx"]
