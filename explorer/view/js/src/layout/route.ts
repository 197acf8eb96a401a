// The last step for one connected graph: heights of channels, and the way of every edge.

import { Channel } from "./channels";
import { ports } from "./ports";
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
    let lane = lanes.get(key);
    if (lane === undefined) lanes.set(key, (lane = right + SIDE * (2 + (lanes.size % SIDE_TRACKS))));
    return lane;
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
  for (let node = 0; node < nodes; node++) {
    rowHeight[layer[node]!] = Math.max(rowHeight[layer[node]!]!, dag.height[node]!);
  }
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
    for (const link of weave.paths[edge]!) {
      way.across(channels[layer[lower[link]!]!]!.track(netOf(link)), enter[link]!);
    }
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
