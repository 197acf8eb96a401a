// Where each item stands from left to right: blocks of straight links, pulled towards their neighbours as far as those
// beside them allow.

import { buckets } from "../core/buckets";
import { align } from "./align";
import { compact } from "./blocks";
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
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < x.length; i++) {
      const b = sequence[round % 2 ? i : x.length - 1 - i]!;
      x[b] = Math.max(blocks.lowest(b, x), Math.min(blocks.highest(b, x), wanted(b)));
    }
  }
  return Float64Array.from(block, (b) => Math.round(x[b]!));

  /**
   * The mean of the places at which the bent links of a block would be straight. Wide boxes can be entered anywhere.
   */
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
