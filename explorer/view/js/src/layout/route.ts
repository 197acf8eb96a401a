// The last step for one connected graph: heights of channels, and the way of every edge. It runs down from a port,
// along a track of the channel, down to the next port. All links of one value share a track; tracks that overlap lie
// in an order that crosses little and covers nothing.

import { buckets, made, push } from "../core/buckets";
import type { Dag } from "./rank";
import type { Weave } from "./weave";

const SIDE = 9; // between tracks at the side
const SIDE_TRACKS = 64; // more than that share some

export interface Drawing {
  x: Float64Array;
  y: Float64Array;
  ways: number[][]; // per edge: x0, y0, x1, y1, …
  width: number;
  height: number;
}

export function route(dag: Dag, weave: Weave, centre: Float64Array): Drawing {
  const { from, to } = dag;
  const { nodes, layer, layers, upper, lower, gathers, bySide, hub } = weave;
  const items = layer.length;

  let left = Infinity;
  let right = -Infinity;
  for (let item = 0; item < items; item++) {
    const half = item < nodes ? dag.width[item]! / 2 : 1;
    left = Math.min(left, centre[item]! - half);
    right = Math.max(right, centre[item]! + half);
  }
  for (let item = 0; item < items; item++) centre[item]! -= left;
  right -= left;

  const { enter, side } = ports(weave, dag.width, centre);
  const channels = Array.from({ length: layers + 1 }, () => new Channel()); // channel i is above layer i
  const netOf = (link: number) => (gathers[link] ? items + lower[link]! : upper[link]!);
  const size = new Int32Array(2 * items);
  for (let link = 0; link < upper.length; link++) size[netOf(link)]!++;
  for (const edge of bySide.keys()) if (bySide[edge]) size[from[edge]!]!++;
  for (let link = 0; link < upper.length; link++) {
    if (size[netOf(link)] === 1 && centre[upper[link]!] === enter[link]) continue; // straight and alone: most are
    const channel = channels[layer[lower[link]!]!]!;
    channel.pin(netOf(link), centre[upper[link]!]!, "top");
    channel.pin(netOf(link), enter[link]!, "bottom");
  }
  const lanes = new Map<number, number>(); // one for a source, or for a target that gathers many
  const laneOf = (edge: number) => {
    const key = hub[to[edge]!] ? nodes + to[edge]! : from[edge]!;
    return made(lanes, key, () => right + SIDE * (2 + (lanes.size % SIDE_TRACKS)));
  };
  const entering = (node: number) => 2 * items + node;
  let width = right;
  for (let edge = 0; edge < from.length; edge++) {
    if (!bySide[edge]) continue;
    const [source, target] = [from[edge]!, to[edge]!];
    const lane = laneOf(edge);
    width = Math.max(width, lane + SIDE);
    const [out, into] = [channels[layer[source]! + 1]!, channels[layer[target]!]!];
    out.pin(source, centre[source]!, "top");
    out.pin(source, lane, "side");
    into.pin(entering(target), side[target]!, "bottom");
    into.pin(entering(target), lane, "side");
  }

  const rowHeight = new Float64Array(layers);
  for (let node = 0; node < nodes; node++)
    rowHeight[layer[node]!] = Math.max(rowHeight[layer[node]!]!, dag.height[node]!);
  const rowTop = new Float64Array(layers);
  let height = 0;
  for (let row = 0; row <= layers; row++) {
    const outer = row === 0 || row === layers;
    const need = outer && channels[row]!.empty ? 0 : channels[row]!.assign();
    channels[row]!.settle(height, height + need);
    height += need;
    if (row < layers) {
      rowTop[row] = height;
      height += rowHeight[row]!;
    }
  }
  const x = Float64Array.from(dag.width, (w, node) => centre[node]! - w / 2);
  const y = Float64Array.from(dag.height, (h, node) => rowTop[layer[node]!]! + (rowHeight[layer[node]!]! - h) / 2);

  const ways = Array.from(from, (source, edge) => {
    const target = to[edge]!;
    const way = new Way(centre[source]!, y[source]! + dag.height[source]!);
    if (bySide[edge]) {
      const lane = laneOf(edge);
      way.across(channels[layer[source]! + 1]!.track(source), lane);
      way.across(channels[layer[target]!]!.track(entering(target)), side[target]!);
    }
    for (const link of weave.paths[edge]!) way.across(channels[layer[lower[link]!]!]!.track(netOf(link)), enter[link]!);
    return way.down(y[target]!);
  });
  return { x, y, ways, width, height };
}

/** A way of vertical and horizontal parts, without points where it doesn't turn. */
class Way {
  readonly #points: number[];

  constructor(
    private x: number,
    y: number,
  ) {
    this.#points = [x, y];
  }

  across(y: number, x: number): void {
    if (x === this.x) return;
    this.#points.push(this.x, y, x, y);
    this.x = x;
  }

  down(y: number): number[] {
    this.#points.push(this.x, y);
    return this.#points;
  }
}

const TRACK = 9; // between parallel tracks
const BIN = 6; // tracks are reserved in steps of so many pixels
const PADDING = 16; // above the first track and below the last: room for an arrow head
const LEAST = 36; // a channel without tracks

/** One net in a channel: everything that hangs on one horizontal line. */
interface Net {
  low: number;
  high: number;
  tops: number[]; // x of the ports it comes down from
  bottoms: number[];
  level: number; // its track, counted from the lowest; -1 where it runs straight
}

class Channel {
  readonly #nets = new Map<number, Net>();
  #levels = 0;
  #bottom = 0;

  /** Hangs a pin on a net: a port above, a port below, or a track at the side. */
  pin(net: number, x: number, kind: "top" | "bottom" | "side"): void {
    const it = made(this.#nets, net, () => ({ low: x, high: x, tops: [], bottoms: [], level: -1 }));
    it.low = Math.min(it.low, x);
    it.high = Math.max(it.high, x);
    if (kind === "top") it.tops.push(x);
    else if (kind === "bottom") it.bottoms.push(x);
  }

  get empty(): boolean {
    return this.#nets.size === 0;
  }

  /** Gives every net its track; returns the height that the channel needs. */
  assign(): number {
    const nets = [...this.#nets.values()].filter((net) => net.low !== net.high);
    if (nets.length === 0) return LEAST;
    // Of those going right the leftmost is lowest, of those going left the rightmost: then neighbours don't cross.
    const rightwards = nets.filter(goesRight).sort((a, b) => start(a) - start(b));
    const leftwards = nets.filter((net) => !goesRight(net)).sort((a, b) => start(b) - start(a));
    const origin = nets.reduce((least, net) => Math.min(least, net.low), Infinity) - BIN;
    const end = nets.reduce((most, net) => Math.max(most, net.high), -Infinity);
    const bin = (x: number) => Math.floor((x - origin) / BIN);
    const endsAt = new Map<number, Net[]>();
    for (const net of nets) for (const x of net.bottoms) push(endsAt, bin(x), net);

    const skyline = new Int32Array(bin(end) + 3);
    const seen = new Set<Net>();
    const place = (net: Net) => {
      const [first, last] = [Math.max(0, bin(net.low) - 1), bin(net.high) + 2];
      let level = 0;
      for (let i = first; i < last; i++) if (skyline[i]! > level) level = skyline[i]!;
      skyline.fill(level + 1, first, last);
      net.level = level;
      this.#levels = Math.max(this.#levels, level + 1);
    };
    // A net that ends where another begins must run below it, or their vertical parts would lie on each other.
    const beneath = (net: Net) => {
      const nets: Net[] = [];
      for (const x of net.tops)
        for (let near = bin(x) - 1; near <= bin(x) + 1; near++)
          for (const other of endsAt.get(near) ?? [])
            if (!seen.has(other) && other.bottoms.some((bottom) => Math.abs(bottom - x) < 4)) nets.push(other);
      return nets;
    };
    for (const net of [...rightwards, ...leftwards]) {
      const stack = [net];
      while (stack.length > 0) {
        const top = stack[stack.length - 1]!;
        if (!seen.has(top)) {
          seen.add(top);
          stack.push(...beneath(top));
        } else {
          stack.pop();
          if (top.level < 0) place(top);
        }
      }
    }
    return Math.max(LEAST, 2 * PADDING + (this.#levels - 1) * TRACK);
  }

  /** Where the channel lies, once it is placed. */
  settle(top: number, bottom: number): void {
    this.#bottom = bottom - (bottom - top - Math.max(0, this.#levels - 1) * TRACK) / 2;
  }

  /** The y of a net's track. */
  track = (net: number): number => this.#bottom - Math.max(0, this.#nets.get(net)?.level ?? 0) * TRACK;
}

const mean = (values: number[]) => values.reduce((sum, x) => sum + x, 0) / values.length;
const start = (net: Net) => (net.tops.length > 0 ? mean(net.tops) : net.high);

const goesRight = (net: Net): boolean => (net.bottoms.length > 0 ? mean(net.bottoms) : net.high) > start(net);

const LEAST_APART = 10; // between ports, where there is room

/** The x at which each link enters its lower item, and at which a node is entered from the side. */
function ports(weave: Weave, width: Float64Array, centre: Float64Array): { enter: Float64Array; side: Float64Array } {
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

/** Ports as near as possible to the sorted wishes, apart from each other, within the border; a straight one stays. */
function spread(wishes: number[], centre: number, half: number): number[] {
  const count = wishes.length;
  const reach = half * 0.8;
  const step = Math.min(LEAST_APART, (2 * reach) / count);
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
