// Who stands left of whom: the program's order to begin with, then a few sweeps that put items near their neighbours.

import { type Buckets, buckets } from "../core/buckets";
import type { Weave } from "./weave";

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
