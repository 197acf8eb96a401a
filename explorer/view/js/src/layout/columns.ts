// Where each item stands from left to right. Links that can be straight make blocks: items below each other that share
// one centre. Blocks are then pulled towards their neighbours as far as those beside them allow.

import { buckets } from "./buckets";
import type { Weave } from "./weave";

const NODE_GAP = 28;
const SLOT_GAP = 14; // beside the line of an edge
const LINE_GAP = 10; // between two such lines
const ROUNDS = 8;

/** The x of every item's centre. */
export function columns(weave: Weave, rows: Int32Array[], width: Float64Array): Float64Array {
  const { nodes, layer, upper, lower } = weave;
  const items = layer.length;
  const wide = (item: number) => (item < nodes ? width[item]! : 0);
  const distance = (left: number, right: number) => {
    const slots = (left < nodes ? 0 : 1) + (right < nodes ? 0 : 1);
    return (wide(left) + wide(right)) / 2 + [NODE_GAP, SLOT_GAP, LINE_GAP][slots]!;
  };

  const { block, blocks } = align(weave, rows);
  const pairs = beside(rows, block, distance);
  const leftOf = buckets(blocks, pairs.right);
  const rightOf = buckets(blocks, pairs.left);
  const sequence = fromTheLeft(blocks, leftOf, rightOf, pairs.right);

  // Packed to the left and packed to the right both keep all distances, and so does the middle between them.
  const packedLeft = new Float64Array(blocks);
  const widest = new Float64Array(blocks);
  for (let item = 0; item < items; item++) widest[block[item]!] = Math.max(widest[block[item]!]!, wide(item));
  const lowest = (b: number, x: Float64Array, otherwise: number) => {
    let bound = otherwise;
    for (let i = leftOf.start[b]!; i < leftOf.start[b + 1]!; i++) {
      const pair = leftOf.list[i]!;
      bound = Math.max(bound, x[pairs.left[pair]!]! + pairs.distance[pair]!);
    }
    return bound;
  };
  const highest = (b: number, x: Float64Array, otherwise: number) => {
    let bound = otherwise;
    for (let i = rightOf.start[b]!; i < rightOf.start[b + 1]!; i++) {
      const pair = rightOf.list[i]!;
      bound = Math.min(bound, x[pairs.right[pair]!]! - pairs.distance[pair]!);
    }
    return bound;
  };
  let right = 0;
  for (const b of sequence) {
    packedLeft[b] = lowest(b, packedLeft, widest[b]! / 2);
    right = Math.max(right, packedLeft[b]! + widest[b]! / 2);
  }
  const x = new Float64Array(blocks);
  for (let i = blocks - 1; i >= 0; i--) {
    const b = sequence[i]!;
    x[b] = highest(b, x, right - widest[b]! / 2);
  }
  for (let b = 0; b < blocks; b++) x[b] = (x[b]! + packedLeft[b]!) / 2;

  const bent = Int32Array.from(upper.keys()).filter((link) => block[upper[link]!] !== block[lower[link]!]);
  const fromBlock = buckets(blocks, bent.map((link) => block[upper[link]!]!));
  const toBlock = buckets(blocks, bent.map((link) => block[lower[link]!]!));
  // The more evenly an edge falls into the port it wants, the shorter its bend: wide boxes have room for many.
  const wanted = (b: number) => {
    let sum = 0;
    let count = 0;
    for (const [links, ends, mine] of [
      [fromBlock, lower, upper],
      [toBlock, upper, lower],
    ] as const) {
      for (let i = links.start[b]!; i < links.start[b + 1]!; i++) {
        const link = bent[links.list[i]!]!;
        const away = x[block[ends[link]!]!]! - x[b]!;
        const slack = ends === upper ? Math.max(0, wide(mine[link]!) / 2 - 80) : Math.max(0, wide(ends[link]!) / 2 - 80);
        const weight = upper[link]! >= nodes || lower[link]! >= nodes ? 1 : 2;
        sum += weight * (x[b]! + Math.sign(away) * Math.max(0, Math.abs(away) - slack));
        count += weight;
      }
    }
    return count > 0 ? sum / count : x[b]!;
  };
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < blocks; i++) {
      const b = sequence[round % 2 ? i : blocks - 1 - i]!;
      x[b] = Math.max(lowest(b, x, -Infinity), Math.min(highest(b, x, Infinity), wanted(b)));
    }
  }
  const centre = new Float64Array(items);
  for (let item = 0; item < items; item++) centre[item] = Math.round(x[block[item]!]!);
  return centre;
}

/** Which items stand side by side: pairs of blocks and the least distance of their centres. */
function beside(rows: Int32Array[], block: Int32Array, distance: (left: number, right: number) => number) {
  const left: number[] = [];
  const right: number[] = [];
  const least: number[] = [];
  for (const row of rows) {
    for (let i = 0; i + 1 < row.length; i++) {
      left.push(block[row[i]!]!);
      right.push(block[row[i + 1]!]!);
      least.push(distance(row[i]!, row[i + 1]!));
    }
  }
  return { left, right, distance: least };
}

/** The blocks in an order in which each comes after all that stand left of it (there is one: blocks don't cross). */
function fromTheLeft(
  blocks: number,
  leftOf: { start: Int32Array },
  rightOf: { start: Int32Array; list: Int32Array },
  right: number[],
): Int32Array {
  const missing = new Int32Array(blocks);
  const ready = new Int32Array(blocks);
  let count = 0;
  for (let b = 0; b < blocks; b++) {
    missing[b] = leftOf.start[b + 1]! - leftOf.start[b]!;
    if (missing[b] === 0) ready[count++] = b;
  }
  for (let i = 0; i < count; i++) {
    for (let j = rightOf.start[ready[i]!]!; j < rightOf.start[ready[i]! + 1]!; j++) {
      const next = right[rightOf.list[j]!]!;
      if (--missing[next]! === 0) ready[count++] = next;
    }
  }
  return ready;
}

/** Chooses the links that will be straight: at most one above and one below each item, and none that cross. */
function align(weave: Weave, rows: Int32Array[]) {
  const { nodes, layer, layers, upper, lower } = weave;
  const items = layer.length;
  const position = new Int32Array(items);
  for (const row of rows) for (let i = 0; i < row.length; i++) position[row[i]!] = i;
  const down = degrees(items, upper);
  const up = degrees(items, lower);
  const middle = medians(items, upper, lower, position);
  const importance = (link: number) => {
    const [a, b] = [upper[link]!, lower[link]!];
    if (a >= nodes && b >= nodes) return 0; // within a long edge
    if (a < nodes && b < nodes && down[a] === 1 && up[b] === 1) return 1; // within a chain
    if (a < nodes && b < nodes) return middle(link) ? 2 : 3;
    return middle(link) ? 4 : 5;
  };

  const partner = new Int32Array(items).fill(-1); // the item straight above
  const channel = buckets(layers, upper.length ? Int32Array.from(upper, (item) => layer[item]!) : []);
  for (let row = 0; row + 1 < layers; row++) {
    const links = channel.list.slice(channel.start[row], channel.start[row + 1]!);
    const size = rows[row]!.length;
    const chosen = new Int32Array(size).fill(-1); // per position above: position below
    const taken = new Uint8Array(rows[row + 1]!.length);
    const keys = links.map((link) => importance(link));
    const byImportance = buckets(6, keys);
    for (let k = 0; k < 6; k++) {
      const some = byImportance.list.slice(byImportance.start[k], byImportance.start[k + 1]!).map((i) => links[i]!);
      if (some.length > 0) straighten(some, upper, lower, position, chosen, taken);
    }
    for (let i = 0; i < size; i++) if (chosen[i]! >= 0) partner[rows[row + 1]![chosen[i]!]!] = rows[row]![i]!;
  }
  const block = new Int32Array(items);
  let blocks = 0;
  for (const row of rows) for (const item of row) block[item] = partner[item]! >= 0 ? block[partner[item]!]! : blocks++;
  return { block, blocks };
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

/** Tells of a link whether it is the middle one, or one of the two, both at its upper and at its lower end. */
function medians(items: number, upper: Int32Array, lower: Int32Array, position: Int32Array) {
  const middle = new Uint8Array(upper.length);
  for (const [mine, other] of [
    [upper, lower],
    [lower, upper],
  ] as const) {
    const links = buckets(items, mine);
    for (let item = 0; item < items; item++) {
      const some = links.list.subarray(links.start[item], links.start[item + 1]!);
      if (some.length === 0) continue;
      some.sort((a, b) => position[other[a]!]! - position[other[b]!]!);
      middle[some[(some.length - 1) >> 1]!]!++;
      if (some.length % 2 === 0) middle[some[some.length >> 1]!]!++;
    }
  }
  return (link: number) => middle[link] === 2;
}
