// Ways through the graph as the picture shows them: which nodes, how far away each is, and what is said of it.

import { type Graph, type Item, isNode, nodeItem } from "../core/graph";
import { count, cut, number, runningIn, units } from "../core/labels";
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
  const steps = new Map(nodes.map((node): [number, number] => [node, 0]));
  return { kind: "critical", message: `critical path: ${units(stage, nodes.length)}, ${message}`, of, steps };
}

/** All that feeds some nodes, or all that they feed. */
export function reachedWay(graph: Graph, kind: Way, nodes: Iterable<number>, of: Item | undefined): ShownWay {
  const steps = reach(graph, nodes, kind === "outputs");
  const what = kind === "inputs" ? "feed it" : "need it";
  return { kind, message: `${number(steps.size - 1)} ${what}; the nearer, the stronger the color`, of, steps };
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
  const message = shortest.length ? `${many}${through}: ${ends}` : "neither feeds the other";
  return { kind: "path", message, of, steps };
}

/** What is at most so many steps away from what is chosen. */
export function nearWay(graph: Graph, stage: string, nodes: Iterable<number>, width: number, of?: Item): ShownWay {
  const steps = near(graph, nodes, width);
  const message = `${units(stage, steps.size)} at most ${count(width, "step")} away (n for more, N for less)`;
  return { kind: "near", message, of, steps };
}

/** What a node reads, out of a loop's body through what calls it. */
function before(graph: Graph, node: number): ArrayLike<number> {
  const operands = graph.operands(node);
  if (operands.length) return operands;
  const computation = graph
    .ancestors(nodeItem(node))
    .reverse()
    .find((group) => graph.c.groups[group]!.caller >= 0);
  return computation === undefined || graph.op(node) !== "parameter" ? [] : [graph.c.groups[computation]!.caller];
}

/** The nodes that run: themselves, or the kernels around them. */
const around = (graph: Graph, nodes: Iterable<number>): Set<number> =>
  new Set(Array.from(nodes, (node) => runningIn(graph, node)));

/** How many steps away from some nodes each is that is at most `most` away; themselves at 0. */
function spread(
  graph: Graph,
  from: Iterable<number>,
  next: (node: number) => ArrayLike<number>,
  most = Infinity,
): Map<number, number> {
  const steps = new Map<number, number>();
  let front = [...around(graph, from)];
  for (let distance = 0; front.length; distance++) {
    for (const node of front) steps.set(node, distance);
    const reached = distance < most ? new Set(front.flatMap((node) => Array.from(next(node)))) : [];
    front = [...reached].filter((node) => !steps.has(node));
  }
  return steps;
}

/** How many steps away each node is that `from` needs (or, with `down`, that needs it); `from` itself at 0. */
export const reach = (graph: Graph, from: Iterable<number>, down: boolean): Map<number, number> =>
  spread(graph, from, (node) => (down ? graph.users(node) : before(graph, node)));

/** How many steps away each node is that is at most `width` away from some, along operands and users. */
export const near = (graph: Graph, from: Iterable<number>, width: number): Map<number, number> =>
  spread(graph, from, (node) => [...Array.from(before(graph, node)), ...graph.users(node)], width);

/**
 * The nodes of a shortest way along the edges from some nodes to others, in either direction; empty if there is none.
 */
export function way(graph: Graph, a: Iterable<number>, b: Iterable<number>): number[] {
  const [start, end] = [around(graph, a), around(graph, b)];
  for (const [from, to] of [
    [start, end],
    [end, start],
  ] as const) {
    const steps = reach(graph, from, true);
    const [nearest] = [...to].filter((node) => steps.has(node)).sort((x, y) => steps.get(x)! - steps.get(y)!);
    if (nearest === undefined) continue;
    const path = [nearest];
    for (let at = nearest; steps.get(at)! > 0; path.push(at))
      at = Array.from(before(graph, at)).find((other) => steps.get(other) === steps.get(at)! - 1) ?? [...from][0]!;
    return path.reverse();
  }
  return [];
}

/** Paths beyond are not counted: numbers are exact up to here. */
export const MOST_COUNTED = 1e15;

export interface Between {
  /** All that is on some path. */
  nodes: ReadonlySet<number>;
  /** One of the shortest paths; empty if neither end feeds the other. */
  shortest: number[];
  /** How many paths there are, at most `MOST_COUNTED`. */
  paths: number;
}

/** All paths along the operands from some nodes to others, in whichever direction there are any. */
export function between(graph: Graph, a: Iterable<number>, b: Iterable<number>): Between {
  const shortest = way(graph, a, b);
  if (!shortest.length) return { nodes: new Set(), shortest, paths: 0 };
  const [start, end] = [around(graph, a), around(graph, b)];
  const [from, to] = start.has(shortest[0]!) ? [start, end] : [end, start];
  const down = reach(graph, from, true);
  const up = reach(graph, to, false);
  const nodes = new Set([...shortest, ...[...down.keys()].filter((node) => up.has(node))].sort((x, y) => x - y));
  // A program's operands come before what reads them.
  const counts = new Map<number, number>();
  for (const node of nodes) {
    let paths = from.has(node) ? 1 : 0;
    for (const operand of new Set(graph.operands(node))) paths += counts.get(operand) ?? 0;
    counts.set(node, Math.min(paths, MOST_COUNTED));
  }
  const paths = [...to].reduce((all, node) => all + (counts.get(node) ?? 0), 0);
  return { nodes, shortest, paths: Math.min(Math.max(paths, 1), MOST_COUNTED) };
}

export interface Critical {
  nodes: number[];
  /** What the way is the longest by: a measure's name, or empty for the number of steps. */
  measure: string;
  /** Its share of the measure's sum over all kernels. */
  share: number;
}

/** The heaviest way through what runs: by time where measured, else FLOPs, else bytes, else the number of steps. */
export function criticalPath(graph: Graph): Critical {
  const measure = ["time", "flops", "bytes"].find((name) => graph.c.measures[name]?.some((value) => value > 0)) ?? "";
  const values = measure ? graph.c.measures[measure]! : undefined;
  const weight = (node: number) => (values ? (graph.isKernel(node) && values[node]! > 0 ? values[node]! : 0) : 1);
  const best = new Float64Array(graph.size);
  const from = new Int32Array(graph.size).fill(-1);
  let [end, sum] = [-1, 0];
  for (let node = 0; node < graph.size; node++) {
    if (runningIn(graph, node) !== node) continue;
    for (const operand of graph.operands(node))
      if (operand < node && (from[node]! < 0 || best[operand]! > best[from[node]!]!)) from[node] = operand;
    best[node] = weight(node) + (from[node]! >= 0 ? best[from[node]!]! : 0);
    sum += weight(node);
    if (end < 0 || best[node]! > best[end]!) end = node;
  }
  const nodes: number[] = [];
  for (let at = end; at >= 0; at = from[at]!) nodes.push(at);
  return { nodes: nodes.reverse(), measure, share: sum > 0 && end >= 0 ? best[end]! / sum : 0 };
}
