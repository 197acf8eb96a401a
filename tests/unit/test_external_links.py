"""Links to other sites, as they are written: no network is asked whether they lead somewhere."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

from explorer.pitfalls.rule import all_rules

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"https?://[\w.-]+\.[a-z]{2,}[^\s)>\"'`}\\\]]*")
RESERVED = re.compile(r"(^|\.)example(\.\w+)?$")  # names that nobody owns, for examples
# A file of a branch is another one tomorrow; numbers of issues and documentation's own addresses stay.
MOVING = re.compile(r"/(?:blob|tree|raw)/(?:main|master|HEAD)/")


def written() -> dict[str, list[str]]:
    """Where each link stands, by link: documents, docstrings, rules, notebooks."""
    texts = {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
        for file in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.yml")]
        if "_build" not in file.parts
    }
    for file in (ROOT / "explorer").rglob("*.py"):
        texts[str(file.relative_to(ROOT))] = file.read_text(encoding="utf-8")
    for file in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        texts[str(file.relative_to(ROOT))] = "\n".join("".join(cell["source"]) for cell in cells)
    links: dict[str, list[str]] = {rule.documentation: ["explorer/pitfalls/rule.py"] for rule in all_rules()}
    for name, text in texts.items():
        for link in (link for link in LINK.findall(text) if "{" not in link):  # what a program puts together
            if not RESERVED.search(urlsplit(link).hostname or "") and "w3.org" not in link:  # a namespace is no link
                links.setdefault(link.rstrip(".,;:*"), []).append(name)
    return links


LINKS = written()


def test_links_are_found_in_every_kind_of_text():
    kinds = {Path(name).suffix for names in LINKS.values() for name in names}
    assert kinds == {".md", ".py", ".ipynb"}
    assert len(LINKS) > 80


def test_links_are_encrypted_and_name_no_file_of_a_moving_branch():
    assert [link for link in LINKS if link.startswith("http:") or MOVING.search(link)] == []


def test_a_place_has_one_spelling():
    spellings: dict[str, set[str]] = {}
    for link in LINKS:
        parts = urlsplit(link)
        path = re.sub(r"/pull/", "/issues/", parts.path.rstrip("/").removesuffix(".html"))
        place = f"{(parts.hostname or '').removeprefix('www.')}{path}#{parts.fragment}".lower()
        spellings.setdefault(place, set()).add(link)
    assert [links for links in spellings.values() if len(links) > 1] == []


def test_pages_of_jax_are_those_of_its_latest_documentation():
    jax = [link for link in LINKS if "docs.jax.dev" in link or "jax.readthedocs" in link]
    assert jax
    page = re.compile(r"https://docs\.jax\.dev/en/latest/[\w./-]+\.html(#[\w.-]+)?$")
    assert [link for link in jax if not page.match(link)] == []
