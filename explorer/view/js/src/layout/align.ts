// Which links are drawn straight: long edges and chains first, then the longest way through a node.

import { buckets } from "../core/buckets";
import type { Weave } from "./weave";

const CLASSES = 6; // of links that might be straight

/** Straight links, as the item straight above each item (or -1), and what giving each of them up would cost. */
export type Straight = { above: Int32Array; cost: Uint8Array };

/** Chooses the links that will be straight: at most one above and one below each item, and none that cross. */
export function align(weave: Weave, rows: Int32Array[]): Straight {
  const { nodes, layer, layers, upper, lower } = weave;
  const items = layer.length;
  const position = new Int32Array(items);
  for (const row of rows) for (let i = 0; i < row.length; i++) position[row[i]!] = i;
  const down = degrees(items, upper);
  const up = degrees(items, lower);
  const votes = main(weave, rows, position);
  const rate = (link: number) => {
    const [a, b] = [upper[link]!, lower[link]!];
    if (a >= nodes && b >= nodes) return 0; // within a long edge
    if (a >= nodes || b >= nodes) return votes[link] === 2 ? 4 : 5;
    return up[b] === 1 && down[a] === 1 ? 0 : 3 - votes[link]!; // within a chain, or along the longest way
  };

  const above = new Int32Array(items).fill(-1);
  const cost = new Uint8Array(items);
  const channel = buckets(layers, upper.length ? Int32Array.from(upper, (item) => layer[item]!) : []);
  for (let row = 0; row + 1 < layers; row++) {
    const links = channel.list.slice(channel.start[row], channel.start[row + 1]!);
    const [high, low] = [rows[row]!, rows[row + 1]!];
    const chosen = new Int32Array(high.length).fill(-1); // per position above: position below
    const taken = new Uint8Array(low.length);
    const byClass = buckets(CLASSES, links.map(rate));
    for (let k = 0; k < CLASSES; k++) {
      const some = byClass.list.slice(byClass.start[k], byClass.start[k + 1]!).map((i) => links[i]!);
      if (some.length === 0) continue;
      straighten(some, upper, lower, position, chosen, taken);
      for (const link of some) {
        if (chosen[position[upper[link]!]!] !== position[lower[link]!]!) continue;
        above[lower[link]!] = upper[link]!;
        cost[lower[link]!] = k === 0 && upper[link]! >= nodes ? 3 : CLASSES - k; // a bend in a long edge is a small one
      }
    }
  }
  return { above, cost };
}

/** Adds to the straight links of a channel as many of these as possible: the longest increasing run (patience). */
function straighten(
  links: Int32Array,
  upper: Int32Array,
  lower: Int32Array,
  position: Int32Array,
  chosen: Int32Array,
  taken: Uint8Array,
): void {
  const size = chosen.length;
  const ceiling = new Int32Array(size + 1).fill(taken.length);
  for (let i = size - 1; i >= 0; i--) ceiling[i] = chosen[i]! >= 0 ? chosen[i]! : ceiling[i + 1]!;
  // Of the links of one item above only one may be taken: so they are offered with the rightmost end first.
  const sorted = links.sort(
    (a, b) => position[upper[a]!]! - position[upper[b]!]! || position[lower[b]!]! - position[lower[a]!]!,
  );
  const tails: number[] = [];
  const before = new Map<number, number>();
  let floor = -1;
  let seen = 0;
  for (const link of sorted) {
    const [a, b] = [position[upper[link]!]!, position[lower[link]!]!];
    for (; seen < a; seen++) if (chosen[seen]! >= 0) floor = chosen[seen]!;
    if (chosen[a]! >= 0 || taken[b] || b <= floor || b >= ceiling[a]!) continue;
    let [low, high] = [0, tails.length];
    while (low < high) {
      const mid = (low + high) >> 1;
      if (position[lower[tails[mid]!]!]! < b) low = mid + 1;
      else high = mid;
    }
    if (low > 0) before.set(link, tails[low - 1]!);
    tails[low] = link;
  }
  for (let link = tails.at(-1); link !== undefined; link = before.get(link)) {
    chosen[position[upper[link]!]!] = position[lower[link]!]!;
    taken[position[lower[link]!]!] = 1;
  }
}

function degrees(items: number, ends: Int32Array): Int32Array {
  const count = new Int32Array(items);
  for (const item of ends) count[item]!++;
  return count;
}

/**
 * Per link 0…2: whether it is on the longest way through its lower end, through its upper end. Ties: the middle one.
 */
function main(weave: Weave, rows: Int32Array[], position: Int32Array): Uint8Array {
  const { upper, lower, nodes } = weave;
  const items = weave.layer.length;
  const votes = new Uint8Array(upper.length);
  for (const [ends, others, order] of [
    [lower, upper, rows],
    [upper, lower, rows.slice().reverse()],
  ] as const) {
    const links = buckets(items, ends);
    const depth = new Int32Array(items);
    for (const row of order) {
      for (const item of row) {
        const some = links.list.subarray(links.start[item], links.start[item + 1]!);
        let deepest = 0;
        for (const link of some) deepest = Math.max(deepest, depth[others[link]!]!);
        depth[item] = deepest + (item < nodes ? 1 : 0);
        if (some.length === 1) votes[some[0]!]!++;
        if (some.length < 2) continue;
        const best = some.filter((link) => depth[others[link]!] === deepest);
        if (best.length > 1) best.sort((a, b) => position[others[a]!]! - position[others[b]!]!);
        votes[best[(best.length - 1) >> 1]!]!++;
      }
    }
  }
  return votes;
}
