"""What users ask of a value that another room answers: each declared method with the function behind it.

The declarations stand on the values in `explorer/model`, decorated with `attached`; this is the only place that knows
both a value and who analyses, writes or shows it.
"""

from explorer.model.attached import attach

__all__ = ["attach_methods"]

_METHODS = {
    "Graph.where": "explorer.analysis.query:where",
    "Graph.with_attributes_of": "explorer.capture.readers.reread:with_attributes_of",
    "Graph.to_model_explorer_json": "explorer.files.model_explorer:write_graph",
    "Capture.to_model_explorer_json": "explorer.files.model_explorer:write_capture",
    "Graph.kernel": "explorer.analysis.cost.kernels:kernel_of",
    "Graph.placed": "explorer.analysis.links.placement:placed",
    "Graph.hierarchy": "explorer.analysis.outline.hierarchy:nest",
    "Capture.links": "explorer.analysis.links.provenance:link_stages",
    "Capture.all_fates": "explorer.analysis.fates.fates:all_fates",
    "Capture.lines": "explorer.analysis.cost.lines:line_table",
    "Capture.live_memory": "explorer.analysis.memory.live_memory:live_memory",
    "Passes.links": "explorer.analysis.passes.links:pass_links",
    "Passes.history": "explorer.analysis.passes.history:history",
    "LineTable.to_frame": "explorer.files.frames:line_frame",
    "Capture.save": "explorer.files.capture:save",
    "Capture.load": "explorer.files.capture:load",
    "Capture.wire": "explorer.files.capture:encode",
    "Ledger._open_spill": "explorer.files.ledger_lines:Spill",
    "Ledger.storms": "explorer.analysis.recompiles.storms:storms",
    "Ledger.storm_of": "explorer.analysis.recompiles.storms:storm_of",
    "Ledger.varying": "explorer.analysis.recompiles.varying:varying",
    "Ledger.tree": "explorer.analysis.recompiles.stack_tree:stack_tree",
    "Ledger.merge": "explorer.analysis.recompiles.merge:merge",
    "Ledger.to_frame": "explorer.files.ledger_frame:ledger_frame",
    "Ledger.save": "explorer.files.ledger_lines:save",
    "Ledger.load": "explorer.files.ledger_reader:load",
    "Ledger.__repr__": "explorer.analysis.recompiles.summary:ledger_repr",
    "Profile.equations": "explorer.analysis.profile.equations:equation_times",
    "Profile.flame": "explorer.analysis.profile.flame:flame_of_profile",
    "Profile.op_parts": "explorer.analysis.profile.op_parts:op_parts",
    "Profile.with_peaks": "explorer.analysis.profile.waste:with_peaks",
    "Profile.to_frame": "explorer.files.result_frames:profile_frame",
    "Profile.to_perfetto": "explorer.files.profile_export:write_perfetto",
    "Profile.to_xprof": "explorer.files.profile_export:write_xprof",
    "Profile.__repr__": "explorer.analysis.profile.text:profile_text",
    "Saved.save": "explorer.files.results:save",
    "Saved.load": "explorer.files.results:load",
    "Timing.to_frame": "explorer.files.result_frames:timing_frame",
    "Comparison.to_frame": "explorer.files.result_frames:comparison_frame",
    "MemoryUse.to_frame": "explorer.files.result_frames:memory_frame",
    "Roofline.to_frame": "explorer.files.result_frames:roofline_frame",
    "Sweep.headline": "explorer.analysis.sweep_summary:headline",
    "Sweep.to_frame": "explorer.files.result_frames:sweep_frame",
    "Variant.diff": "explorer.analysis.what_if_summary:variant_diff",
    "Variant.verdict": "explorer.analysis.what_if_summary:verdict",
    "WhatIf.headline": "explorer.analysis.what_if_summary:headline",
    "WhatIf.to_frame": "explorer.files.result_frames:what_if_frame",
    "Fix.apply": "explorer.view.findings.link:apply_fix",
    "Findings.to_frame": "explorer.files.findings:to_frame",
    "Findings.to_sarif": "explorer.files.sarif:to_sarif",
    "Findings.to_json": "explorer.files.findings:to_json",
    "Findings.from_json": "explorer.files.findings:from_json",
    "Findings.to_dict": "explorer.files.findings:to_dict",
    "Findings.from_dict": "explorer.files.findings:from_dict",
    "Findings.fix": "explorer.pitfalls.fixes.fixing:fix",
    "Findings.recheck": "explorer.pitfalls.stale:recheck",
    "Findings.can_fix": "explorer.pitfalls.fixes.rewrite:can_fix",
    "Findings.of_trace": "explorer.pitfalls.passive_rules:check",
    "Capture.view": "explorer.view.capture:live_view",
    "Capture.widget": "explorer.view.widgets:Viewer",
    "Charted.chart": "explorer.view.display:chart",
    "Displayable.__rich__": "explorer.view.display:rich",
    "Displayable._repr_mimebundle_": "explorer.view.display:mimebundle",
    "Displayable.to_html": "explorer.view.display:to_html",
    "Displayable.to_text": "explorer.view.display:to_text",
    "Ledger._ipython_display_": "explorer.view.ledger:display_live",
    "Pictured.to_png": "explorer.view.display:to_png",
    "Pictured.to_svg": "explorer.view.display:to_svg",
    "Profile.flame_chart": "explorer.view.measure.profile.chart:flame_chart",
}


def attach_methods() -> None:
    """Name the function behind each declared method; none of the rooms is loaded by it."""
    attach(_METHODS)
