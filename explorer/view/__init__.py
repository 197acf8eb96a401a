"""Values as text, pictures, pages, charts and widgets: `display.py` is the seam, `registry.py` names the views."""
