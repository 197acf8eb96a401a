// Where on its upper border an edge enters a node.

import { buckets } from "../core/buckets";
import type { Weave } from "./weave";

const LEAST = 10; // between ports, where there is room

/** The x at which each link enters its lower item, and at which a node is entered from the side. */
export function ports(
  weave: Weave,
  width: Float64Array,
  centre: Float64Array,
): { enter: Float64Array; side: Float64Array } {
  const { nodes, upper, lower, bySide } = weave;
  const enter = Float64Array.from(lower, (item) => centre[item]!);
  const side = centre.slice(0, nodes);
  const into = buckets(weave.layer.length, lower);
  const aside = new Uint8Array(nodes);
  weave.to.forEach((node, edge) => {
    if (bySide[edge]) aside[node] = 1;
  });
  for (let node = 0; node < nodes; node++) {
    const links = [...into.list.subarray(into.start[node], into.start[node + 1]!)];
    const count = links.length + aside[node]!;
    if (count < 2) continue;
    links.sort((a, b) => centre[upper[a]!]! - centre[upper[b]!]! || a - b);
    const wishes = links.map((link) => centre[upper[link]!]!);
    if (aside[node]) wishes.push(Infinity); // the tracks at the side are on the right
    spread(wishes, centre[node]!, width[node]! / 2).forEach((x, i) => {
      if (i < links.length) enter[links[i]!] = x;
      else side[node] = x;
    });
  }
  return { enter, side };
}

/**
 * Ports as near as possible to the sorted wishes, apart from each other and within the border; a straight one stays.
 */
function spread(wishes: number[], centre: number, half: number): number[] {
  const count = wishes.length;
  const reach = half * 0.8;
  const step = Math.min(LEAST, (2 * reach) / count);
  const straight = wishes.indexOf(centre);
  const x = wishes.map((wish) => Math.max(centre - reach, Math.min(centre + reach, wish)));
  const push = (from: number, to: number, low: number, high: number) => {
    const gap = Math.min(step, (high - low) / Math.max(1, to - from));
    for (let i = from; i < to; i++) x[i] = Math.max(x[i]!, low + (i - from) * gap, i > from ? x[i - 1]! + gap : low);
    for (let i = to - 1; i >= from; i--)
      x[i] = Math.min(x[i]!, high - (to - 1 - i) * gap, i + 1 < to ? x[i + 1]! - gap : high);
  };
  if (straight < 0) push(0, count, centre - reach, centre + reach);
  else {
    const apart = (others: number) => Math.min(step, reach / Math.max(1, others));
    push(0, straight, centre - reach, centre - apart(straight));
    push(straight + 1, count, centre + apart(count - straight - 1), centre + reach);
  }
  return x;
}
