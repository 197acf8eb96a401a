"""The reference has a page for each public name, with its signature, what it takes and an example."""

import inspect
import re
from pathlib import PurePosixPath

import pytest

import explorer as ex
from docs.pages import reference
from docs.pages.docstrings import markdown, parse
from docs.pages.members import members
from docs.pages.signatures import signature

PAGES = reference.pages()
NAMES = reference.names()


@pytest.mark.parametrize("name", NAMES)
def test_each_public_name_has_a_page_with_an_example(name):
    page = PAGES[reference.path_of(name)]
    assert page.startswith(f"# {name}\n")
    assert parse(inspect.getdoc(reference.public(name))).has_example  # `test_doctests.py` runs it
    assert "```pycon\n>>> " in page


@pytest.mark.parametrize("name", [name for name in NAMES if inspect.isclass(reference.public(name))])
def test_the_page_of_a_type_has_its_methods_and_properties(name):
    page = PAGES[reference.path_of(name)]
    cls = reference.public(name)
    public = {key for key in dir(cls) if not key.startswith("_") and inspect.getattr_static(cls, key).__doc__}
    assert [member.name for member in members(cls) if f"\n## {member.title(cls)}\n" not in page] == []
    assert {member.name for member in members(cls)} <= public | {"__call__", "__getitem__", "__len__", "__iter__"} | {
        "__contains__",
        "__enter__",
    }


def test_every_page_is_in_the_index_and_links_to_pages_that_are_there():
    toc = PAGES["index"].partition("```{toctree}")[2]
    for path, page in PAGES.items():
        assert path == "index" or f"\n{path}\n" in toc
        assert "]()" not in page
        for target in re.findall(r"\]\(([^)]+)\.md\)", page):
            parts: list[str] = []
            for part in (PurePosixPath("reference", path).parent / target).parts:
                parts = parts[:-1] if part == ".." else [*parts, part]
            section, _, rest = "/".join(parts).partition("/")
            assert (section == "reference" and rest in PAGES) or (section == "errors" and rest in ex.errors.__all__)


def test_no_page_has_an_address_of_this_process_or_a_place_of_this_machine():
    for path, page in PAGES.items():
        assert " at 0x" not in page, path
        assert ex.__path__[0] not in page, path


def test_a_signature_is_written_as_a_person_would():
    def short(x: "int", /, *, y: "str" = "a") -> "bool": ...

    assert signature("f", short) == 'f(x: int, /, *, y: str = "a") -> bool'

    def long(
        a_first_argument: "int", a_second_argument: "int", *many: "float", a_third: "int" = 30000
    ) -> "tuple[int, ...]": ...

    assert signature("f", long) == (
        "f(\n    a_first_argument: int,\n    a_second_argument: int,\n    *many: float,\n    a_third: int = 30000,\n"
        ") -> tuple[int, ...]"
    )


def test_a_docstring_is_split_into_what_a_page_shows():
    parsed = parse(
        """First sentence
        goes on.

        More of it.

        Args:
            x, y: Numbers,
                two of them.

        Raises:
            OptionError: One is `odd`.

        Example:
            >>> 1 + 1  # doctest: +SKIP
            2
        """
    )
    assert (parsed.summary, parsed.text) == ("First sentence goes on.", "More of it.")
    assert parsed.entries == {"Args": {"x, y": "Numbers, two of them."}, "Raises": {"OptionError": "One is `odd`."}}
    assert parsed.examples == (">>> 1 + 1\n2",)


def test_text_is_escaped_and_code_is_not():
    assert markdown("a*b <c> `d*e`") == "a\\*b \\<c> `d*e`"
    assert markdown("see `explore`", lambda name: f"{name}.md") == "see [`explore`](explore.md)"
