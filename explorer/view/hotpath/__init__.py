"""Views of hot paths: page, figure, tables and live view."""
