"""The documents name files that are there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("docs/architecture.md", "CONTRIBUTING.md", "README.md", "SECURITY.md")
# A path in code marks, whole or its end: `model/graph.py`, `rules/`.
_PATH = re.compile(r"`((?:[\w.\-]+/)*[\w.\-]+(?:/|\.py|\.ts|\.md|\.toml))`")
# A test in a row of SECURITY.md, after its file, and a part of its name.
_TEST = re.compile(r"`(?:tests/)?([\w/]+\.py)`|`…(\w+)…?`")
_LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)\)")


def tracked():
    """Every file of the repository and every folder, these with a slash at the end."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("this is no git checkout")
    files = [Path(line) for line in listed.stdout.splitlines()]
    return {str(file) for file in files} | {f"{folder}/" for file in files for folder in file.parents}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_and_folder_that_a_document_names_is_there(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    ends = tuple(f"/{path}" for path in tracked())
    missing = [path for path in _PATH.findall(text) if not any(end.endswith(f"/{path}") for end in ends)]
    unlinked = [path for path in _LINK.findall(text) if not (ROOT / document).parent.joinpath(path).exists()]
    assert (missing, unlinked) == ([], [])


def test_the_tests_that_hold_a_promise_of_security_are_there():
    named = list[tuple[str, str]]()
    for row in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines():
        file = ""
        for path, name in _TEST.findall(row) if row.startswith("| ") else ():
            file = path or file
            named += [(file, name)] if name else []
    assert len(named) >= 10
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    for file, name in named:
        assert any(f"{path}".endswith(file) and re.search(rf"def test_\w*{name}", texts[path]) for path in texts), name
