"""Every method that a value declares is defined, with the signature that it declares."""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import jax.numpy as jnp
import pytest

import explorer as ex
from explorer import methods, result_methods
from explorer.model import declared

SUBCLASSES = [
    cls
    for name, cls in (vars(methods) | vars(result_methods)).items()
    if name.endswith("Methods") and inspect.isclass(cls)
]


def functions_of(cls):
    return {name: declared._function_of(member) for name, member in vars(cls).items()}


def test_each_declared_method_is_defined():
    folder = Path(ex.__file__).parent
    for file in (folder / "model").rglob("*.py"):
        import_module(".".join(("explorer", *file.relative_to(folder).with_suffix("").parts)))
    missing = [each.__qualname__ for each in declared._declarations if each not in declared._definitions]
    assert missing == []


@pytest.mark.parametrize("cls", SUBCLASSES, ids=lambda cls: cls.__name__)
def test_a_definition_has_the_signature_and_the_documentation_of_its_declaration(cls):
    definitions = {definition: declaration for declaration, definition in declared._definitions.items()}
    found = [function for function in functions_of(cls).values() if function in definitions]
    assert found
    for definition in found:
        declaration = definitions[definition]
        assert str(inspect.signature(definition)) == str(inspect.signature(declaration))
        assert definition.__doc__ == declaration.__doc__


def test_a_class_has_the_definition_itself_once_the_definitions_are_imported():
    nodes_at = inspect.getattr_static(ex.Capture, "nodes_at")
    assert nodes_at in declared._definitions.values()
    assert nodes_at.__qualname__ == "Capture.nodes_at"


@pytest.mark.parametrize("module", [methods, result_methods], ids=lambda module: module.__name__)
def test_each_function_that_a_definition_calls_is_there(module):
    functions = [each for each in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(each, ast.FunctionDef)]
    imports = [each for function in functions for each in function.body if isinstance(each, ast.ImportFrom)]
    assert imports
    for statement in imports:
        for alias in statement.names:
            assert callable(getattr(import_module(statement.module), alias.name))


def test_help_of_a_method_is_there_after_its_definition_was_adopted():
    capture = ex.explore(jnp.sin, jnp.ones(8))
    assert capture.summary
    for name in ("load", "summary", "links", "to_html"):
        assert inspect.getattr_static(ex.Capture, name).__doc__
