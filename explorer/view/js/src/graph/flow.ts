// What flows along a line between two boxes: the arrays that one makes and the other reads.

import type { Stage } from "../core/capture";
import type { Graph } from "../core/graph";
import { type Item, isRest } from "../core/item";
import { bytesOf, bytesText, count, shortType } from "../core/labels";

const MOST = 20_000; // nodes that are searched for one line

/**
 * `f32[8,128] · 4.1 kB`, or how many arrays of how many bytes in all; empty where that would take long. Of several
 * devices with the axes that split it, `f32[64@data,128] · 4.1 kB each`.
 */
export function flowText({ graph, shardings }: Pick<Stage, "graph" | "shardings">, from: Item, to: Item): string {
  if (isRest(from) || isRest(to)) return "";
  const [start, end] = graph.range(from);
  const [first, last] = graph.range(to);
  if (last - first > MOST) return "";
  const operands = new Set<number>();
  for (let i = first; i < last; i++)
    for (const operand of graph.operands(graph.order[i]!)) {
      const at = graph.at[operand]!;
      if (at >= start && at < end) operands.add(operand);
    }
  if (!operands.size) return "";
  const bytes = [...operands].reduce((all, node) => all + bytesOf(graph.type(node)), 0);
  const only = operands.size === 1 ? [...operands][0]! : undefined;
  if (only !== undefined && shardings) return `${shardings.text(only)} · ${bytesText(bytes)} each`;
  const what = only !== undefined ? typeText(graph, only) : count(operands.size, "array");
  return `${what} · ${bytesText(bytes)}`;
}

/** `f32[b≤64,s≤32,8]`: of an array that is padded, with the dimensions that vary. */
function typeText(graph: Graph, node: number): string {
  const type = shortType(graph.type(node));
  const padded = graph.attributes?.get(node, "padded");
  if (!padded) return type;
  const sizes = type.slice(type.indexOf("[") + 1, -1).split(",");
  for (const part of padded.split(/,(?=\d+=)/)) {
    const at = part.indexOf("=");
    const axis = Number(part.slice(0, at));
    sizes[axis] = `${part.slice(at + 1)}≤${sizes[axis]}`;
  }
  return `${type.slice(0, type.indexOf("["))}[${sizes.join(",")}]`;
}
