"""One more compilation, with the equations numbered, held against the programs themselves."""

import re
from functools import partial

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer._jax import number_equations
from explorer.capture import recording
from explorer.capture.equation_paths import NUMBERED_SCOPE, EquationPaths, numbers_in
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.jaxpr import read_jaxpr
from explorer.capture.same_program import is_same_program, plain_names

X = jnp.ones((16, 16))
NUMBER = re.compile(r"XqE\d+")


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


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda program: program.__name__)
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
    numbered = number_equations(traced, NUMBERED_SCOPE)
    assert [bool(path) for path in numbered.paths] == [node.op not in ("parameter", "constant") for node in graph.nodes]
    given = [path for path in numbered.paths if path]
    assert len(set(given)) == len(given)
    for node, path in zip(graph.nodes, numbered.paths, strict=True):
        if path and node.group.caller >= 0:
            assert path[:-1] == numbered.paths[node.group.caller]


def test_the_numbered_program_is_the_plain_one_to_the_letter(capture):
    program = next(program for program in PROGRAMS if program.__name__ == capture.function)
    traced = jax.jit(program).trace(X)
    assert number_equations(traced, NUMBERED_SCOPE).traced.lower().as_text() == traced.lower().as_text()


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


def test_links_become_exact_with_the_recording_and_stay_so_in_a_file(tmp_path):
    capture = ex.explore(gradient_of_twice, X)
    before = capture.wire
    assert capture.coverage("hlo", "exact") == 0
    _ = capture.passes
    assert capture.wire != before
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


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda patch: patch.setattr(recording, "number_equations", lambda *_: None), "can't be numbered"),
        (lambda patch: patch.setattr(recording, "is_same_program", lambda a, b: False), "compiles to another program"),
    ],
)
def test_where_the_numbers_change_the_program_links_stay_inferred_and_the_capture_says_so(
    damage, says, monkeypatch, tmp_path
):
    damage(monkeypatch)
    capture = ex.explore(twice, X)
    assert capture.passes["fusion"]
    assert says in capture.recording_note
    assert capture.passes.versions.equations is None
    assert capture.coverage("hlo", "exact") == 0
    assert capture.coverage("hlo", "inferred") > 0.5
    capture.save(tmp_path / "twice.capture")
    assert ex.load(tmp_path / "twice.capture").recording_note == capture.recording_note


def test_equal_branches_have_numbers_of_their_own():
    branch = jax.jit(lambda x: jnp.sin(x) * 2)
    traced = jax.jit(lambda x: jax.lax.switch(1, [branch, branch], x)).trace(X)
    paths = [path for path in number_equations(traced, NUMBERED_SCOPE).paths if path]
    assert len(set(paths)) == len(paths)


def test_an_op_name_has_the_numbers_of_each_that_was_merged():
    assert numbers_in("jit(f)/XqE1EqX/while/body/XqE12EqX/add;jit(f)/XqE3EqX/mul") == [(1, 12), (3,)]
    assert numbers_in("params['w']") == numbers_in("") == []


PATHS = EquationPaths([(), (0,), (0, 5), (0, 6), (1,), (1, 5), (1, 6), (2,)], {"x": 0})


@pytest.mark.parametrize(
    ("op_name", "callers", "rows", "certain"),
    [
        ("jit(f)/XqE0EqX/jit(g)/XqE5EqX/sin", (), (2,), True),
        ("jit(f)/XqE2EqX/add", (), (7,), True),
        ("jit(f)/XqE2EqX/add;jit(f)/XqE0EqX/XqE6EqX/mul", (), (3, 7), True),
        ("XqE5EqX/sin", (), (2, 5), False),  # the call's number is lost: it is one of both
        ("XqE5EqX/sin", (1,), (2,), True),  # in a computation that only the first call has
        ("XqE5EqX/sin", (1, 4), (2, 5), True),  # in one that both share
        ("XqE5EqX/sin", (7,), (2, 5), False),
        ("XqE7EqX/sin", (), (), True),
        ("x", (), (), True),
    ],
)
def test_an_equation_is_found_by_its_path(op_name, callers, rows, certain):
    assert PATHS.resolve(op_name, callers) == (rows, certain)


def test_names_are_replaced_one_to_one():
    names = {"a.1", "b.2", "XqE3EqX.4", "c", "d.7"}
    renamed = plain_names(names, {"a.1": "b.2", "b.2": "b.3", "c": "c"}, {"a.1": "wrong", "XqE3EqX.4": "call.9"})
    assert renamed == {"a.1": "b.2", "b.2": "b.3", "XqE3EqX.4": "call.9"}
    everything = {renamed.get(name, name) for name in names}
    assert len(everything) == len(names)
    # A name from in between that somebody else has now gets another one, and one that is a number a word.
    assert plain_names({"a", "b"}, {"a": "b"}) == {"a": "b", "b": "b.1"}
    assert plain_names({"XqE3EqX"}) == {"XqE3EqX": "instruction.1"}


TEXT = """HloModule m
ENTRY %e (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %b = f32[8]{0} slice(%a), slice={[0:8]}
  ROOT %c = f32[8]{0} add(%a, %b)
}
"""


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("%b", "%other.1", True),
        ("%e (", "%entry (", True),
        ("[0:8]}", "[0:8:1]}", False),
        ("add(", "multiply(", False),
        ("add(%a, %b)", "add(%b, %a)", False),
        ("f32[8]{0} add", "f32[9]{0} add", False),
    ],
)
def test_programs_are_the_same_if_nothing_but_names_differs(old, new, is_same):
    assert is_same_program(read_hlo(TEXT), read_hlo(TEXT.replace(old, new))) is is_same


def test_a_line_whose_metadata_alone_changes_has_its_equations_from_then_on():
    from explorer.capture.versions import VersionsBuilder

    builder = VersionsBuilder(PATHS)
    lines = TEXT.replace("add(%a, %b)", 'add(%a, %b), metadata={op_name="jit(f)/XqE0EqX/add"}')
    builder.add(lines)
    builder.add(lines.replace("XqE0EqX", "XqE1EqX").replace("slice(", "copy(").replace(", slice={[0:8]}", ""))
    builder.add(
        lines.replace("XqE0EqX", "XqE1EqX;jit(f)/XqE2EqX").replace("slice(", "negate(").replace(", slice={[0:8]}", "")
    )
    versions = builder.build()
    assert [versions.present(shot).tolist() for shot in range(3)] == [[1], [4], [4, 7]]


def test_recording_goes_without_times_where_the_plugin_would_end_the_process(monkeypatch):
    from explorer.capture import pass_times

    monkeypatch.setattr(pass_times, "may_profile", lambda: False)
    monkeypatch.setattr(pass_times, "profiling", partial(pytest.fail, "the profiler was started"))
    capture = ex.explore(twice, X)
    assert not capture.passes.is_complete
    assert capture.coverage("hlo", "exact") > 0.8


def test_recording_goes_without_times_while_the_user_profiles(tmp_path):
    capture = ex.explore(twice, X)
    with jax.profiler.trace(tmp_path):
        passes = capture.passes
    assert not passes.is_complete
    assert all(step.seconds is None for step in passes.all)
    assert any(tmp_path.rglob("*.xplane.pb")), "the user's own profile was lost"
    assert ex.explore(twice, X).passes.is_complete


@pytest.mark.parametrize(("free", "place"), [(1 << 40, "/dev/shm"), (1 << 16, None)])
def test_what_the_compiler_writes_lies_in_memory_where_there_is_room(monkeypatch, free, place):
    usage = recording.disk_usage("/")._replace(free=free)
    monkeypatch.setattr(recording, "disk_usage", lambda path: usage)
    monkeypatch.setattr(recording, "access", lambda path, mode: True)
    assert recording.in_memory(64) == place
    assert recording.in_memory(1_000_000) is None
