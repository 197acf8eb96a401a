"""The structure of the house: imports go down, none is hidden in a function, and names are the field's."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "explorer"
FILES = {
    ".".join(file.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): file
    for file in sorted(ROOT.rglob("*.py"))
}
TREES = {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in FILES.items()}
# What imports the rooms, and is imported by none of them.
ROOF = {"explorer", "explorer.__main__", "explorer.methods", "explorer.result_methods"}

# Where a room may be loaded when it is first used: the magics, the verbs of the shell, and the registry of views.
LAZY = (
    "explorer.notebook",
    "explorer.view.registry",
    "explorer.ledger.commands",
    "explorer.hotpath.commands",
    "explorer.pitfalls.commands",
    "explorer.__main__",
)


def imported(node: ast.AST):
    """The modules of Explorer's that an import statement names."""
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            yield name if name in FILES else node.module
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)


def typing_only(tree: ast.Module):
    """The statements under `if TYPE_CHECKING`."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    return {inner for block in blocks for statement in block.body for inner in ast.walk(statement)}


def edges(*, with_types: bool):
    """By module, the modules that it imports, at its top or in a function."""
    graph = {}
    for name, tree in TREES.items():
        left_out = set() if with_types else typing_only(tree)
        targets = {target for node in ast.walk(tree) if node not in left_out for target in imported(node)}
        graph[name] = {target for target in targets if target in FILES and target != name} - ROOF
    return {name: targets for name, targets in graph.items() if name not in ROOF}


def cycles(graph):
    """The groups of modules that import each other, directly or through others (Tarjan's components)."""
    index, low, stack, groups = {}, {}, [], []

    def visit(module):
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in graph[module]:
            if target not in index:
                visit(target)
            if target in stack:
                low[module] = min(low[module], low[target])
        if low[module] == index[module]:
            place = stack.index(module)
            groups.append(sorted(stack[place:]))
            del stack[place:]

    for module in graph:
        if module not in index:
            visit(module)
    return [group for group in groups if len(group) > 1]


def test_a_cycle_is_seen():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


@pytest.mark.slow
def test_no_modules_import_each_other_not_even_inside_functions():
    assert cycles(edges(with_types=False)) == []


@pytest.mark.slow
def test_modules_that_name_each_others_types_are_few():
    assert [group for group in cycles(edges(with_types=True)) if len(group) > 4] == []


def hidden_imports(tree: ast.Module):
    """The modules of Explorer's that are imported inside functions, with their lines."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    nodes = (node for function in functions for node in ast.walk(function))
    return {f"line {node.lineno}: {name}" for node in nodes for name in imported(node) if name.startswith("explorer")}


@pytest.mark.slow
def test_no_room_is_imported_inside_a_function():
    rooms = [name for name in FILES if name not in ROOF and not name.startswith(LAZY)]
    assert {name: hidden for name in rooms if (hidden := hidden_imports(TREES[name]))} == {}


ROOMS_WITHOUT_JAX = ("model", "analysis", "files", "view")


@pytest.mark.parametrize("room", ROOMS_WITHOUT_JAX)
def test_values_analyses_files_and_views_load_where_no_jax_is_installed(room):
    modules = [name for name in FILES if name.startswith(f"explorer.{room}")]
    script = "import sys; sys.modules['jax'] = sys.modules['jaxlib'] = None\n" + "\n".join(
        f"import {module}" for module in modules
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Words -------------------------------------------------------------------------------------------------------------

# A name says what the thing is or returns. These say that somebody talks, looks or finds, and not what.
DIALECT = re.compile(r"(?:told|tells?|teller|said|says?|asked|asks?|retell|retold|heard)", re.IGNORECASE)
VAGUE = {"found", "told", "said", "known", "asked"}


def parts(identifier: str):
    return re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)


def defined(tree: ast.Module):
    """What functions and classes are called, with the line of each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno


def assigned(tree: ast.Module):
    """The variables that are assigned, with the line of each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def in_dialect(identifier: str) -> bool:
    return any(map(DIALECT.fullmatch, parts(identifier)))


@pytest.mark.slow
def test_identifiers_are_words_of_the_field():
    for name, tree in TREES.items():
        # A person does ask: `capture.ask("why …?")`.
        public = {"ask"} if name in ("explorer.model.capture", "explorer.methods") else set()
        named = [f"{word} (line {line})" for word, line in defined(tree) if in_dialect(word) and word not in public]
        held = [f"{word} (line {line})" for word, line in assigned(tree) if word in VAGUE]
        assert (name, named, held) == (name, [], [])


def test_files_are_named_by_what_is_in_them():
    assert [name for name in FILES if any(map(in_dialect, name.split(".")))] == []


# Comprehension ------------------------------------------------------------------------------------------------------


def complexity(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Branches of a function's own body, and one; what is defined inside of it counts for itself."""
    total, stack = 1, list(ast.iter_child_nodes(function))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        total += isinstance(
            node, ast.If | ast.For | ast.While | ast.IfExp | ast.ExceptHandler | ast.comprehension | ast.Assert
        )
        total += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        total += len(node.ifs) if isinstance(node, ast.comprehension) else 0
        stack.extend(ast.iter_child_nodes(node))
    return total


def test_few_functions_have_many_branches():
    nodes = (node for tree in TREES.values() for node in ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    counts = [complexity(function) for function in functions]
    assert sum(count > 10 for count in counts) / len(counts) <= 0.04
    assert sum(count > 15 for count in counts) <= 20


# What no suite runs (benchmarks, public programs, mutants) is found broken by its imports, not when a figure is needed.
TESTS = Path(__file__).parents[1]
SELDOM_RUN = [file for folder in ("benchmarks", "public", ".") for file in sorted(TESTS.glob(f"{folder}/*.py"))]


@pytest.mark.parametrize("file", SELDOM_RUN, ids=lambda file: file.stem)
def test_what_is_seldom_run_imports_what_there_is(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "explorer":
            module = import_module(node.module)
            missing = [
                a.name for a in node.names if not hasattr(module, a.name) and f"{node.module}.{a.name}" not in FILES
            ]
            assert not missing, f"{node.module} has no {', '.join(missing)}"
