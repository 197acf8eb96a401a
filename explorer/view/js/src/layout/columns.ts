// Where each item stands from left to right. Links that are drawn straight are chosen: long edges and chains first,
// then the longest way through a node. Items below each other that share one centre make a block. Blocks are pulled
// towards their neighbours as far as those beside them allow.

import { type Buckets, buckets, rowOf } from "../core/buckets";
import type { Weave } from "./weave";

const ROUNDS = 8;

/** The x of every item's centre. */
export function columns(weave: Weave, rows: Int32Array[], width: Float64Array): Float64Array {
  const { nodes, layer, upper, lower } = weave;
  const wide = Float64Array.from(layer, (_, item) => (item < nodes ? width[item]! : 0));
  const straight = align(weave, rows);
  const blocks = compact(rows, nodes, wide, straight);
  const { block, sequence, least, most } = blocks;

  // Packed to the left and packed to the right both keep all distances, and so does the middle between them.
  const x = least.map((left, b) => (left + most[b]!) / 2);
  const bent = Int32Array.from(upper.keys()).filter((link) => block[upper[link]!] !== block[lower[link]!]);
  const down = buckets(
    x.length,
    bent.map((link) => block[upper[link]!]!),
  );
  const up = buckets(
    x.length,
    bent.map((link) => block[lower[link]!]!),
  );
  for (let round = 0; round < ROUNDS; round++)
    for (let i = 0; i < x.length; i++) {
      const b = sequence[round % 2 ? i : x.length - 1 - i]!;
      x[b] = Math.max(blocks.lowest(b, x), Math.min(blocks.highest(b, x), wanted(b)));
    }
  return Float64Array.from(block, (b) => Math.round(x[b]!));

  /** The mean of the places where the bent links of a block would be straight. Wide boxes can be entered anywhere. */
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

const CLASSES = 6; // of links that might be straight

/** Straight links, as the item straight above each item (or -1), and what giving each of them up would cost. */
type Straight = { above: Int32Array; cost: Uint8Array };

/** Chooses the links that will be straight: at most one above and one below each item, and none that cross. */
function align(weave: Weave, rows: Int32Array[]): Straight {
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

/** Per link 0…2: is it on the longest way through its lower end, through its upper end? Ties: the middle one. */
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
        const some = rowOf(links, item);
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

const GAPS = [28, 14, 10]; // between two nodes, beside the line of an edge, between two such lines
const CUTS = 10; // rounds of giving up straight links
const LEAST_WIDTH = 1200; // up to there a drawing may be wider than its widest row needs

/** Blocks and the room each has. Where straight links make staircases that are too wide, the cheapest are given up. */
function compact(rows: Int32Array[], nodes: number, wide: Float64Array, { above, cost }: Straight): Blocks {
  let blocks = new Blocks(rows, nodes, wide, above);
  const widest = rows.reduce((most, row) => Math.max(most, blocks.extent(row)), 0);
  const allowed = Math.max(LEAST_WIDTH, 1.2 * widest);
  for (let round = 0; round < CUTS && blocks.width > allowed; round++) {
    for (const item of blocks.stairs(allowed, cost)) above[item] = -1;
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
  readonly #row: Int32Array;
  readonly #layer: Int32Array; // per item

  constructor(
    rows: Int32Array[],
    private readonly nodes: number,
    private readonly wide: Float64Array,
    above: Int32Array,
  ) {
    const items = wide.length;
    this.block = new Int32Array(items);
    this.#layer = new Int32Array(items);
    this.left = new Int32Array(items);
    this.right = new Int32Array(items);
    this.#row = new Int32Array(items);
    this.distance = new Float64Array(items);
    let count = 0;
    let pairs = 0;
    for (let r = 0; r < rows.length; r++) {
      const row = rows[r]!;
      for (let i = 0; i < row.length; i++) {
        const item = row[i]!;
        this.#layer[item] = r;
        this.block[item] = above[item]! < 0 ? count++ : this.block[above[item]!]!;
        if (i === 0) continue;
        const before = row[i - 1]!;
        this.#row[pairs] = r;
        this.left[pairs] = this.block[before]!;
        this.right[pairs] = this.block[item]!;
        this.distance[pairs++] = (wide[before]! + wide[item]!) / 2 + this.#gap(before, item);
      }
    }
    this.half = new Float64Array(count);
    for (let item = 0; item < items; item++) {
      const b = this.block[item]!;
      this.half[b] = Math.max(this.half[b]!, wide[item]! / 2);
    }
    this.leftOf = buckets(count, this.right.subarray(0, pairs));
    this.rightOf = buckets(count, this.left.subarray(0, pairs));
    this.sequence = this.#fromTheLeft(count);

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

  /** The width of a row by itself. */
  extent(row: Int32Array): number {
    let sum = 0;
    for (let i = 0; i < row.length; i++) sum += this.wide[row[i]!]! + (i > 0 ? this.#gap(row[i - 1]!, row[i]!) : 0);
    return sum;
  }

  /** On every way through the blocks that is wider than allowed: the item whose straight link upwards costs least. */
  stairs(allowed: number, cost: Uint8Array): number[] {
    const { block, least, half, left, leftOf, distance } = this;
    const members = buckets(least.length, block);
    const seen = new Uint8Array(least.length);
    const cuts: number[] = [];
    for (let i = this.sequence.length - 1; i >= 0; i--) {
      let b = this.sequence[i]!;
      if (seen[b] || least[b]! + half[b]! <= allowed) continue;
      let cheapest = -1;
      let row = -1; // in which the way leaves the block to the right
      let stretch = least[b]! - allowed / 4;
      while (!seen[b]) {
        seen[b] = 1;
        let tight = -1;
        for (const pair of rowOf(leftOf, b)) if (least[left[pair]!]! + distance[pair]! === least[b]!) tight = pair;
        if (tight < 0) break;
        const next = this.#row[tight]!;
        for (const item of row < 0 ? [] : rowOf(members, b)) {
          const between = this.#layer[item]! > Math.min(row, next) && this.#layer[item]! <= Math.max(row, next);
          if (between && (cheapest < 0 || cost[item]! < cost[cheapest]!)) cheapest = item;
        }
        row = next;
        b = left[tight]!;
        if (least[b]! < stretch && cheapest >= 0) {
          cuts.push(cheapest);
          cheapest = -1;
          stretch = least[b]! - allowed / 4;
        }
      }
    }
    return cuts;
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

  #gap = (left: number, right: number): number => GAPS[(left < this.nodes ? 0 : 1) + (right < this.nodes ? 0 : 1)]!;

  #fromTheLeft(count: number): Int32Array {
    const missing = new Int32Array(count);
    const ready = new Int32Array(count);
    let filled = 0;
    for (let b = 0; b < count; b++) {
      missing[b] = rowOf(this.leftOf, b).length;
      if (missing[b] === 0) ready[filled++] = b;
    }
    for (let i = 0; i < filled; i++) {
      for (const pair of rowOf(this.rightOf, ready[i]!)) {
        const next = this.right[pair]!;
        if (--missing[next]! === 0) ready[filled++] = next;
      }
    }
    return ready;
  }
}
