// Where each item stands from left to right. Links that can be straight make blocks: items below each other that share
// one centre. Blocks are then pulled towards their neighbours as far as those beside them allow.

import { type Buckets, buckets } from "./buckets";
import type { Weave } from "./weave";

const GAPS = [28, 14, 10]; // between two nodes, beside the line of an edge, between two such lines
const ROUNDS = 8;
const CLASSES = 6; // of straight links

/** The x of every item's centre. */
export function columns(weave: Weave, rows: Int32Array[], width: Float64Array): Float64Array {
  const { nodes, layer, upper, lower } = weave;
  const items = layer.length;
  const wide = Float64Array.from(layer, (_, item) => (item < nodes ? width[item]! : 0));
  const straight = align(weave, rows);
  const blocks = compact(rows, nodes, wide, straight);
  const { block, sequence, least, most } = blocks;

  // Packed to the left and packed to the right both keep all distances, and so does the middle between them.
  const x = least.map((left, b) => (left + most[b]!) / 2);
  const bent = Int32Array.from(upper.keys()).filter((link) => block[upper[link]!] !== block[lower[link]!]);
  const down = buckets(x.length, bent.map((link) => block[upper[link]!]!));
  const up = buckets(x.length, bent.map((link) => block[lower[link]!]!));
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < x.length; i++) {
      const b = sequence[round % 2 ? i : x.length - 1 - i]!;
      x[b] = Math.max(blocks.lowest(b, x), Math.min(blocks.highest(b, x), wanted(b)));
    }
  }
  return Float64Array.from(block, (b) => Math.round(x[b]!));

  /** The mean of the places at which the bent links of a block would be straight. Wide boxes can be entered anywhere. */
  function wanted(b: number): number {
    let sum = 0;
    let count = 0;
    for (let way = 0; way < 2; way++) {
      const links = way ? up : down;
      for (let i = links.start[b]!; i < links.start[b + 1]!; i++) {
        const link = bent[links.list[i]!]!;
        const away = x[block[way ? upper[link]! : lower[link]!]!]! - x[b]!;
        const slack = Math.max(0, wide[lower[link]!]! / 2 - 80);
        const weight = upper[link]! >= nodes || lower[link]! >= nodes ? 1 : 2;
        sum += weight * Math.sign(away) * Math.max(0, Math.abs(away) - slack);
        count += weight;
      }
    }
    return x[b]! + (count > 0 ? sum / count : 0);
  }
}

/** Straight links, as the item straight above each item (or -1), and how much each of them matters (0 most). */
interface Straight {
  above: Int32Array;
  importance: Uint8Array;
}

/** Blocks and the room each has. Straight links are given up, the least important first, where they cost much width. */
function compact(rows: Int32Array[], nodes: number, wide: Float64Array, straight: Straight): Blocks {
  const { above, importance } = straight;
  let widest = 0;
  for (const row of rows) {
    let sum = 0;
    for (let i = 0; i < row.length; i++) {
      sum += wide[row[i]!]! + (i > 0 ? GAPS[(row[i - 1]! < nodes ? 0 : 1) + (row[i]! < nodes ? 0 : 1)]! : 0);
    }
    widest = Math.max(widest, sum);
  }
  const allowed = 1.2 * widest + 200;
  let blocks = new Blocks(rows, nodes, wide, above);
  for (let level = CLASSES - 1; level >= 0 && blocks.width > allowed; level--) {
    for (let item = 0; item < above.length; item++) {
      const b = blocks.block[item]!;
      const length = blocks.least[b]! + blocks.width - blocks.most[b]!; // of the widest row of blocks through this one
      if (importance[item]! >= level && length > allowed) above[item] = -1;
    }
    blocks = new Blocks(rows, nodes, wide, above);
  }
  return blocks;
}

class Blocks {
  readonly block: Int32Array; // per item
  readonly sequence: Int32Array; // each block after all that stand left of it (blocks don't cross)
  readonly least: Float64Array; // per block: its centre when all is packed to the left
  readonly most: Float64Array; // likewise to the right
  readonly width: number;
  private readonly half: Float64Array;
  private readonly leftOf: Buckets; // per block: pairs in which it is the right one
  private readonly rightOf: Buckets;
  private readonly left: Int32Array; // per pair of neighbours
  private readonly right: Int32Array;
  private readonly distance: Float64Array;

  constructor(rows: Int32Array[], nodes: number, wide: Float64Array, above: Int32Array) {
    const items = wide.length;
    this.block = new Int32Array(items);
    let count = 0;
    for (const row of rows) for (const item of row) this.block[item] = above[item]! < 0 ? count++ : this.block[above[item]!]!;
    this.half = new Float64Array(count);
    for (let item = 0; item < items; item++) {
      const b = this.block[item]!;
      this.half[b] = Math.max(this.half[b]!, wide[item]! / 2);
    }

    this.left = new Int32Array(items);
    this.right = new Int32Array(items);
    this.distance = new Float64Array(items);
    let pairs = 0;
    for (const row of rows) {
      for (let i = 1; i < row.length; i++) {
        const [a, b] = [row[i - 1]!, row[i]!];
        this.left[pairs] = this.block[a]!;
        this.right[pairs] = this.block[b]!;
        this.distance[pairs++] = (wide[a]! + wide[b]!) / 2 + GAPS[(a < nodes ? 0 : 1) + (b < nodes ? 0 : 1)]!;
      }
    }
    this.leftOf = buckets(count, this.right.subarray(0, pairs));
    this.rightOf = buckets(count, this.left.subarray(0, pairs));
    this.sequence = this.fromTheLeft(count);

    this.least = new Float64Array(count);
    let width = 0;
    for (const b of this.sequence) {
      this.least[b] = this.lowest(b, this.least);
      width = Math.max(width, this.least[b]! + this.half[b]!);
    }
    this.width = width;
    this.most = new Float64Array(count);
    for (let i = count - 1; i >= 0; i--) {
      const b = this.sequence[i]!;
      this.most[b] = this.highest(b, this.most);
    }
  }

  /** How far to the left a block can go, given where those beside it are. */
  lowest(b: number, x: Float64Array): number {
    const { leftOf, left, distance } = this;
    let bound = this.half[b]!;
    for (let i = leftOf.start[b]!; i < leftOf.start[b + 1]!; i++) {
      const pair = leftOf.list[i]!;
      bound = Math.max(bound, x[left[pair]!]! + distance[pair]!);
    }
    return bound;
  }

  highest(b: number, x: Float64Array): number {
    const { rightOf, right, distance } = this;
    let bound = this.width - this.half[b]!;
    for (let i = rightOf.start[b]!; i < rightOf.start[b + 1]!; i++) {
      const pair = rightOf.list[i]!;
      bound = Math.min(bound, x[right[pair]!]! - distance[pair]!);
    }
    return bound;
  }

  private fromTheLeft(count: number): Int32Array {
    const missing = new Int32Array(count);
    const ready = new Int32Array(count);
    let found = 0;
    for (let b = 0; b < count; b++) {
      missing[b] = this.leftOf.start[b + 1]! - this.leftOf.start[b]!;
      if (missing[b] === 0) ready[found++] = b;
    }
    for (let i = 0; i < found; i++) {
      const b = ready[i]!;
      for (let j = this.rightOf.start[b]!; j < this.rightOf.start[b + 1]!; j++) {
        const next = this.right[this.rightOf.list[j]!]!;
        if (--missing[next]! === 0) ready[found++] = next;
      }
    }
    return ready;
  }
}

/** Chooses the links that will be straight: at most one above and one below each item, and none that cross. */
function align(weave: Weave, rows: Int32Array[]): Straight {
  const { nodes, layer, layers, upper, lower } = weave;
  const items = layer.length;
  const position = new Int32Array(items);
  for (const row of rows) for (let i = 0; i < row.length; i++) position[row[i]!] = i;
  const down = degrees(items, upper);
  const up = degrees(items, lower);
  const middle = medians(items, upper, lower, position);
  const rate = (link: number) => {
    const [a, b] = [upper[link]!, lower[link]!];
    if (a >= nodes && b >= nodes) return 0; // within a long edge
    if (a >= nodes || b >= nodes) return middle(link) ? 4 : 5;
    if (up[b] === 1 && down[a] === 1) return 0; // within a chain
    if (up[a] === 0 && up[b]! > 1) return 3; // a constant beside what it is used in
    return middle(link) ? 1 : 2;
  };

  const above = new Int32Array(items).fill(-1);
  const importance = new Uint8Array(items);
  const channel = buckets(layers, upper.length ? Int32Array.from(upper, (item) => layer[item]!) : []);
  for (let row = 0; row + 1 < layers; row++) {
    const links = channel.list.slice(channel.start[row], channel.start[row + 1]!);
    const [high, low] = [rows[row]!, rows[row + 1]!];
    const chosen = new Int32Array(high.length).fill(-1); // per position above: position below
    const taken = new Uint8Array(low.length);
    const byImportance = buckets(CLASSES, links.map(rate));
    for (let k = 0; k < CLASSES; k++) {
      const some = byImportance.list.slice(byImportance.start[k], byImportance.start[k + 1]!).map((i) => links[i]!);
      if (some.length === 0) continue;
      straighten(some, upper, lower, position, chosen, taken);
      for (const link of some) {
        if (chosen[position[upper[link]!]!] !== position[lower[link]!]!) continue;
        above[lower[link]!] = upper[link]!;
        importance[lower[link]!] = k;
      }
    }
  }
  return { above, importance };
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
