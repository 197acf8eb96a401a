"""The documents name files that are there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("docs/architecture.md", "CONTRIBUTING.md", "README.md")
# A path in code marks, whole or its end: `model/graph.py`, `rules/`.
_PATH = re.compile(r"`((?:[\w.\-]+/)*[\w.\-]+(?:/|\.py|\.ts|\.md|\.toml))`")
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
