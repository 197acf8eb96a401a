"""One compile with numbered equations, compared with the programs themselves."""

import gc
import os
import re
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import equinox as eqx
import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import explorer as ex
from explorer._jax import interrupts
from explorer._jax.numbering import number_equations
from explorer.capture import recording
from explorer.capture.equation_paths import EquationPaths, names_without_numbers, numbers_in, rename_numbered
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.jaxpr import read_jaxpr
from explorer.errors import NotRecordedError
from tests.support.quick import quick

X = jnp.ones((16, 16))
NUMBER = re.compile(r"[~_]eq\d+")


@jax.jit
def inner(x):
    return jnp.sin(x) * 2 + jnp.cos(x)


def twice(x):
    return inner(inner(x) + 1.0)


def gradient_of_twice(x):
    return jax.grad(lambda x: twice(x).sum())(x)


@jax.custom_vjp
def squared(x):
    return x * x


squared.defvjp(lambda x: (x * x, x), lambda x, g: (g * x * 2.5,))


@jax.custom_jvp
def exponential(x):
    return jnp.exp(x)


exponential.defjvp(lambda p, t: (exponential(p[0]), t[0] * exponential(p[0]) * 1.5))


def gradient_of_custom(x):
    return jax.grad(lambda x: squared(x).sum() + exponential(x).sum())(x)


def scanned(x):
    return jax.lax.scan(lambda carry, w: (jnp.tanh(carry @ w), carry.sum()), x, jnp.ones((3, 16, 16)))


def gradient_of_scan(x):
    return jax.grad(lambda x: scanned(x)[1].sum())(x)


def chosen(x):
    return jax.lax.cond(x.sum() > 0, lambda x: jnp.sin(x) * 3, lambda x: jnp.cos(x) - 1, x)


def repeated(x):
    return jax.lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 1.5 + 1, x)


def recomputed(x):
    return jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y @ y)))(x).sum())(x)


def batched(x):
    return jax.vmap(lambda row: jax.nn.logsumexp(row) * row)(x)


def sharded(x):
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("a",))
    spec = jax.sharding.PartitionSpec
    return jax.shard_map(lambda x: jax.lax.psum(x * 2, "a"), mesh=mesh, in_specs=spec("a"), out_specs=spec())(x)


def determinant(x):
    return jax.grad(lambda x: jnp.linalg.slogdet(x)[1])(x + jnp.eye(16))


def drawn(x):
    return jax.random.normal(jax.random.key(0), x.shape) * x


def sorted_sums(x):
    return jnp.sort(x, axis=0).cumsum(0)


PROGRAMS = [
    *(twice, gradient_of_twice, gradient_of_custom, scanned, gradient_of_scan, chosen, repeated, recomputed, batched),
    *(sharded, determinant, drawn, sorted_sums),
]
# Each kind of equation once: the others are parts of these.
SOME = (gradient_of_custom, gradient_of_scan, chosen, recomputed, sharded, drawn, sorted_sums)


@pytest.fixture(scope="module", params=quick(PROGRAMS, SOME), ids=lambda program: program.__name__)
def capture(request):
    capture = ex.explore(request.param, X)
    assert len(capture.passes.all) > 20
    return capture


def nodes(graph, op):
    return [node for node in graph.nodes if node.op == op]


def test_each_node_of_the_jaxpr_has_its_path(capture):
    program = next(program for program in PROGRAMS if program.__name__ == capture.function)
    traced = jax.jit(program).trace(X)
    _, graph = read_jaxpr(traced.jaxpr)
    numbered = number_equations(traced)
    assert [bool(path) for path in numbered.paths] == [node.op not in ("parameter", "constant") for node in graph.nodes]
    given = [path for path in numbered.paths if path]
    assert len(set(given)) == len(given)
    for node, path in zip(graph.nodes, numbered.paths, strict=True):
        if path and node.group.caller >= 0:
            assert path[:-1] == numbered.paths[node.group.caller]


def test_the_numbered_program_is_the_plain_one_to_the_letter(capture):
    program = next(program for program in PROGRAMS if program.__name__ == capture.function)
    traced = jax.jit(program).trace(X)
    assert number_equations(traced).traced.lower().as_text() == traced.lower().as_text()


def test_what_carries_a_name_is_linked_exactly(capture):
    assert capture.recording_note == ""
    for stage in ("stablehlo", "hlo"):
        graph = capture.stage(stage).graph
        named = np.asarray([bool(scope) for scope in graph.scopes])[graph.scope] & graph.is_equation
        exact = capture.links.grades(stage) == 2
        assert exact[named].mean() >= 0.99


# What XLA makes of one primitive alone; it rewrites others, and expands some.
KEPT = {
    **{"sine": "sin", "cosine": "cos", "tanh": "tanh", "dot": "dot_general", "sort": "sort", "while": "scan while"},
    **{"conditional": "cond", "all-reduce": "psum psum_invariant", "log": "log"},
    "exponential": "exp exp2 logistic tanh",
}


def test_an_instruction_is_linked_to_an_equation_that_makes_such_instructions(capture):
    sets = capture.links.sets["hlo"]
    jaxpr = capture.jaxpr.graph
    for node in capture.hlo.graph.nodes:
        if node.op in KEPT and sets.grade[node.index] == 2 and capture.function not in ("drawn", "determinant"):
            assert {jaxpr.ops[int(jaxpr.op[row])] for row in sets.of(node.index)} & set(KEPT[node.op].split()), node


def test_the_calls_of_one_function_are_told_apart():
    capture = ex.explore(twice, X)
    _ = capture.passes
    jaxpr, links = capture.jaxpr.graph, capture.links
    first, second = (node.index for node in nodes(jaxpr, "jit"))
    for sine in nodes(capture.hlo.graph, "sine"):
        (equation,) = links.linked(sine, "jaxpr")
        # In the kernel of the first call, the sine reads the program's argument.
        is_of_first = sine.operands[0].op == "parameter" and equation.group.caller == first
        assert is_of_first or equation.group.caller == second
        assert links.grade(sine, "jaxpr") == "exact"
    assert {links.linked(sine, "jaxpr")[0].group.caller for sine in nodes(capture.hlo.graph, "sine")} == {first, second}


def test_numbers_never_show(capture, tmp_path):
    passes = capture.passes
    assert not NUMBER.search("\n".join(passes.versions.lines))
    assert not NUMBER.search(" ".join([*passes.versions.names, *passes.versions.computations]))
    for stage in capture.stages:
        assert not NUMBER.search(stage.text)
        assert not any(map(NUMBER.search, [*stage.graph.scopes, *stage.graph.names]))
    assert not NUMBER.search(repr(capture.links.linked(next(capture.hlo.graph.nodes), "jaxpr")))


def test_the_last_snapshot_has_the_names_of_the_program_that_is_shown(capture):
    versions = capture.passes.versions
    last = read_hlo(versions.text(len(versions.snapshots) - 1))
    # Newer XLAs write some of a tuple's parts as `name#0` in what they dump.
    assert {name.partition("#")[0] for name in last.names} <= set(capture.hlo.graph.names)
    assert {group.name for group in last.groups} == {group.name for group in capture.hlo.graph.groups}


def test_every_snapshot_can_be_read_with_its_new_names(capture):
    versions = capture.passes.versions
    for shot in range(len(versions.snapshots)):
        graph = read_hlo(versions.text(shot))
        assert len(set(graph.names)) == len(graph.names)
        used = {name for text in versions.text(shot).splitlines() for name in re.findall(r"%([\w.\-]+)", text)}
        assert used <= {*(name.partition("#")[0] for name in graph.names), *(group.name for group in graph.groups)}


def test_a_call_after_the_recording_compiles_nothing():
    @jax.jit
    def f(x):
        return jnp.tanh(x @ x) * 1.25

    capture = ex.explore(f, X)
    _ = capture.passes
    compiled = []
    listener = lambda event, seconds, **_: compiled.append(event) if "compile" in event else None  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        f(X).block_until_ready()
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
    assert not [event for event in compiled if "backend_compile" in event]


def test_the_pass_that_ends_an_equation_is_the_first_without_it():
    capture = ex.explore(lambda x: jnp.where(True, x * 3, x + 1).T, X)
    versions = capture.passes.versions
    choice, product = (nodes(capture.jaxpr.graph, op)[0].index for op in ("select_n", "mul"))
    lives = [choice in versions.present(shot) for shot in range(len(versions.snapshots))]
    assert lives[0]
    assert not lives[-1]
    (end,) = [step for step in capture.passes if step.snapshot == lives.index(False)]
    assert " select(" in end.before
    assert " select(" not in end.after
    assert product in versions.present(len(versions.snapshots) - 1)


def test_links_are_exact_at_once_and_stay_so_in_a_file(tmp_path):
    capture = ex.explore(gradient_of_twice, X)
    assert capture.coverage("hlo", "exact") > 0.8
    capture.save(tmp_path / "twice.capture")
    loaded = ex.load(tmp_path / "twice.capture")
    assert loaded.coverage("hlo", "exact") == capture.coverage("hlo", "exact")
    for here, there in zip(capture.hlo.graph.nodes, loaded.hlo.graph.nodes, strict=True):
        assert [n.name for n in capture.links.linked(here, "jaxpr")] == [
            n.name for n in loaded.links.linked(there, "jaxpr")
        ]
    for shot in range(len(capture.passes.versions.snapshots)):
        assert np.array_equal(capture.passes.versions.present(shot), loaded.passes.versions.present(shot))


def test_where_equations_can_not_be_numbered_the_capture_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(recording, "number_equations", lambda traced: None)
    capture = ex.explore(lambda x: twice(x) * 3, X)
    assert "can't be numbered" in capture.recording_note
    assert capture.coverage("hlo", "exact") == 0
    capture.save(tmp_path / "twice.capture")
    assert ex.load(tmp_path / "twice.capture").recording_note == capture.recording_note


def test_without_a_record_the_program_is_left_as_jax_makes_it():
    function = jax.jit(lambda x: twice(x) * 4)
    capture = ex.explore(function, X, record=False)
    assert not NUMBER.search(function.lower(X).as_text(debug_info=True))
    assert not NUMBER.search(function.lower(X).compile().as_text())
    assert not capture.has_passes
    assert capture.coverage("hlo", "exact") == 0
    assert capture.coverage("hlo", "inferred") > 0.3  # by names and places
    assert "record=False" in capture.recording_note
    assert sum(capture.recording_note in line for line in capture.to_text().splitlines()) == 1
    with pytest.raises(ex.errors.NotRecordedError):
        capture.passes  # noqa: B018


def test_without_a_record_no_number_is_shown_of_what_was_explored_with_one():
    function = jax.jit(lambda x: gradient_of_scan(twice(x)) * 9)
    assert ex.explore(function, X).recording_note == ""
    capture = ex.explore(function, X, record=False)
    assert capture.coverage("hlo", "inferred") > 0.3
    for stage in capture.stages:
        assert not NUMBER.search(stage.text)
        assert not any(map(NUMBER.search, (*stage.graph.scopes, *stage.graph.names)))


def compiles(run):
    compiled = []
    listener = lambda event, seconds, **_: compiled.append(event) if "backend_compile" in event else None  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        run()
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
    return len(compiled)


def look_at_everything(capture, folder):
    capture._repr_mimebundle_()
    capture.save(folder / "f.capture")
    _ = capture.passes, capture.summary, capture.live_memory
    for node in capture.jaxpr.graph.nodes:
        if node.op not in ("parameter", "constant"):
            _ = capture.fate(node)
    capture.ask("which pass removed it?")


@pytest.mark.parametrize("program", quick(PROGRAMS, SOME), ids=lambda program: program.__name__)
def test_one_compile_serves_the_exploration_and_the_users_own_call(program, tmp_path):
    function, plain = jax.jit(lambda x: program(x)), jax.jit(lambda x: program(x))
    expected = jax.block_until_ready(plain(X))
    given = []
    assert compiles(lambda: look_at_everything(ex.explore(function, X), tmp_path)) == 1
    assert compiles(lambda: given.append(jax.block_until_ready(function(X)))) == 0
    for one, other in zip(jax.tree.leaves(given[0]), jax.tree.leaves(expected), strict=True):
        assert np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)


class Layer:
    def __init__(self):
        self.weight = jnp.eye(16)

    @partial(jax.jit, static_argnums=0)
    def apply(self, x):
        return jnp.tanh(x @ self.weight) * 1.125


def of_nnx():
    layer = nnx.Linear(16, 16, rngs=nnx.Rngs(0))

    @nnx.jit
    def step(model, x):
        gradients = nnx.grad(lambda model: (model(x) ** 2).mean())(model)
        nnx.update(model, jax.tree.map(lambda w, g: w - 0.1 * g, nnx.state(model, nnx.Param), gradients))
        return x.sum()

    return step, (layer, X), {}


def of_equinox():
    mlp = eqx.nn.MLP(16, 16, 8, 1, key=jax.random.key(0))
    return eqx.filter_jit(eqx.filter_grad(lambda mlp, x: jax.vmap(mlp)(x).sum())), (mlp, X), {}


KINDS = {
    "a partial of a jit": lambda: (partial(jax.jit(lambda a, x: a * jnp.tanh(x)), 2.0), (X,), {}),
    "a jit of a partial": lambda: (jax.jit(partial(lambda a, x: a * jnp.tanh(x), 2.5)), (X,), {}),
    "a method": lambda: (Layer().apply, (X,), {}),
    "a static argument": lambda: (jax.jit(lambda x, n: x**n + 1, static_argnames="n"), (X,), {"n": 3}),
    "a donated argument": lambda: (jax.jit(lambda x: jnp.sin(x) * 2, donate_argnums=0), (X + 0,), {}),
    "pmap": lambda: (jax.pmap(lambda x: jnp.sin(x) * 2 + jax.lax.psum(x, "i"), axis_name="i"), (X[None],), {}),
    "pure_callback": lambda: (
        jax.jit(lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1),
        (X,),
        {},
    ),
    "flax.nnx.jit": of_nnx,
    "equinox.filter_jit": of_equinox,
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_one_compile_serves_every_kind_of_jit(make, tmp_path):
    function, args, kwargs = make()
    (expected_of, expected_args, _), given = make(), []
    expected = jax.tree.leaves(expected_of(*expected_args, **kwargs))
    jax.clear_caches()
    assert compiles(lambda: look_at_everything(ex.explore(function, *args, **kwargs), tmp_path)) == 1
    assert compiles(lambda: given.extend(jax.tree.leaves(function(*args, **kwargs)))) == 0
    for one, other in zip(given, expected, strict=True):
        assert np.array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.slow
def test_arguments_of_a_wrapper_have_the_users_names():
    function, args, _ = of_equinox()
    assert ex.explore(function, *args).signature == "(mlp: 4 arrays, x: f32[16,16])"
    function, args, _ = KINDS["pmap"]()
    assert ex.explore(function, *args).signature == "(x: f32[1,16,16])"


def test_what_was_compiled_before_is_compiled_once_more_and_then_known(tmp_path):
    function = jax.jit(lambda x: jnp.tanh(x @ x) * 1.75)
    function(X)
    captures = []
    assert compiles(lambda: captures.append(ex.explore(function, X))) == 1
    assert captures[0].coverage("hlo", "exact") > 0.8
    assert compiles(lambda: look_at_everything(ex.explore(function, X), tmp_path)) == 0
    assert compiles(lambda: function(X).block_until_ready()) == 0


def test_a_program_goes_with_its_function_and_its_capture():
    def explored(number):
        capture = ex.explore(jax.jit(lambda x: jnp.tanh(x @ x) * (number + 0.125)), X)
        _ = capture.links, capture.passes, capture.summary, capture.wire, capture.lines()
        return weakref.ref(capture.passes)

    gc.collect()
    before = len(recording._numbered)
    passes = [explored(number) for number in range(3)]
    gc.collect()
    assert [one() for one in passes] == [None] * 3
    assert len(recording._numbered) <= before


def test_nothing_is_written_into_the_users_jaxpr():
    traced = jax.jit(gradient_of_scan).trace(X)
    ex.explore(gradient_of_scan, X)
    assert "~eq" not in traced.jaxpr.pretty_print(name_stack=True)


def test_threads_that_explore_one_function_compile_it_once():
    function = jax.jit(lambda x: jnp.tanh(x @ x) * 1.875)
    function.lower(X)
    with ThreadPoolExecutor(4) as pool:
        captures = []
        assert compiles(lambda: captures.extend(pool.map(lambda _: ex.explore(function, X), range(8)))) == 1
    assert {str(capture.links.sets["hlo"]) for capture in captures} == {str(captures[0].links.sets["hlo"])}


def test_equal_branches_have_numbers_of_their_own():
    branch = jax.jit(lambda x: jnp.sin(x) * 2)
    traced = jax.jit(lambda x: jax.lax.switch(1, [branch, branch], x)).trace(X)
    paths = [path for path in number_equations(traced).paths if path]
    assert len(set(paths)) == len(paths)


def test_an_op_name_has_the_numbers_of_each_that_was_merged():
    assert numbers_in("jit(f)/~eq1/while/body/~eq12/add;jit(f)/~eq3/mul") == [(1, 12), (3,)]
    assert numbers_in("params['w']") == numbers_in("") == []


PATHS = EquationPaths([(), (0,), (0, 5), (0, 6), (1,), (1, 5), (1, 6), (2,)], {"x": 0})


@pytest.mark.parametrize(
    ("op_name", "callers", "rows", "certain"),
    [
        ("jit(f)/~eq0/jit(g)/~eq5/sin", (), (2,), True),
        ("jit(f)/~eq2/add", (), (7,), True),
        ("jit(f)/~eq2/add;jit(f)/~eq0/~eq6/mul", (), (3, 7), True),
        ("~eq5/sin", (), (2, 5), False),  # the call's number is lost: it is one of both
        ("~eq5/sin", (1,), (2,), True),  # in a computation that only the first call has
        ("~eq5/sin", (1, 4), (2, 5), True),  # in one that both share
        ("~eq5/sin", (7,), (2, 5), False),
        ("~eq7/sin", (), (), True),
        ("x", (), (), True),
    ],
)
def test_an_equation_is_found_by_its_path(op_name, callers, rows, certain):
    assert PATHS.resolve(op_name, callers) == (rows, certain)


def test_names_with_a_number_get_one_of_their_own():
    names = ["a.1", "_eq3.4", "_eq4.4", "jvp__eq7_.1", "instruction.1"]
    renamed = names_without_numbers(names, {*names}, known={"_eq9": "instruction.3"})
    assert renamed == {
        **{"_eq9": "instruction.3", "_eq3.4": "instruction.2", "_eq4.4": "instruction.4", "jvp__eq7_.1": "jvp.1"},
    }


@pytest.mark.parametrize("record", [True, False])
def test_a_users_name_that_looks_like_a_number_stays(record):
    @jax.jit
    def heat_eq2(x):
        return jax.lax.fori_loop(0, 3, lambda _, x: jnp.sin(x) @ x, x)

    def solve_eq1(x):
        with jax.named_scope("my_eq5"):
            return heat_eq2(heat_eq2(x) + 1)

    for text in (stage.text for stage in ex.explore(solve_eq1, X, record=record).stages[1:]):
        assert "jit_solve_eq1" in text
        assert "my_eq5" in text
    graph = read_hlo(rename_numbered(TEXT.replace("%b", "%heat_eq2.1"))[0])
    assert "heat_eq2.1" in graph.names


TEXT = """HloModule m
ENTRY %e (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %b = f32[8]{0} slice(%a), slice={[0:8]}
  ROOT %c = f32[8]{0} add(%a, %b)
}
"""


def test_a_line_whose_metadata_alone_changes_has_its_equations_from_then_on():
    from explorer.capture.passes import VersionsBuilder

    builder = VersionsBuilder(PATHS)
    lines = TEXT.replace("add(%a, %b)", 'add(%a, %b), metadata={op_name="jit(f)/~eq0/add"}')
    builder.add(lines)
    builder.add(lines.replace("~eq0", "~eq1").replace("slice(", "copy(").replace(", slice={[0:8]}", ""))
    builder.add(lines.replace("~eq0", "~eq1;jit(f)/~eq2").replace("slice(", "negate(").replace(", slice={[0:8]}", ""))
    versions = builder.build()
    assert [versions.present(shot).tolist() for shot in range(3)] == [[1], [4], [4, 7]]


def test_recording_goes_without_times_where_the_plugin_would_end_the_process(monkeypatch):
    from explorer.capture import passes

    monkeypatch.setattr(passes, "may_profile", lambda: False)
    monkeypatch.setattr(passes, "profiling", partial(pytest.fail, "the profiler was started"))
    capture = ex.explore(lambda x: twice(x) * 5, X)
    assert not capture.passes.is_complete
    assert capture.coverage("hlo", "exact") > 0.8


def test_recording_goes_without_times_while_the_user_profiles(tmp_path):
    with jax.profiler.trace(tmp_path):
        passes = ex.explore(lambda x: twice(x) * 6, X).passes
    assert not passes.is_complete
    assert all(step.seconds is None for step in passes.all)
    assert any(tmp_path.rglob("*.xplane.pb")), "the user's own profile was lost"
    assert ex.explore(lambda x: twice(x) * 7, X).passes.is_complete


@pytest.mark.parametrize(("free", "place"), [(1 << 40, "/dev/shm"), (1 << 16, None)])
def test_passes_are_dumped_into_memory_where_there_is_room_and_not_at_all_where_there_is_none(monkeypatch, free, place):
    usage = recording.disk_usage("/")._replace(free=free)
    monkeypatch.setattr(recording, "disk_usage", lambda path: usage)
    assert recording.dump_place(64_000, always=False) == place
    assert recording.dump_place(1 << 50, always=False) is None


def test_no_other_user_can_read_a_folder_of_dumps(tmp_path):
    with recording._folder_in(str(tmp_path)) as folder:
        assert os.stat(folder).st_mode & 0o777 == 0o700


def test_dumps_that_killed_processes_left_are_removed_by_the_next_one(monkeypatch, tmp_path):
    monkeypatch.setattr(recording, "_MEMORY", str(tmp_path))
    abandoned, recent = tmp_path / "explorer-passes-old", tmp_path / "explorer-passes-new"
    for folder in (abandoned, recent):
        folder.mkdir()
        (folder / "module_0001.jit_f.txt").write_text("HloModule f")
    os.utime(abandoned, (0, 0))
    ex.explore(lambda x: twice(x) * 9, X)
    assert [path.name for path in tmp_path.iterdir()] == ["explorer-passes-new"]


def test_the_folder_of_a_compile_that_an_interrupt_left_is_removed_when_xla_has_written_it(monkeypatch, tmp_path):
    def interrupted(*_, **__):  # as in jax 0.10, where XLA goes on and writes the rest of its dump
        raise KeyboardInterrupt

    monkeypatch.setattr(recording, "_MEMORY", str(tmp_path))
    with monkeypatch.context() as here:
        here.setattr("jax._src.compiler.backend_compile_and_load", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ex.explore(lambda x: twice(x) * 10, X)
    (left,) = tmp_path.iterdir()
    ex.explore(lambda x: twice(x) * 11, X)
    assert [*tmp_path.iterdir()] == [left]
    monkeypatch.setattr(interrupts, "_SECONDS", 0.0)
    ex.explore(lambda x: twice(x) * 12, X)
    assert not [*tmp_path.iterdir()]


ENDS_WHILE_ITS_PASSES_ARE_PACKED = """
import sys
import jax.numpy as jnp
import explorer as ex
from explorer.capture import recording

recording._MEMORY = sys.argv[1]

def chain(x):
    for i in range(300):
        x = jnp.tanh(x @ x) * (i + 0.5)
    return x

capture = ex.explore(chain, jnp.ones((8, 8)))
assert any(thread.name == "explorer-passes" for thread in __import__("threading").enumerate())
"""


@pytest.mark.slow
def test_a_process_that_ends_while_its_passes_are_packed_ends_in_silence_and_leaves_nothing(tmp_path):
    command = [sys.executable, "-c", ENDS_WHILE_ITS_PASSES_ARE_PACKED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not [*tmp_path.iterdir()]


def test_passes_that_found_no_room_are_recorded_when_there_is_some(monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(recording, "read_bytes", fail)
        capture, other = (ex.explore(lambda x, i=i: twice(x) * (10 + i), X) for i in range(2))
        with pytest.raises(NotRecordedError, match="No space left on device"):
            _ = other.passes
    assert capture.coverage("hlo", "exact") > 0.8
    assert capture.passes["fusion"].born


def test_passes_that_were_not_dumped_are_recorded_when_they_are_asked_for(monkeypatch):
    monkeypatch.setattr(recording, "dump_place", lambda size, always=False: "" if always else None)
    captures = []
    assert compiles(lambda: captures.append(ex.explore(lambda x: twice(x) * 8, X))) == 1
    (capture,) = captures
    assert capture.coverage("hlo", "exact") > 0.8
    assert not capture.has_passes
    assert compiles(lambda: capture._repr_mimebundle_()) == 0
    assert compiles(lambda: capture.passes) == 1
    assert capture.has_passes
    assert capture.passes["fusion"].born


def test_passes_of_a_large_program_are_read_for_a_question_about_an_equation_and_not_for_a_display(monkeypatch):
    monkeypatch.setattr(recording, "_READ_IN_A_SECOND", 1)

    def explored():
        return ex.explore(lambda x: jnp.sum(x * 1 + jnp.sin(x) - 0), X)

    shown, counted, asked = explored(), explored(), explored()
    shown._repr_mimebundle_()
    assert not shown.has_passes
    assert compiles(lambda: shown.fate(next(iter(shown.jaxpr.graph.where("op:sin"))))) == 0
    assert shown.has_passes
    assert counted.fates().get("unknown", 0) == 0
    answer = asked.ask("which pass removed it?")
    assert (answer.certainty, answer.hint) == ("exact", "")
