// What a program costs as boxes in rows: the whole, its phases and layers, the lines of the source in these, and each
// line's kernels. Nothing is drawn here.

import { made } from "../core/buckets";
import type { Capture, LineCost } from "../core/capture";
import { type Graph, type Item, isGroup, nodeItem } from "../core/graph";
import { IN_GRAPH, type Measure } from "../lines/line_costs";

/** What a box stands for; `rest`: parts of what is above it that are too small for boxes of their own. */
export type Target =
  | { kind: "whole" }
  | { kind: "item"; item: Item }
  | { kind: "line"; file: string; line: number }
  | { kind: "unlinked" }
  | { kind: "kernel"; kernel: number; of: LineCost | undefined }
  | { kind: "rest"; parts: number; of: Target };

export interface Part {
  target: Target;
  /** Where it begins and how wide it is, in shares of the whole. */
  from: number;
  share: number;
  /** The rows that it is in: `bottom` is not one of them. */
  top: number;
  bottom: number;
  /** The kernels that it stands for, where they are not those of an item. */
  kernels: number[];
}

export interface Icicle {
  parts: Part[];
  rows: number;
  total: number;
  /** Kernels whose cost is not known: they have no box. */
  unknown: number;
}

interface Tree {
  target: Target;
  cost: number;
  /** By this its siblings stand in a row: the program's order. */
  order: number;
  children: Map<unknown, Tree>;
  kernels: number[];
}

const PHASES = ["forward", "backward", "update"];

/**
 * Boxes of what each part costs by a measure.
 *
 * @param levels How many rows of groups stand above the lines, at most.
 * @param least The share below which a part gets no box of its own.
 */
export function icicle(capture: Capture, measure: Measure, levels: number, least: number): Icicle {
  const { graph } = capture.stage("hlo");
  const { lines } = capture.header;
  const costs = capture.kernelLines;
  const amount = costs?.amounts[measure] ?? [];
  const root = tree({ kind: "whole" }, 0);
  const paths = new Map<number, Item[]>(); // kernels of one group have one path
  let depth = 0;
  for (let row = 0; row < amount.length; row++) {
    const value = amount[row]!;
    if (!(value > 0)) continue;
    const kernel = costs!.kernel[row]!;
    const group = graph.c.groupOf[kernel]!;
    const path = made(paths, group, () => pathTo(graph, kernel).slice(0, levels));
    depth = Math.max(depth, path.length);
    const of = lines[costs!.line[row]!];
    let at = add(root, kernel, value);
    for (const item of path) {
      const order = isGroup(item) ? phaseOrder(graph, item.group) : 0;
      at = add(child(at, item, { kind: "item", item }, order || kernel), kernel, value);
    }
    const line: Target = of?.file ? { kind: "line", file: of.file, line: of.line } : { kind: "unlinked" };
    at = add(child(at, of?.file ? of : undefined, line, of?.file ? costs!.line[row]! : Infinity), kernel, value);
    add(child(at, kernel, { kind: "kernel", kernel, of }, kernel), kernel, value);
  }
  const parts: Part[] = [];
  if (root.cost > 0) place(root, 0, 0, { bottom: depth + 1, least, total: root.cost, parts });
  return { parts, rows: depth + 3, total: root.cost, unknown: unknownCosts(graph, measure) };
}

function unknownCosts(graph: Graph, measure: Measure): number {
  const values = graph.c.measures[IN_GRAPH[measure]];
  if (!values) return 0;
  return values.reduce((sum, value, node) => sum + (Number.isNaN(value) && graph.isKernel(node) ? 1 : 0), 0);
}

/** What is around a kernel, outermost first; a repeat stands for its iterations, a call for what it calls. */
function pathTo(graph: Graph, kernel: number): Item[] {
  const groups = graph.ancestors(nodeItem(kernel)).filter((group) => graph.c.groups[group]!.kind !== "iteration");
  return [...new Set(groups.map((group) => graph.itemOf(group)))];
}

/** Negative for a phase, by its order; 0 for others. */
function phaseOrder(graph: Graph, group: number): number {
  const { kind, name } = graph.c.groups[group]!;
  return kind === "phase" ? PHASES.indexOf(name.split(" ")[0]!) - PHASES.length : 0;
}

const tree = (target: Target, order: number): Tree => ({ target, cost: 0, order, children: new Map(), kernels: [] });

const child = (of: Tree, key: unknown, target: Target, order: number): Tree =>
  made(of.children, key, () => tree(target, order));

function add(to: Tree, kernel: number, cost: number): Tree {
  to.cost += cost;
  if (to.kernels.at(-1) !== kernel) to.kernels.push(kernel);
  return to;
}

interface Drawing {
  /** The row of the lines. */
  bottom: number;
  least: number;
  total: number;
  parts: Part[];
}

function place({ target, cost, children, kernels }: Tree, from: number, top: number, drawing: Drawing): void {
  const { total, least, parts } = drawing;
  const isLine = target.kind === "line" || target.kind === "unlinked";
  // A line that no group is around reaches up to where the groups begin.
  const bottom = isLine ? drawing.bottom + 1 : target.kind === "kernel" ? drawing.bottom + 2 : top + 1;
  parts.push({ target, from, share: cost / total, top, bottom, kernels });
  const sorted = [...children.values()].sort((a, b) => a.order - b.order);
  const isSmall = (part: Tree) => part.cost < least * total;
  const small = sorted.filter(isSmall);
  let at = from;
  for (const part of sorted) {
    if (small.length > 1 && isSmall(part)) continue;
    place(part, at, bottom, drawing);
    at += part.cost / total;
  }
  if (small.length < 2) return;
  parts.push({
    target: { kind: "rest", parts: small.length, of: target },
    from: at,
    share: small.reduce((sum, part) => sum + part.cost, 0) / total,
    top: bottom,
    bottom: drawing.bottom + 2,
    kernels: [...new Set(small.flatMap((part) => part.kernels))],
  });
}
