"""The reference: a page for each public name, from its signature and its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from posixpath import dirname, relpath
from typing import Any

import explorer as ex
from docs.pages.docstrings import Docstring, markdown, names_in, parse
from docs.pages.members import Member, members
from docs.pages.signatures import return_type, signature

# The rooms in the order of a person's way through them, as the index lists them.
_GROUPS = {
    "Capture and look": ("capture", "model.capture", "model.stage", "model.graph", "model.source", "model"),
    "What the analyses say": ("analysis",),
    "Compile ahead of time": ("aot", "model.specialization", "model.results.dynamic_report"),
    "Functions with state": ("jitted",),
    "Recompiles": ("ledger", "model.events"),
    "Pitfalls": ("pitfalls", "model.findings"),
    "Measure": ("measure", "model.results"),
    "Other hardware": ("hardware", "model.target", "model.results.targets", "model.results.target_comparison"),
    "Hot paths": ("hotpath", "model.results.hot_paths", "model.results.sequences"),
    "Keep what was gained": ("golden", "model.golden"),
    "Sessions and notebooks": ("sessions", "notebook", "model.results.session"),
}


def pages() -> dict[str, str]:
    """By its path without `.md`, each page's text."""
    return {"index": _index()} | {path_of(name): _page(name) for name in names()}


# The module of each public name that has a page here: errors and warnings have theirs among the errors.
_MODULES = {
    name: module
    for module in (ex.compat.tripy, ex.types, ex)
    for name in module.__all__
    if name not in ex.errors.__all__ and not inspect.ismodule(getattr(module, name))
}


def names() -> list[str]:
    """Return every public name that has a page here."""
    return sorted(_MODULES)


def public(name: str) -> Any:
    """Return the object of a public name."""
    return getattr(ex.errors if name in ex.errors.__all__ else _MODULES[name], name)


def is_public(name: str) -> bool:
    """Return True if a name has a page, here or among the errors."""
    return name in _MODULES or name in ex.errors.__all__


def full_name(name: str) -> str:
    """Return a public name with its module: `explorer.types.Fate`."""
    return f"{_MODULES[name].__name__}.{name}"


def path_of(name: str) -> str:
    """The page of a name; types lie apart, for `Signal` and `signal` are one file on some disks."""
    return f"types/{name}" if inspect.isclass(public(name)) else name


def docstring_of(name: str) -> Docstring:
    """The docstring of a public name, or of what it stands for."""
    return parse(inspect.getdoc(public(name)))


def link_from(page: str, code: str) -> str:
    """The address of the page of what a piece of code names, from another page; empty for none.

    Args:
        page: Its path below the documentation: `reference/explore`.
        code: As it stands in backticks.
    """
    if code[:1].islower() and not code.endswith(")") and not code.startswith(("explorer.", "ex.")):
        return ""  # a parameter may have the name of a function
    return _address(next(names_in(f"`{code}`"), "").partition(".")[0], page)


def _address(name: str, page: str) -> str:
    """The address of the page of a name from another page; empty where it has none, or is that page."""
    if not is_public(name):
        return ""
    target = f"errors/{name}" if name in ex.errors.__all__ else f"reference/{path_of(name)}"
    return "" if target == page else f"{relpath(target, dirname(page))}.md"


def _linked(those: Iterable[str], page: str) -> str:
    return ", ".join(f"[`{name}`]({_address(name, page)})" for name in those)


def _index() -> str:
    rows = ["# Reference", "", "Every public name of `explorer`, each with an example that runs.", ""]
    by_group: dict[str, list[str]] = {group: [] for group in _GROUPS}
    for name in names():
        by_group[_group_of(name)].append(name)
    for group, those in by_group.items():
        rows += [f"## {group}", "", "| name | what it is |", "|---|---|"]
        for name in sorted(those, key=lambda name: (inspect.isclass(public(name)), name.lower())):
            summary = markdown(docstring_of(name).summary, lambda code: link_from("reference/index", code))
            rows.append(f"| [`{name}`]({path_of(name)}.md) | {summary} |")
        rows.append("")
    order = sorted(names(), key=lambda name: (inspect.isclass(public(name)), name.lower()))
    return "\n".join([*rows, "```{toctree}", ":hidden:", "", *map(path_of, order), "```", ""])


def _group_of(name: str) -> str:
    """The group whose rooms name a module most exactly."""
    module = _module_of(name).removeprefix("explorer.")
    fits = [
        (len(room), group)
        for group, rooms in _GROUPS.items()
        for room in rooms
        if module == room or module.startswith(f"{room}.")
    ]
    return max(fits)[1]


def _module_of(name: str) -> str:
    value = public(name)
    return value.__module__ if inspect.isclass(value) else inspect.unwrap(getattr(value, "__func__", value)).__module__


def _page(name: str) -> str:
    value, docstring, path = public(name), docstring_of(name), f"reference/{path_of(name)}"
    rows = [f"# {name}", ""]
    if inspect.isclass(value):
        # Who looks a type up has a value of it: an example says more than how it is made.
        rows += [*body(docstring, path, parts="text examples"), *_near(name, value, path)]
        rows += [*_signature(name, value), *body(docstring, path, parts="entries")]
        for member in members(value):
            rows += _member(member, value, path)
    else:
        rows += [*_signature(name, value), *body(docstring, path), *_near(name, value, path)]
    rows += ["---", "", f"Defined in `{_module_of(name).replace('.', '/')}.py`.".replace("__init__/", ""), ""]
    return "\n".join(rows)


def _signature(name: str, value: Any) -> list[str]:
    if inspect.isclass(value) and not _is_constructed(value):
        return ["```python", f"class {full_name(name)}", "```", ""]
    text = signature(full_name(name), value)
    return ["```python", text.removesuffix(" -> None") if inspect.isclass(value) else text, "```", ""]


def _is_constructed(cls: type) -> bool:
    """Whether the class says how it is made."""
    return cls.__init__ is not object.__init__ or issubclass(cls, tuple)


def body(docstring: Docstring, path: str, parts: str = "text entries examples") -> Iterator[str]:
    """What a page says of a docstring, line by line; `path` is the page's, below the documentation."""

    def text(raw: str) -> str:
        return markdown(raw, lambda code: link_from(path, code))

    if "text" in parts:
        yield from (text(docstring.summary), "")
        if docstring.text:
            yield from (_prose(docstring.text, path), "")
        for heading, section in docstring.sections.items():
            yield from (f"**{heading}**", "", _prose(section, path), "")
    for heading, entries in docstring.entries.items() if "entries" in parts else ():
        yield from ("**Arguments**" if heading == "Args" else f"**{heading}**", "")
        for names_, meaning in entries.items():
            linked = ", ".join(text(f"`{name.strip()}`") for name in names_.split(","))
            yield f"- {linked}: {text(meaning)}"
        yield ""
    for example in docstring.examples if "examples" in parts else ():
        yield from ("**Example**", "", "```pycon", example, "```", "")


def _prose(raw: str, path: str) -> str:
    """Paragraphs as Markdown; what is indented is code, and stays as it is."""
    paragraphs: list[str] = []
    for paragraph in raw.split("\n\n"):
        if paragraph.startswith("    "):
            paragraphs.append(paragraph)
        else:
            paragraphs.append(markdown(paragraph, lambda code: link_from(path, code)))
    return "\n\n".join(paragraphs)


def _member(member: Member, cls: type, path: str) -> Iterator[str]:
    docstring = parse(member.docstring)
    yield from (f"## {member.title(cls)}", "")
    if member.kind == "property":
        kind = return_type(member.function)
        yield from (f"*property*{f' → `{kind}`' if kind else ''}", "")
    else:
        call = signature(f".{member.name}", member.function, bound=member.kind != "static method")
        before = "" if member.kind == "method" else f"# {member.kind}\n"
        yield from ("```python", before + call, "```", "")
    yield from body(docstring, path)


def _near(name: str, value: Any, path: str) -> list[str]:
    """The pages that a page's text and types name, and what gives a value of this type."""
    written = inspect.getdoc(value) or ""
    if inspect.isclass(value):
        written += "\n".join(f"{member.docstring} {_types(member.function)}" for member in members(value))
    else:
        written += _types(value)
    near = dict.fromkeys(other for other in names_in(written) if is_public(other) and other != name)
    rows = []
    if near:
        rows += ["**See also**", "", _linked(sorted(near), path), ""]
    givers = [giver for giver in names() if name in _GIVEN.get(giver, ())]
    if givers and inspect.isclass(value):
        rows += ["**Given by**", "", _linked(givers, path), ""]
    return rows


def _types(function: Any) -> str:
    """The public types of a function's signature, each in backticks."""
    annotations = getattr(function, "__annotations__", {})
    return " ".join(f"`{word}`" for text in annotations.values() for word in _words(str(text)))


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split()


def _given_by() -> dict[str, set[str]]:
    """By public name, the types that it, or a method or property of it, returns."""
    given: dict[str, set[str]] = {}
    for name in names():
        value = public(name)
        functions = [member.function for member in members(value)] if inspect.isclass(value) else [value]
        returns = (str(getattr(function, "__annotations__", {}).get("return", "")) for function in functions)
        given[name] = {word for text in returns for word in _words(text)} - {name}
    return given


_GIVEN = _given_by()
