// A layered layout from top to bottom, in nearly linear time and the same for the same input. Steps: layers (rank),
// slots for long edges (weave), order in a layer, columns, routes; each connected part by itself, then packed.

import { made } from "../core/buckets";
import { columns } from "./columns";
import { type Dag, rank } from "./rank";
import { type Drawing, route } from "./route";
import { order, weave } from "./weave";

export interface LayoutInput {
  width: Float64Array;
  height: Float64Array;
  edges: Int32Array; // from, to, from, to, …; cycles, self loops and duplicates are allowed
}

export interface LayoutResult {
  x: Float64Array; // of the left border
  y: Float64Array; // of the upper border
  edges: Float64Array[]; // per edge: x0, y0, x1, y1, … from the source's lower border to the target's upper one
  width: number;
  height: number;
}

const ROW = 2200; // pixels: a longer row is wrapped
const GAP = 28;
const APART = 40; // between unconnected parts
const ASPECT = 1.6;

export function layout(input: LayoutInput): LayoutResult {
  const n = input.width.length;
  const parts = connected(n, input.edges).map((part) => draw(part));
  const places = pack(parts.map(({ drawing }) => drawing));

  const x = new Float64Array(n);
  const y = new Float64Array(n);
  const edges: Float64Array[] = new Array(input.edges.length / 2);
  let size = 0;
  for (const { part, drawing } of parts) for (const edge of part.edgeOf) size += drawing.ways[edge]!.length;
  const points = new Float64Array(size); // one buffer, so that a worker can hand it over whole
  let used = 0;
  parts.forEach(({ part, drawing }, i) => {
    const [left, top] = places.at[i]!;
    part.nodes.forEach((node, k) => {
      x[node] = left + drawing.x[k]!;
      y[node] = top + drawing.y[k]!;
    });
    part.edges.forEach((edge, k) => {
      const way = drawing.ways[part.edgeOf[k]!]!;
      const view = points.subarray(used, (used += way.length));
      for (let j = 0; j < way.length; j += 2) {
        view[j] = left + way[j]!;
        view[j + 1] = top + way[j + 1]!;
      }
      edges[edge] = view;
    });
  });
  return { x, y, edges, width: places.width, height: places.height };

  function draw(part: Part): { part: Part; drawing: Drawing } {
    const width = Float64Array.from(part.nodes, (node) => input.width[node]!);
    const height = Float64Array.from(part.nodes, (node) => input.height[node]!);
    if (part.nodes.length === 1 && part.edges.length === 0) {
      const [x, y] = [new Float64Array(1), new Float64Array(1)];
      return { part, drawing: { x, y, ways: [], width: width[0]!, height: height[0]! } };
    }
    const dag: Dag = { width, height, from: part.from, to: part.to };
    const area = width.reduce((sum, w, i) => sum + (w + GAP) * (height[i]! + 2 * GAP), 0);
    const woven = weave(dag, rank(dag, Math.max(ROW, Math.sqrt(area)), GAP));
    return { part, drawing: route(dag, woven, columns(woven, order(woven), width)) };
  }
}

/** A connected part of the graph; its edges without duplicates, between local numbers. */
interface Part {
  nodes: number[];
  from: Int32Array;
  to: Int32Array;
  edges: number[]; // of the input
  edgeOf: number[]; // which of this part each of them is
}

/** The connected parts in the order of their first nodes. */
function connected(n: number, edges: Int32Array): Part[] {
  const root = Int32Array.from({ length: n }, (_, node) => node);
  const find = (node: number) => {
    while (root[node] !== node) node = root[node] = root[root[node]!]!;
    return node;
  };
  for (let i = 0; i < edges.length; i += 2) {
    const [a, b] = [find(edges[i]!), find(edges[i + 1]!)];
    root[Math.max(a, b)] = Math.min(a, b);
  }
  const local = new Int32Array(n);
  const parts: { nodes: number[]; pairs: Map<number, number>; edges: number[]; edgeOf: number[] }[] = [];
  const partOf = new Int32Array(n);
  for (let node = 0; node < n; node++) {
    const first = find(node);
    if (first === node) partOf[node] = parts.push({ nodes: [], pairs: new Map(), edges: [], edgeOf: [] }) - 1;
    local[node] = parts[partOf[first]!]!.nodes.push(node) - 1;
  }
  for (let i = 0; i < edges.length; i += 2) {
    const part = parts[partOf[find(edges[i]!)]!]!;
    const pair = local[edges[i]!]! * part.nodes.length + local[edges[i + 1]!]!;
    part.edges.push(i / 2);
    part.edgeOf.push(made(part.pairs, pair, () => part.pairs.size));
  }
  return parts.map(({ nodes, pairs, ...rest }) => ({
    nodes,
    from: Int32Array.from(pairs.keys(), (pair) => Math.floor(pair / nodes.length)),
    to: Int32Array.from(pairs.keys(), (pair) => pair % nodes.length),
    ...rest,
  }));
}

/** Places boxes in rows of columns, the highest first, so that all together are a little wider than high. */
function pack(boxes: { width: number; height: number }[]): { at: [number, number][]; width: number; height: number } {
  const area = boxes.reduce((sum, { width, height }) => sum + (width + APART) * (height + APART), 0);
  const limit = boxes.reduce((most, { width }) => Math.max(most, width), Math.sqrt(area * ASPECT));
  const at: [number, number][] = new Array(boxes.length);
  let [width, bottom] = [0, -APART]; // of all rows
  let [top, left, right, next] = [0, 0, -APART, 0]; // of the row, and of its last column with the next free place in it
  for (const i of [...boxes.keys()].sort((a, b) => boxes[b]!.height - boxes[a]!.height || a - b)) {
    const box = boxes[i]!;
    if (next + box.height > bottom || left + box.width > limit) {
      left = right + APART;
      next = top;
      if (left + box.width > limit || bottom < 0) [top, left, right, next] = [bottom + APART, 0, 0, bottom + APART];
    }
    at[i] = [left, next];
    next += box.height + APART;
    right = Math.max(right, left + box.width);
    width = Math.max(width, right);
    bottom = Math.max(bottom, at[i]![1] + box.height);
  }
  return { at, width, height: Math.max(0, bottom) };
}
