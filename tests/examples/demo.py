"""The main job without a notebook: explore the training step, write the view to a page, print what there is to see."""

import sys

import explorer as ex
from tests.examples.training import training_step


def demo(path, layers=4):
    """Write the page, and return the summary as text."""
    step, arguments = training_step(layers)
    capture = ex.explore(step, *arguments)
    page = capture.to_html(path).resolve()
    return f"{summary(capture)}\n  {page}  {page.stat().st_size / 1e6:.1f} MB, opens in any browser"


def summary(capture):
    words = {"jaxpr": "equations", "stablehlo": "operations", "hlo": "instructions"}
    lines = [capture.function + capture.signature]
    for stage in capture.stages:
        count = f"{len(stage.graph):,} {words[stage.name]}"
        share = int(100 * capture.coverage(stage.name))
        lines.append(f"  {stage.name:<10} {count:<20} {share:3}% with a source line")
    nodes = list(capture.hlo.graph.nodes)
    fusions = sum(node.op == "fusion" for node in nodes)
    fused = sum(node.group is not None and node.group.kind == "fusion" for node in nodes)
    lines.append(
        f"  {'':<10} {f'{fusions:,} fusions':<20} {fused / len(nodes):4.0%} of the instructions are inside one"
    )
    seconds = capture.durations
    lines.append(f"  trace {seconds.trace:.2f} s · lower {seconds.lower:.2f} s · compile {seconds.compile:.2f} s")
    return "\n".join(lines)


if __name__ == "__main__":
    print(demo(*sys.argv[1:2] or ["report.html"]))
