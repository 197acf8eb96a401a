// From edges to links between neighbouring layers. An edge that passes layers gets a slot in each of them, and shares
// it: with all edges of its source (one value is one trunk that branches), or with all edges of a target that
// gathers very many (the tuple a computation returns). In a layer, items stand in the program's order to begin with;
// then a few sweeps put them near their neighbours.

import { type Buckets, buckets } from "../core/buckets";
import type { Dag, Ranks } from "./rank";

/** Nodes come first among the items, then the slots. Link l leads from `upper[l]` to `lower[l]`, one layer below. */
export interface Weave {
  nodes: number;
  layer: Int32Array; // per item
  layers: number;
  to: Int32Array; // per edge
  owner: Int32Array; // per item: the node it stands for, itself for a node
  upper: Int32Array;
  lower: Int32Array;
  gathers: Uint8Array; // per link: it ends in a slot shared with other sources
  paths: Int32Array[]; // per edge: its links from top to bottom; empty where it goes along the side
  bySide: Uint8Array; // per edge
  hub: Uint8Array; // per node: gathers so many edges that they share slots
}

const MANY = 8; // operands

export function weave(dag: Dag, { layer: rankOf, layers, back }: Ranks): Weave {
  const { from, to } = dag;
  const nodes = dag.width.length;
  const degree = new Int32Array(nodes);
  for (const node of to) degree[node]!++;
  const hub = Uint8Array.from(degree, (count) => (count > MANY ? 1 : 0));

  // Slots are granted to short edges first and are limited, so that all that follows stays linear.
  const bySide = back.slice();
  const bySpan = buckets(
    layers,
    Int32Array.from(from, (node, edge) => Math.max(0, rankOf[to[edge]!]! - rankOf[node]!)),
  );
  const end = new Int32Array(nodes).fill(-1); // a source's trunk goes down to this layer
  const start = new Int32Array(nodes).fill(layers); // a hub's begins in this one
  let slots = 2_000 + 2 * (nodes + from.length);
  let steps = 20_000 + 40 * (nodes + from.length);
  for (const edge of bySpan.list) {
    if (back[edge]) continue;
    const [source, target] = [from[edge]!, to[edge]!];
    const [first, last] = [rankOf[source]! + 1, rankOf[target]! - 1];
    if (first > last) continue;
    const have = hub[target] ? Math.min(start[target]!, last + 1) : Math.max(end[source]!, first - 1);
    const more = Math.max(0, hub[target] ? have - first : last - have);
    if (more > slots || last - first > steps) {
      bySide[edge] = 1;
      continue;
    }
    slots -= more;
    steps -= last - first;
    if (hub[target]) start[target] = Math.min(have, first);
    else end[source] = Math.max(have, last);
  }

  const layer: number[] = Array.from(rankOf);
  const owner: number[] = Array.from(rankOf, (_, node) => node);
  const upper: number[] = [];
  const lower: number[] = [];
  const gathers: number[] = [];
  const link = (above: number, below: number, shared: boolean) => {
    upper.push(above);
    lower.push(below);
    gathers.push(shared ? 1 : 0);
    return upper.length - 1;
  };
  const slot = (node: number, row: number) => {
    owner.push(node);
    layer.push(row);
    return owner.length - 1;
  };

  const trunk = new Int32Array(nodes); // slot of the source's trunk in layer 0, were it that long; likewise its link
  const trunkLink = new Int32Array(nodes);
  const funnel = new Int32Array(nodes);
  const funnelLink = new Int32Array(nodes);
  for (let node = 0; node < nodes; node++) {
    const below = rankOf[node]! + 1;
    trunk[node] = owner.length - below;
    trunkLink[node] = upper.length - below;
    for (let row = below, above = node; row <= end[node]!; row++) {
      const next = slot(node, row);
      link(above, next, false);
      above = next;
    }
    funnel[node] = owner.length - start[node]!;
    funnelLink[node] = upper.length - start[node]!;
    for (let row = start[node]!; row < rankOf[node]!; row++) {
      const next = slot(node, row);
      const last = row + 1 === rankOf[node]!;
      link(next, last ? node : next + 1, !last);
    }
  }

  const paths = Array.from(from, (source, edge) => {
    const target = to[edge]!;
    const [top, bottom] = [rankOf[source]!, rankOf[target]!];
    if (bySide[edge]) return new Int32Array();
    const path = new Int32Array(bottom - top);
    if (bottom - top === 1) path[0] = link(source, target, false);
    else if (hub[target]) {
      path[0] = link(source, funnel[target]! + top + 1, true);
      for (let row = top + 1; row < bottom; row++) path[row - top] = funnelLink[target]! + row;
    } else {
      for (let row = top + 1; row < bottom; row++) path[row - top - 1] = trunkLink[source]! + row;
      path[bottom - top - 1] = link(trunk[source]! + bottom - 1, target, false);
    }
    return path;
  });
  return {
    nodes,
    layer: Int32Array.from(layer),
    layers,
    to,
    owner: Int32Array.from(owner),
    upper: Int32Array.from(upper),
    lower: Int32Array.from(lower),
    gathers: Uint8Array.from(gathers),
    paths,
    bySide,
    hub,
  };
}

const ROUNDS = 4;

/** The items of each layer from left to right, with as few crossings as a few barycentre sweeps find. */
export function order(weave: Weave): Int32Array[] {
  const { layer, owner, upper, lower } = weave;
  const items = layer.length;
  const inProgram = buckets(weave.nodes, owner);
  const byLayer = buckets(
    weave.layers,
    inProgram.list.map((item) => layer[item]!),
  );
  const rows = Array.from({ length: weave.layers }, (_, row) =>
    byLayer.list.slice(byLayer.start[row], byLayer.start[row + 1]!).map((i) => inProgram.list[i]!),
  );
  const position = new Int32Array(items);
  for (const row of rows) number(row, position);
  const above = buckets(items, lower);
  const below = buckets(items, upper);

  let fewest = crossings(rows, below, lower, position);
  let best = rows.map((row) => row.slice());
  for (let round = 0; round < ROUNDS && fewest > 0; round++) {
    for (let row = 1; row < rows.length; row++) sweep(rows[row]!, above, upper, position);
    for (let row = rows.length - 2; row >= 0; row--) sweep(rows[row]!, below, lower, position);
    const now = crossings(rows, below, lower, position);
    if (now >= fewest) break;
    fewest = now;
    best = rows.map((row) => row.slice());
  }
  return best;
}

function number(row: Int32Array, position: Int32Array): void {
  for (let i = 0; i < row.length; i++) position[row[i]!] = i;
}

/** Sorts a row by the mean position of its neighbours; items without any keep their places. */
function sweep(row: Int32Array, links: Buckets, other: Int32Array, position: Int32Array): void {
  const keys = new Float64Array(row.length);
  const moved: number[] = [];
  for (let i = 0; i < row.length; i++) {
    const [first, last] = [links.start[row[i]!]!, links.start[row[i]! + 1]!];
    if (first === last) continue;
    let sum = 0;
    for (let j = first; j < last; j++) sum += position[other[links.list[j]!]!]!;
    keys[i] = sum / (last - first);
    moved.push(i);
  }
  const sorted = moved.slice().sort((a, b) => keys[a]! - keys[b]! || a - b);
  const before = row.slice();
  for (let i = 0; i < moved.length; i++) row[moved[i]!] = before[sorted[i]!]!;
  number(row, position);
}

/** How many pairs of links cross, counted as inversions with a Fenwick tree. */
function crossings(rows: Int32Array[], below: Buckets, lower: Int32Array, position: Int32Array): number {
  let count = 0;
  for (let r = 0; r + 1 < rows.length; r++) {
    const size = rows[r + 1]!.length;
    const tree = new Int32Array(size + 1);
    let placed = 0;
    for (const item of rows[r]!) {
      const [first, last] = [below.start[item]!, below.start[item + 1]!];
      for (let j = first; j < last; j++) {
        let at = position[lower[below.list[j]!]!]! + 1;
        let before = 0;
        for (; at > 0; at -= at & -at) before += tree[at]!;
        count += placed - before;
      }
      for (let j = first; j < last; j++) {
        for (let at = position[lower[below.list[j]!]!]! + 1; at <= size; at += at & -at) tree[at]!++;
        placed++;
      }
    }
  }
  return count;
}
