"""A reason names what changed against the nearest earlier call, where, and what to write to stop it."""

import re
from collections import namedtuple
from dataclasses import replace

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.recompiles.fixes import RESHAPES
from explorer.analysis.recompiles.reasons import explain
from explorer.model.events.event import REASONS
from explorer.model.events.key import LEAF, Function, Key, Leaf, Static, TreeNode
from tests.support.pytrees import call_tree, paths_of

State = namedtuple("State", "a b")


@jax.tree_util.register_pytree_node_class
class Net:
    """One array or tree, with what is kept beside it."""

    def __init__(self, weight, kept):
        self.weight, self.kept = weight, kept

    def tree_flatten(self):
        return (self.weight,), self.kept

    @classmethod
    def tree_unflatten(cls, kept, children):
        return cls(*children, kept)


ALL = frozenset({"trace", "lower", "compile"})
LOWERED = frozenset({"lower", "compile"})
STEP = Function("step", "train.py", 3, identity=1, wrapper=1)


def leaf(path="x", shape=(32, 128), dtype="float32", **more):
    return Leaf(path, shape, dtype, **{"committed": False, "devices": ("cpu:0",), **more})


def call(*leaves, tree=None, function=STEP, **more):
    tree = tree if tree is not None else call_tree({str(i): 0 for i in range(len(leaves))})
    return Key(function, leaves, tree=tree, **more)


def given_as(path, number, dtype="float32"):
    return Leaf(path, (), dtype, weak=True, given=number)


def test_the_first_call_is_the_first():
    reason = explain(call(leaf()), [], ALL)
    assert (reason.kind, reason.leaf, reason.fix) == ("first", "", "")


def test_another_size_is_named_with_its_dimension():
    reason = explain(call(leaf(shape=(33, 128))), [call(leaf())], ALL)
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("shape", "x.shape[0]", "32", "33")
    assert 'InputInfo((NamedDimension("batch", 32, 33, 33), 128), jnp.float32)' in reason.fix


def test_of_forty_leaves_that_share_a_batch_one_is_named_and_the_others_counted():
    def batch(rows):
        return call(*(leaf(f"batch['x{i}']", (rows, i)) for i in range(40)), leaf("rate", (), "float32"))

    reason = explain(batch(33), [batch(32)], ALL)
    assert reason.leaf == "batch['x0'].shape[0]"
    assert "and 39 more leaves" in reason.text


def test_the_batch_that_all_share_is_named_before_an_odd_one():
    old = call(leaf("n", (5,)), leaf("batch['x']", (32, 2)), leaf("batch['y']", (32,)))
    new = call(leaf("n", (6,)), leaf("batch['x']", (33, 2)), leaf("batch['y']", (33,)))
    reason = explain(new, [old], ALL)
    assert reason.leaf == "batch['x'].shape[0]"
    assert "`n.shape[0]` changed too" in reason.text


def test_sizes_so_far_are_told():
    earlier = [call(leaf(shape=(rows, 128))) for rows in (8, 24, 16, 64, 40)]
    reason = explain(call(leaf(shape=(32, 128))), earlier, ALL)
    assert "its 6th size (8, 24, 16, 64, …)" in reason.text
    padded, compiled = reason.fix.splitlines()
    assert padded.startswith("x = jnp.pad(x, [(0, -x.shape[0] % 16), (0, 0)])  # 4 sizes at most for 8 … 64")
    described = 'args=[InputInfo((NamedDimension("batch", 8, 32, 64), 128), jnp.float32)]'
    assert f'ex.compile(step, {described}, dynamic="auto")' in compiled
    assert "where padding is proven exact (else one for each)" in compiled


def test_a_cache_that_grows_is_to_be_allocated_once():
    earlier = [call(leaf("cache", (1, length, 64)), grown=("cache",)) for length in (5, 6, 7)]
    reason = explain(call(leaf("cache", (1, 8, 64)), grown=("cache",)), earlier, ALL)
    assert reason.leaf == "cache.shape[1]"
    assert "cache = jnp.zeros((1, 16, 64), jnp.float32)" in reason.fix
    assert "jax.lax.dynamic_update_slice(cache, new, (0, n, 0))" in reason.fix


def test_a_size_that_grows_by_one_is_no_cache_unless_the_function_returns_it_longer():
    earlier = [call(leaf("window", (length, 64))) for length in (5, 6, 7)]
    reason = explain(call(leaf("window", (8, 64))), earlier, ALL)
    assert reason.fix.startswith("window = jnp.pad(window, [(0, -window.shape[0] % 8), (0, 0)])  # 1 size for 5 … 8")


@pytest.mark.parametrize("sizes", [(8, 16, 24, 32), (32, 33), (7, 12, 9, 11), (1, 2, 3), (5, 9), (100, 300, 500, 700)])
def test_the_buckets_of_a_cure_are_fewer_than_the_sizes_and_no_more_than_it_says(sizes):
    *earlier, last = [call(leaf(shape=(size, 4))) for size in sizes]
    fix = explain(last, earlier, ALL).fix
    (step,) = {int(step) for step in re.findall(r"% (\d+)", fix)}
    most = int(re.search(r"# (\d+) size", fix)[1])
    assert len({-(-size // step) for size in sizes}) <= most < len(sizes)


def test_sizes_too_far_apart_are_not_padded():
    fix = explain(call(leaf(shape=(1, 4))), [call(leaf(shape=(512, 4)))], ALL).fix
    assert "too far apart to pad" in fix


def test_the_last_batch_is_to_be_padded():
    reason = explain(call(leaf("images", (17, 28, 28))), [call(leaf("images", (32, 28, 28)))], ALL)
    assert reason.fix.startswith("images = jnp.pad(images, [(0, 32 - images.shape[0]), (0, 0), (0, 0)])")
    assert "drop the last" in reason.fix


def test_a_missing_dimension_is_told_with_both_shapes():
    reason = explain(call(leaf(shape=(128,))), [call(leaf())], ALL)
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("rank", "x.ndim", "2", "1")
    assert (
        reason.fix == "`x[None]`, where its shape is (128,), would still have another size: "
        "use jax.vmap on a function of one example"
    )
    of_one = explain(call(leaf(shape=(128,))), [call(leaf(shape=(1, 128)))], ALL)
    assert of_one.fix == f"{RESHAPES}\nx = x[None]  # where its shape is (128,)"
    of_four = explain(call(leaf(shape=(128,))), [call(leaf(shape=(4, 128)))], ALL)
    assert of_four.fix.startswith(f"{RESHAPES}\nx = jnp.pad(x[None], [(0, 3), (0, 0)])  # where its shape is (128,)")


def test_another_dtype_names_the_earlier_one_to_keep():
    reason = explain(call(leaf(dtype="float16")), [call(leaf())], ALL)
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("dtype", "x", "float32", "float16")
    assert reason.fix.startswith("x = x.astype(jnp.float32)")


def test_numbers_of_two_kinds_become_one():
    reason = explain(call(given_as("rate", "float")), [call(given_as("rate", "int", "int32"))], ALL)
    assert (reason.kind, reason.leaf) == ("dtype", "rate")
    assert reason.fix.startswith("rate = float(rate)")


@pytest.mark.parametrize("first", ["number", "array"])
def test_a_weak_type_is_cured_at_the_python_number(first):
    number, array = call(given_as("loss", "float")), call(leaf("loss", ()))
    old, new = (number, array) if first == "number" else (array, number)
    reason = explain(new, [old], ALL)
    assert (reason.kind, reason.leaf) == ("weak-type", "loss")
    assert "loss = jnp.float32(loss)" in reason.fix
    assert ("from the first call on" in reason.fix) == (first == "number")
    assert "a Python float, whose type is weak" in reason.text


def test_all_numbers_that_became_arrays_are_cured():
    names = ("state.count", "state.size")
    old = call(given_as(names[0], "int", "int32"), given_as(names[1], "float"))
    reason = explain(call(leaf(names[0], (), "int32"), leaf(names[1], ())), [old], ALL)
    assert reason.fix.splitlines() == [
        f"jnp.{dtype}({name})  # in place of {name}, from the first call on: a Python {kind} has a weak type"
        for name, dtype, kind in zip(names, ("int32", "float32"), ("int", "float"), strict=True)
    ]


def test_a_tree_of_numbers_that_became_arrays_is_cured_as_one():
    old = call(given_as("sums['a']", "float"), given_as("sums['b']", "float"), leaf())
    reason = explain(call(leaf("sums['a']", ()), leaf("sums['b']", ()), leaf()), [old], ALL)
    assert reason.fix.startswith("sums = jax.tree.map(jnp.float32, sums)  # from the first call on")


def test_a_size_beside_a_type_is_cured_too():
    reason = explain(
        call(leaf("x", (16, 4)), leaf("mask", dtype="int32")), [call(leaf("x", (9, 4)), leaf("mask"))], ALL
    )
    assert (reason.kind, reason.leaf) == ("dtype", "mask")
    casts, pads, *_ = reason.fix.splitlines()
    assert casts.startswith("mask = mask.astype(jnp.float32)")
    assert pads.startswith("x = jnp.pad(x, [(0, -x.shape[0] % 8), (0, 0)])")


def test_what_was_none_is_to_be_given_in_every_call():
    old = call(tree=call_tree({"past": None}))
    reason = explain(call(leaf("past['k']"), tree=call_tree({"past": {"k": 0}})), [old], ALL)
    assert reason.fix.startswith("give `past` in every call: zeros like it (dict of 1) instead of None")


def test_a_key_added_to_a_dict_is_named_with_the_dict():
    old = call(leaf("batch['x']"), tree=call_tree({"batch": {"x": 0}}))
    new = call(leaf("batch['mask']", (32,), "bool"), leaf("batch['x']"), tree=call_tree({"batch": {"mask": 0, "x": 0}}))
    reason = explain(new, [old], ALL)
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("structure", "batch['mask']", "absent", "array")
    assert reason.text == "key 'mask' was added to `batch`"
    added = "batch.setdefault('mask', jnp.ones((32,), jnp.bool_))"
    assert reason.fix.startswith(f"if this value changes no result: {added}")
    back = explain(old, [new], ALL)
    assert (back.leaf, back.text) == ("batch['mask']", "key 'mask' was removed from `batch`")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, 0, ("mask", "None", "array")),
        (0, None, ("mask", "array", "None")),
        ([0, 0], [0, 0, 0], ("mask", "list of 2", "list of 3")),
        ((0, 0), [0, 0], ("mask", "tuple of 2", "list of 2")),
        (State(0, 0), (0, 0), ("mask", "State", "tuple of 2")),
        (Net(0, (2, "tanh")), Net(0, (2, "relu")),
         ("mask", "Net[(2, 'tanh')]", "Net[(2, 'relu')]")),
    ],
)  # fmt: skip
def test_an_argument_of_another_structure_is_named(before, after, expected):
    def key(mask):
        arguments = {"x": 0, "mask": mask}
        return call(*map(leaf, paths_of(arguments)), tree=call_tree(arguments))

    reason = explain(key(after), [key(before)], ALL)
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("structure", *expected)
    assert reason.fix


def test_an_optional_argument_is_named_when_it_is_given():
    old = call(leaf("x"), tree=call_tree({"x": 0}))
    new = call(leaf("x"), leaf("mask"), tree=call_tree({"x": 0}, {"mask": 0}))
    reason = explain(new, [old], ALL)
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("structure", "mask", "absent", "array")


def test_an_argument_given_by_name_is_another_signature():
    old = call(leaf("x"), leaf("y"), tree=call_tree({"x": 0, "y": 0}))
    new = call(leaf("x"), leaf("y"), tree=call_tree({"x": 0}, {"y": 0}))
    reason = explain(new, [old], ALL)
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("structure", "y", "positional", "keyword")


def test_a_structure_that_prints_alike_is_still_a_structure():
    reason = explain(call(leaf(), structure=2), [call(leaf(), structure=1)], ALL)
    assert reason.kind == "structure"
    assert "__eq__" in reason.fix


def test_a_tree_of_which_only_the_print_is_known_is_compared_by_paths():
    before, after = TreeNode("text", static="?1"), TreeNode("text", static="?2")
    reason = explain(call(leaf("x"), leaf("y['b']"), tree=after), [call(leaf("x"), tree=before)], ALL)
    assert (reason.kind, reason.leaf) == ("structure", "y['b']")


def test_a_static_number_that_keeps_changing_should_be_an_argument():
    def key(n):
        return call(leaf(), statics=(Static("n", str(n), "int", token=n),))

    reason = explain(key(4), [key(1), key(2), key(3)], ALL)
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("static", "n", "3", "4")
    assert "leave `n` out of static_argnames" in reason.fix
    assert "4th value" in reason.text


def test_an_argument_that_another_wrapper_takes_as_static_is_told_as_that():
    array = call(leaf(), leaf("n", (), "int32"), tree=call_tree({"x": 0, "n": 0}))
    static = call(leaf(), tree=call_tree({"x": 0}), statics=(Static("n", "2", "int", token=2),))
    reason = explain(static, [array], ALL)
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("static", "n", "an array", "2")
    back = explain(array, [static], ALL)
    assert (back.kind, back.leaf, back.before, back.after) == ("static", "n", "2", "an array")


def test_static_objects_that_print_alike_lack_equality():
    def key(number):
        return call(leaf(), statics=(Static("config", "Config(lr=0.1)", "Config", identity=number, token=number),))

    reason = explain(key(8), [key(7)], ALL)
    assert (reason.kind, reason.leaf) == ("static", "config")
    assert "Config has no __eq__" in reason.text
    assert "@dataclass(frozen=True)" in reason.fix


def test_a_static_given_by_name_is_another_signature():
    old = call(leaf(), statics=(Static("n", "2", "int", token=2),))
    new = call(leaf(), statics=(Static("n", "2", "int", token=2, keyword=True),))
    assert explain(new, [old], ALL).text == "the static argument `n` was given by position and is now given by name"


def test_a_lambda_made_in_a_loop_is_named_with_its_line_and_count():
    def key(number):
        return call(leaf(), function=Function("<lambda>", "/home/me/train.py", 12, ("lambda",), number, number))

    reason = explain(key(3), [key(1), key(2)], ALL)
    assert (reason.kind, reason.leaf) == ("function", "")
    assert "train.py, line 12" in reason.text
    assert "3 functions from there so far" in reason.text
    assert reason.fix.startswith("f = jax.jit(lambda …)")
    assert "line 12 made 3 of them" in reason.fix


@pytest.mark.parametrize(
    ("made", "written"),
    [("grad", "jax.jit(jax.grad(step))"), ("vmap", "jax.jit(jax.vmap(step))"), ("method", "jax.jit(obj.step)"),
     ("partial", "functools.partial(step"), ("", "define it outside of the function")],
)  # fmt: skip
def test_what_is_made_again_is_to_be_made_once(made, written):
    one, two = (replace(STEP, made=(made,) if made else (), identity=i) for i in (1, 2))
    reason = explain(call(leaf(), function=two), [call(leaf(), function=one)], ALL)
    assert reason.kind == "function"
    assert written in reason.fix


def test_a_derivative_is_another_program_for_other_arguments_and_not_the_cause_of_itself():
    one, two = (replace(STEP, made=("derived",), identity=i) for i in (1, 2))
    reason = explain(call(leaf(shape=(33, 128)), function=two), [call(leaf(), function=one)], ALL)
    assert (reason.kind, reason.leaf) == ("shape", "x.shape[0]")
    same = explain(call(leaf(), function=two), [call(leaf(), function=one)], ALL)
    assert same.kind == "function"
    assert "under one jax.jit" in same.fix


def test_a_decorator_of_the_users_own_is_not_said_to_be_jaxs():
    one, two = (replace(STEP, made=("timed",), identity=i) for i in (1, 2))
    reason = explain(call(leaf(), function=two), [call(leaf(), function=one)], ALL)
    assert "jax.jit(timed(step))" in reason.fix


def test_what_an_operation_outside_of_any_jit_needs_is_a_jit():
    add = Function("add", "jax/numpy.py", 9, identity=3, eager=True)
    reason = explain(call(leaf(shape=(33, 128)), function=add), [call(leaf(), function=add)], ALL)
    assert reason.fix == "put `add` under jax.jit with the code around it, and keep x.shape[0] the same"


def test_long_values_are_cut_around_what_differs():
    def key(rate):
        value = f"Config(name='a long name that says a lot', path='/data/of/some/length', rate={rate}, seed=0)"
        return call(leaf(), statics=(Static("config", value, "Config", token=hash(value)),))

    text = explain(key(0.25), [key(0.5)], ALL).text
    assert "rate=0.5" in text
    assert "rate=0.25" in text
    assert len(text) < 200


def test_a_cell_that_was_changed_and_run_again_defines_the_function_again():
    one, two = (Function("step", f"/tmp/ipykernel_71/{i}.py", i, identity=i) for i in (1, 2))
    reason = explain(call(leaf(), function=two), [call(leaf(), function=one)], ALL)
    assert reason.kind == "function"
    assert "a cell" in reason.text


def test_two_functions_of_one_name_in_a_script_are_two():
    other = replace(STEP, line=40, identity=2)
    assert explain(call(leaf(), function=other), [call(leaf())], ALL).kind == "first"


def test_a_new_function_is_named_before_a_shape_that_changed_with_it():
    new = call(leaf(shape=(33, 128)), function=replace(STEP, identity=2))
    reason = explain(new, [call(leaf())], ALL)
    assert reason.kind == "function"
    assert "`x.shape[0]` changed too" in reason.text


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"committed": True}, "committed"),
        ({"committed": True, "devices": ("cpu:1",)}, "device"),
        ({"committed": True, "sharding": "P('data',)", "devices": ("cpu:0", "cpu:1")}, "sharding"),
        ({"layout": "(1, 0)"}, "layout"),
    ],
)
def test_where_an_array_lies_is_named_when_nothing_was_traced(change, kind):
    reason = explain(call(leaf(**change)), [call(leaf())], LOWERED)
    assert (reason.kind, reason.leaf) == (kind, "x")
    assert "jax.device_put(x" in reason.fix


def test_where_an_array_lies_cannot_have_caused_a_trace():
    new, old = call(leaf(committed=True)), call(leaf())
    assert explain(new, [old], ALL).kind == "unknown"
    reshaped = call(leaf(committed=True, shape=(33, 128)))
    assert explain(reshaped, [old], ALL).kind == "shape"


def test_without_a_trace_the_call_of_equal_types_is_the_nearest():
    earlier = [call(leaf(shape=(64, 128))), call(leaf(), leaf("y")), call(leaf(shape=(8, 128), committed=True))]
    reason = explain(call(leaf(shape=(64, 128), committed=True)), earlier, LOWERED)
    assert (reason.kind, reason.leaf) == ("committed", "x")


def test_another_wrapper_that_donates_is_named():
    new = call(leaf("state"), donated=("state",), function=replace(STEP, wrapper=2))
    reason = explain(new, [call(leaf("state"))], LOWERED)
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("donation", "state", "kept", "donated")
    assert 'donate_argnames=("state",)' in reason.fix


def test_a_setting_is_named_and_set_once():
    def key(precision):
        return call(leaf(), context=(("jax_default_matmul_precision", precision), ("jax_enable_x64", "False")))

    reason = explain(key("float32"), [key("None")], ALL)
    assert (reason.kind, reason.leaf) == ("context", "jax_default_matmul_precision")
    assert 'jax.config.update("jax_default_matmul_precision", "float32") once, at the start' in reason.fix


def test_x64_is_named_before_the_types_that_follow_from_it():
    old = call(leaf(dtype="float32"), context=(("jax_enable_x64", "False"),))
    new = call(leaf(dtype="float64"), context=(("jax_enable_x64", "True"),))
    assert explain(new, [old], ALL).kind == "context"


def test_a_compiler_option_is_named():
    new = call(leaf(), options=(("xla_cpu_enable_fast_math", "True"),))
    reason = explain(new, [call(leaf())], frozenset({"compile"}))
    assert (reason.kind, reason.leaf, reason.before) == ("options", "xla_cpu_enable_fast_math", "not set")


def test_meshes_are_one_setting_to_their_user():
    def key(shape):
        named = ("abstract_mesh_context_manager", f"AbstractMesh({shape})"), ("mesh", f"Mesh({shape})")
        return call(leaf(), context=(("jax_enable_x64", "False"), *named))

    reason = explain(key("'data': 4"), [key("'data': 2")], ALL)
    assert (reason.kind, reason.leaf, reason.after) == ("context", "mesh", "Mesh('data': 4)")
    assert "changed too" not in reason.text
    assert reason.fix.startswith("jax.set_mesh(mesh)")


def test_a_typed_key_after_a_raw_one_is_another_type_and_not_another_rank():
    reason = explain(call(leaf("key", (), "key<fry>")), [call(leaf("key", (2,), "uint32"))], ALL)
    assert (reason.kind, reason.leaf) == ("dtype", "key")
    assert "jax.random.key(…)" in reason.fix


def test_a_static_with_a_hash_of_its_own_and_no_equality_is_unequal():
    def key(number):
        return call(leaf(), statics=(Static("kernel", "Gauss()", "Gauss", identity=number, token=5),))

    assert explain(key(2), [key(1)], ALL).kind == "static"


def test_the_one_class_that_keeps_a_function_is_named_where_two_structures_print_alike():
    def key(number):
        model = {"model": (Net(0, (lambda: 0,)), 0)}
        return call(*map(leaf, paths_of(model)), tree=call_tree(model), structure=number)

    reason = explain(key(2), [key(1)], ALL)
    assert (reason.kind, reason.leaf) == ("structure", "model[0]")
    assert "make the function in `model[0]` once" in reason.fix


def test_a_module_without_arrays_is_named_by_what_it_is_in():
    def key(rate):
        dropout = TreeNode("class", "Dropout", static=f"({rate},)")
        model = TreeNode("class", "Net", (".weight", ""), children=(LEAF, dropout))
        arguments = TreeNode("tuple", steps=("[0]",), children=(model,))
        tree = TreeNode("tuple", steps=("[0]", "[1]"), children=(arguments, TreeNode("dict")))
        return call(leaf("model.weight"), tree=tree)

    assert explain(key(0.5), [key(0.1)], ALL).leaf == "model"


@pytest.mark.parametrize("shape", [(8, 4), (9, 4)])
def test_a_scan_with_a_body_made_anew_is_a_function_unless_its_arguments_changed(shape):
    def key(body, shape):
        function = Function("scan", "jax/lax.py", 1, identity=7, eager=True)
        return call(leaf("xs", shape), function=function, statics=(Static("jaxpr", "…", "Jaxpr", body, body),))

    reason = explain(key(2, shape), [key(1, (8, 4))], ALL)
    assert (reason.kind, reason.leaf) == (("function", "") if shape == (8, 4) else ("shape", "xs.shape[0]"))


def test_the_same_call_again_was_evicted_only_if_a_cache_was_seen_to_lose_it():
    assert explain(replace(call(leaf()), losses=1), [call(leaf())], ALL).kind == "evicted"
    assert explain(call(leaf()), [call(leaf())], ALL).kind == "unknown"


def test_a_call_that_only_left_the_fast_path_is_not_explained_as_a_compile():
    reason = explain(call(leaf(given="numpy", committed=None, devices=())), [call(leaf())], frozenset())
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("unknown", "x", "jax", "numpy")
    assert "nothing was compiled" in reason.text


def test_what_is_in_a_tuple_is_not_assigned_to():
    reason = explain(call(leaf("state[1]", ())), [call(given_as("state[1]", "int"))], ALL)
    assert reason.fix.startswith("jnp.float32(state[1])  # in place of state[1]")


def test_leaves_of_one_argument_are_moved_together():
    old = call(leaf("params['w']"), leaf("params['b']"))
    new = call(leaf("params['w']", committed=True), leaf("params['b']", committed=True))
    reason = explain(new, [old], LOWERED)
    assert reason.fix == 'params = jax.device_put(params, jax.devices("cpu")[0])  # once, before the first call'


def test_types_of_one_argument_are_changed_together_only_if_all_of_it_changed():
    def key(dtype, *others):
        return call(leaf("state['m']", dtype=dtype), leaf("state['v']", dtype=dtype), *others)

    whole = explain(key("bfloat16"), [key("float32")], ALL)
    assert whole.fix.startswith("state = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), state)")
    count = leaf("state['count']", (), "int32")
    assert explain(key("bfloat16", count), [key("float32", count)], ALL).fix.startswith("state['m'] = ")


def test_shardings_on_one_mesh_are_told_by_their_partitions():
    def key(spec, mesh="data=4"):
        text = f"NamedSharding(mesh=Mesh({mesh}), spec={spec})"  # what JAX prints is not read
        devices = ("cpu:0", "cpu:1", "cpu:2", "cpu:3")
        return call(leaf(committed=True, sharding=text, devices=devices, spread=(spec, mesh, "")))

    reason = explain(key("P('data', None)"), [key("P(None, 'data')")], LOWERED)
    assert (reason.before, reason.after) == ("P(None, 'data')", "P('data', None)")
    assert "jax.device_put(x, NamedSharding(mesh, P('data', None)))" in reason.fix
    other = explain(key("P('data', None)", "data=2, model=2"), [key("P('data', None)")], LOWERED)
    assert (other.before, other.after) == ("P('data', None) over data=4", "P('data', None) over data=2, model=2")


def test_a_layout_is_put_back_in_the_order_that_jax_writes():
    reason = explain(call(leaf(shape=(2, 3, 4))), [call(leaf(shape=(2, 3, 4), layout="{1,2,0}"))], LOWERED)
    assert reason.fix.startswith("x = jax.device_put(x, Format(Layout((0, 2, 1)), x.sharding))")


def test_every_dimension_that_varies_is_named():
    old, new = (call(leaf("images", (2, size, size, 3))) for size in (8, 12))
    dimensions = 'NamedDimension("images_1", 8, 12, 12), NamedDimension("images_2", 8, 12, 12)'
    assert f"InputInfo((2, {dimensions}, 3), jnp.float32)" in explain(new, [old], ALL).fix


def test_of_more_calls_than_are_remembered_no_exact_count_is_told():
    earlier = [call(leaf(shape=(rows, 128))) for rows in range(10, 500, 10)]
    assert "one of at least 50 sizes" in explain(call(leaf(shape=(5, 128))), earlier, ALL).text
    made = [call(leaf(), function=replace(STEP, identity=i)) for i in range(2, 50)]
    assert "at least 49 functions" in explain(call(leaf()), made, ALL).text


def test_the_nearest_is_the_one_that_differs_least_and_of_equals_the_latest():
    earlier = [call(leaf(shape=(33, 64))), call(leaf(shape=(8, 128))), call(leaf(shape=(16, 64), dtype="int8"))]
    reason = explain(call(leaf(shape=(33, 128))), earlier, ALL)
    assert (reason.leaf, reason.before) == ("x.shape[0]", "8")


# One key and one thing changed in it: the reason names that kind and that leaf, whatever else there is.

names = st.sampled_from(["x", "batch['x']", "state.params[0]", "state.opt['m'].mu", "args[1]", "rate"])
dtypes = st.sampled_from(["float32", "bfloat16", "int32", "bool", "key<fry>"])
leaves = st.builds(
    Leaf,
    path=names,
    shape=st.lists(st.integers(0, 9), max_size=4).map(tuple),
    dtype=dtypes,
    weak=st.booleans(),
    given=st.sampled_from(["jax", "numpy", "float", "Tracer"]),
    committed=st.sampled_from([None, False, True]),
    devices=st.sampled_from([(), ("cpu:0",)]),
)
keys = st.builds(
    call,
    st.just(leaf("first")),
    function=st.just(STEP),
    statics=st.sampled_from([(), (Static("n", "2", "int", token=2),)]),
    context=st.just((("jax_enable_x64", "False"), ("jax_debug_nans", "False"))),
)


def _mutations(key, index):
    """(kind, leaf, the key with only that changed, what happened)."""
    old = key.leaves[index]
    put = {"committed": True, "devices": ("cpu:0",)}

    def with_leaf(**change):
        changed = old._replace(**change)
        return replace(key, leaves=(*key.leaves[:index], changed, *key.leaves[index + 1 :]))

    if old.shape:
        axis = len(old.shape) - 1
        yield "shape", f"{old.path}.shape[{axis}]", with_leaf(shape=(*old.shape[:-1], old.shape[-1] + 1)), ALL
    yield "rank", f"{old.path}.ndim", with_leaf(shape=(*old.shape, 1)), ALL
    yield "dtype", old.path, with_leaf(dtype="complex64"), ALL
    yield "weak-type", old.path, with_leaf(weak=not old.weak), ALL
    yield "layout", old.path, with_leaf(layout="(0, 1)"), LOWERED
    yield "sharding", old.path, with_leaf(**{**put, "sharding": "P('i')", "devices": ("cpu:0", "cpu:1")}), LOWERED
    if old.devices:
        yield "device", old.path, with_leaf(devices=("cpu:3",)), LOWERED
    if not old.committed:
        yield "committed", old.path, with_leaf(committed=True), LOWERED
    yield "function", "", replace(key, function=replace(key.function, identity=99)), ALL
    yield "static", "m", replace(key, statics=(*key.statics, Static("m", "1", "int", token=1))), ALL
    yield "donation", old.path, replace(key, donated=(old.path,)), LOWERED
    yield "context", "jax_debug_nans", replace(key, context=(key.context[0], ("jax_debug_nans", "True"))), ALL
    yield "options", "xla_backend", replace(key, options=(("xla_backend", "1"),)), frozenset({"compile"})
    yield "transformation", "", replace(key, transformations=("vmap",)), LOWERED
    yield "evicted", "", replace(key, losses=1), ALL


@pytest.mark.slow
@given(st.lists(leaves, min_size=1, max_size=12, unique_by=lambda x: x.path), keys, st.data())
def test_any_single_change_of_any_call_is_named(some, base, data):
    key = replace(base, leaves=tuple(some), tree=call_tree({str(i): 0 for i in range(len(some))}))
    index = data.draw(st.integers(0, len(some) - 1))
    kind, path, changed, happened = data.draw(st.sampled_from(list(_mutations(key, index))))
    reason = explain(changed, [key], happened)
    assert (reason.kind, reason.leaf) == (kind, path)
    assert reason.text
    assert reason.fix


@pytest.mark.slow
@given(st.lists(st.builds(call, leaves, leaves.map(lambda x: x._replace(path="y"))), max_size=6), st.booleans())
def test_a_reason_always_has_a_known_kind_and_a_sentence(earlier, traced):
    new = call(leaf(), leaf("y"))
    reason = explain(new, earlier, ALL if traced else LOWERED)
    assert reason.kind in REASONS
    assert reason.text
    if reason.leaf:
        assert reason.leaf.split(".")[0] in {"x", "y"}
