// Items below each other that share one centre make a block; here is how blocks bound each other from left to right.

import { type Buckets, buckets } from "../core/buckets";
import type { Straight } from "./align";

const GAPS = [28, 14, 10]; // between two nodes, beside the line of an edge, between two such lines
const CUTS = 10; // rounds of giving up straight links
const LEAST_WIDTH = 1200; // up to there a drawing may be wider than its widest row needs

/** Blocks and the room each has. Where straight links make staircases that are too wide, the cheapest are given up. */
export function compact(rows: Int32Array[], nodes: number, wide: Float64Array, { above, cost }: Straight): Blocks {
  let blocks = new Blocks(rows, nodes, wide, above);
  const widest = rows.reduce((most, row) => Math.max(most, blocks.extent(row)), 0);
  const allowed = Math.max(LEAST_WIDTH, 1.2 * widest);
  for (let round = 0; round < CUTS && blocks.width > allowed; round++) {
    for (const item of blocks.stairs(allowed, cost)) above[item] = -1;
    blocks = new Blocks(rows, nodes, wide, above);
  }
  return blocks;
}

export class Blocks {
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
        for (let j = leftOf.start[b]!; j < leftOf.start[b + 1]!; j++) {
          const pair = leftOf.list[j]!;
          if (least[left[pair]!]! + distance[pair]! === least[b]!) tight = pair;
        }
        if (tight < 0) break;
        const next = this.#row[tight]!;
        if (row >= 0) {
          for (let j = members.start[b]!; j < members.start[b + 1]!; j++) {
            const item = members.list[j]!;
            const between = this.#layer[item]! > Math.min(row, next) && this.#layer[item]! <= Math.max(row, next);
            if (between && (cheapest < 0 || cost[item]! < cost[cheapest]!)) cheapest = item;
          }
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

  #gap(left: number, right: number): number {
    return GAPS[(left < this.nodes ? 0 : 1) + (right < this.nodes ? 0 : 1)]!;
  }

  #fromTheLeft(count: number): Int32Array {
    const missing = new Int32Array(count);
    const ready = new Int32Array(count);
    let filled = 0;
    for (let b = 0; b < count; b++) {
      missing[b] = this.leftOf.start[b + 1]! - this.leftOf.start[b]!;
      if (missing[b] === 0) ready[filled++] = b;
    }
    for (let i = 0; i < filled; i++) {
      const b = ready[i]!;
      for (let j = this.rightOf.start[b]!; j < this.rightOf.start[b + 1]!; j++) {
        const next = this.right[this.rightOf.list[j]!]!;
        if (--missing[next]! === 0) ready[filled++] = next;
      }
    }
    return ready;
  }
}
