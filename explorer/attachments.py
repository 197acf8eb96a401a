"""What users ask of a value that another room answers: each declared method with the function behind it.

The declarations stand on the values in `explorer/model`, decorated with `attached`; this is the only place that knows
both a value and who analyses, writes or shows it.
"""

from explorer.model.attached import attach

__all__ = ["attach_methods"]

_METHODS = {
    "Graph.where": "explorer.analysis.query:where",
    "Graph.to_model_explorer_json": "explorer.files.model_explorer:write_graph",
    "Capture.to_model_explorer_json": "explorer.files.model_explorer:write_capture",
    "Capture.load": "explorer.files.capture:load",
    "Capture.wire": "explorer.files.capture:encode",
}


def attach_methods() -> None:
    """Name the function behind each declared method; none of the rooms is loaded by it."""
    attach(_METHODS)
