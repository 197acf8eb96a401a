"""`python -m docs.pages FOLDER`: write the generated pages below it."""

import sys
from pathlib import Path

from docs.pages import write_pages

write_pages(Path(sys.argv[1]))
