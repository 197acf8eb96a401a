// Ways through the graph as the picture shows them: which nodes, how far away each is, and what is said of it.

import type { Graph } from "../core/graph";
import { type Item, isNode } from "../core/item";
import { count, cut, number, units } from "../core/labels";
import { between, criticalPath, MOST_COUNTED, near, reach } from "./paths";
import type { Way } from "./tools";

export interface ShownWay {
  kind: Way | "path" | "near";
  message: string;
  /** What was chosen when it was drawn. */
  of: Item | undefined;
  /** How far away each node on it is: the nearest are drawn the strongest. */
  steps: ReadonlyMap<number, number>;
}

const nodesOf = (graph: Graph, item: Item): number[] => (isNode(item) ? [item.node] : Array.from(graph.nodesOf(item)));

export function criticalWay(graph: Graph, stage: string, of: Item | undefined): ShownWay {
  const { nodes, measure, share } = criticalPath(graph);
  const message = measure
    ? `${Math.round(100 * share)}% of all ${measure === "flops" ? "FLOPs" : measure} are on it`
    : "by the number of steps";
  return {
    kind: "critical",
    message: `critical path: ${units(stage, nodes.length)}, ${message}`,
    of,
    steps: new Map(nodes.map((node) => [node, 0])),
  };
}

/** All that feeds some nodes, or all that they feed. */
export function reachedWay(graph: Graph, kind: Way, nodes: Iterable<number>, of: Item | undefined): ShownWay {
  const steps = reach(graph, nodes, kind === "outputs");
  const what = kind === "inputs" ? "feed it" : "need it";
  return { kind, message: `${number(steps.size - 1)} ${what}, the nearest the strongest`, of, steps };
}

/** All paths between two items; the shortest is the strongest. */
export function pathsBetween(graph: Graph, from: Item, to: Item, of: Item | undefined): ShownWay | undefined {
  const [a, b] = [nodesOf(graph, from), nodesOf(graph, to)];
  if (!a.length || !b.length) return undefined;
  const { nodes, shortest, paths } = between(graph, a, b);
  const names = shortest.map((node) => graph.name(node));
  const ends = cut([names[0], names.length > 2 ? "…" : "", names[names.length - 1]].filter(Boolean).join(" → "), 80);
  const many = paths < MOST_COUNTED ? count(paths, "path") : `more than ${number(MOST_COUNTED)} paths`;
  const length = count(shortest.length - 1, "step");
  const through = paths > 1 ? ` through ${number(nodes.size)} nodes, the shortest of ${length}` : ` of ${length}`;
  const steps = new Map([a[0]!, b[0]!].map((node): [number, number] => [node, 0]));
  for (const node of nodes) steps.set(node, 1);
  for (const node of shortest) steps.set(node, 0);
  return {
    kind: "path",
    message: shortest.length ? `${many}${through}: ${ends}` : "neither feeds the other",
    of,
    steps,
  };
}

/** What is at most so many steps away from what is chosen. */
export function nearWay(graph: Graph, stage: string, nodes: Iterable<number>, width: number, of?: Item): ShownWay {
  const steps = near(graph, nodes, width);
  const message = `${units(stage, steps.size)} at most ${count(width, "step")} away (n for more, N for less)`;
  return { kind: "near", message, of, steps };
}
