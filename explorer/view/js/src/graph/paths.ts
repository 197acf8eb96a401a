// Along the edges: everything that feeds a node, everything it feeds, the way from one to another, the longest way.

import type { Graph } from "../core/graph";
import { nodeItem } from "../core/item";

/** The node that runs: itself, or the kernel around it. */
function running(graph: Graph, node: number): number {
  for (let steps = 0; steps < 8; steps++) {
    const group = graph.c.groups[graph.c.groupOf[node]!];
    if (!group || group.caller < 0 || !/^(fusion|apply)$/.test(group.kind)) break;
    node = group.caller;
  }
  return node;
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

/** How many steps away each node is that `from` needs (or, with `down`, that needs it); `from` itself at 0. */
export function reach(graph: Graph, from: Iterable<number>, down: boolean): Map<number, number> {
  const steps = new Map<number, number>();
  let front = [...new Set([...from].map((node) => running(graph, node)))];
  for (const node of front) steps.set(node, 0);
  for (let distance = 1; front.length; distance++) {
    const next: number[] = [];
    for (const node of front)
      for (const other of Array.from(down ? graph.users(node) : before(graph, node)))
        if (!steps.has(other)) {
          steps.set(other, distance);
          next.push(other);
        }
    front = next;
  }
  return steps;
}

/**
 * The nodes of a shortest way along the edges from some nodes to others, in either direction; empty if there is none.
 */
export function way(graph: Graph, a: Iterable<number>, b: Iterable<number>): number[] {
  const ends = [a, b].map((nodes) => new Set([...nodes].map((node) => running(graph, node)))) as [
    Set<number>,
    Set<number>,
  ];
  for (const [from, to] of [ends, [ends[1], ends[0]]] as const) {
    const steps = reach(graph, from, true);
    const reached = [...to].filter((node) => steps.has(node)).sort((x, y) => steps.get(x)! - steps.get(y)!);
    if (!reached.length) continue;
    const path = [reached[0]!];
    for (let at = reached[0]!; steps.get(at)! > 0; path.push(at))
      at =
        Array.from(before(graph, at)).find((operand) => steps.get(operand) === steps.get(at)! - 1) ??
        Array.from(from)[0]!;
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
  const sides = [a, b].map((nodes) => new Set([...nodes].map((node) => running(graph, node))));
  const [from, to] = sides[0]!.has(shortest[0]!) ? sides : sides.reverse();
  const down = reach(graph, from!, true);
  const up = reach(graph, to!, false);
  const nodes = new Set([...shortest, ...[...down.keys()].filter((node) => up.has(node))].sort((x, y) => x - y));
  // A program's operands come before what reads them.
  const counts = new Map<number, number>();
  for (const node of nodes) {
    let paths = from!.has(node) ? 1 : 0;
    for (const operand of new Set(graph.operands(node))) paths += counts.get(operand) ?? 0;
    counts.set(node, Math.min(paths, MOST_COUNTED));
  }
  const paths = [...to!].reduce((all, node) => all + (counts.get(node) ?? 0), 0);
  return { nodes, shortest, paths: Math.min(Math.max(paths, 1), MOST_COUNTED) };
}

/** How many steps away each node is that is at most `width` away from some, along operands and users. */
export function near(graph: Graph, from: Iterable<number>, width: number): Map<number, number> {
  let front = [...new Set([...from].map((node) => running(graph, node)))];
  const steps = new Map(front.map((node): [number, number] => [node, 0]));
  for (let distance = 1; distance <= width && front.length; distance++) {
    const next: number[] = [];
    for (const node of front)
      for (const other of [...Array.from(before(graph, node)), ...graph.users(node)])
        if (!steps.has(other)) {
          steps.set(other, distance);
          next.push(other);
        }
    front = next;
  }
  return steps;
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
    if (running(graph, node) !== node) continue;
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
