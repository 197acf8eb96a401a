"""Methods that a value declares and another room answers take what they are declared to take."""

import inspect
from importlib import import_module

import pytest

import explorer as ex
from explorer.attachments import _METHODS


def class_of(name):
    return next((getattr(place, name) for place in (ex, ex.types) if name in place.__all__), None)


def declared(name):
    """The method of a name, as its class has it."""
    owner, method = name.split(".")
    cls = class_of(owner) or getattr(import_module("explorer.model.attached"), owner, None)
    member = inspect.getattr_static(cls, method)
    return getattr(member, "__func__", None) or getattr(member, "fget", None) or getattr(member, "func", member)


def defaults(function):
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


@pytest.mark.parametrize("name", [name for name in _METHODS if class_of(name.split(".")[0])])
def test_what_may_be_left_out_of_a_call_may_be_left_out(name):
    module, _, function = _METHODS[name].partition(":")
    behind = defaults(getattr(import_module(module), function))
    assert {key: value for key, value in defaults(declared(name)).items() if behind.get(key, "none") != value} == {}
