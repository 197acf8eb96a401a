// What a kernel computes, in a few words, and how much of the whole it is.

import { made, sums } from "./buckets";
import type { Graph } from "./graph";
import { type Item, isNode } from "./item";
import { secondsText } from "./units";

const SILENT = /^(parameter|constant|tuple|get-tuple-element|bitcast|fusion|jit|pjit|stop_gradient|return|root)$/;

const wordsOf = new WeakMap<Graph, Map<number, string>>();

/** The operations that a fusion is about, `max, exp, sum`; empty where nothing is known of it. */
export function computes(graph: Graph, node: number): string {
  return made(wordsOf, graph, () => graph.c.readKernelWords?.() ?? new Map()).get(node) ?? "";
}

const LAYOUT = /^(transpose|copy|reshape)$/;

/** Does a kernel write what it reads, in another layout? */
export const movesOnly = (graph: Graph, node: number): boolean => {
  const inside = graph.within(node).slice(1).map(graph.op);
  const ops = inside.filter((op) => !SILENT.test(op));
  return ops.length > 0 && ops.every((op) => LAYOUT.test(op));
};

/** What a custom call calls. */
export const targetOf = (graph: Graph, node: number): string | undefined =>
  /(^|\.)custom[-_]call$/.test(graph.op(node))
    ? graph.attributes?.get(node, "custom_call_target", "call_target_name")
    : undefined;

export type Share = { measure: string; share: number };

const MEASURES: Record<string, string> = { time: "of the time", flops: "of the FLOPs", bytes: "of the bytes" };
const LEAST = 0.005;
const sumsOf = new WeakMap<Graph, Map<string, Float64Array>>();

/** The running sum of a measure over what runs, by place in the tree. */
function sumOf(graph: Graph, measure: string): Float64Array | undefined {
  const values = graph.c.measures[measure];
  if (!values) return undefined;
  const value = (i: number) => {
    const node = graph.order[i]!;
    return graph.isKernel(node) || measure === "time" ? Math.max(values[node]!, 0) : 0; // a loop has time of its own
  };
  const ofGraph = made<Graph, Map<string, Float64Array>>(sumsOf, graph, () => new Map());
  return made(ofGraph, measure, () => sums(new Float64Array(graph.size + 1), value));
}

/** A measure of all that runs in an item, NaN where it was not measured. */
export function total(graph: Graph, measure: string, item?: Item): number {
  const sum = sumOf(graph, measure);
  if (!sum) return NaN;
  if (item === undefined) return sum[graph.size]!;
  // A fusion's own number counts its inside already.
  if (isNode(item) && graph.isKernel(item.node)) return graph.c.measures[measure]![item.node]!;
  const [from, to] = graph.range(item);
  return sum[to]! - sum[from]!;
}

/**
 * How much of the whole an item is, by the graph's measure; where it has none, of the time where that was measured,
 * else the larger of its FLOPs and its bytes.
 */
export function shareOf(graph: Graph, item: Item): Share | undefined {
  const { costBy } = graph;
  if (costBy) return { measure: costBy, share: total(graph, costBy, item) / total(graph, costBy) };
  const shares = Object.keys(MEASURES)
    .map((measure) => ({ measure, share: total(graph, measure, item) / total(graph, measure) }))
    .filter(({ share }) => share > 0);
  return shares.find(({ measure }) => measure === "time") ?? shares.sort((a, b) => b.share - a.share)[0];
}

/** Is a measure of what an item runs that of one iteration, as nobody knows how often its loop runs? */
export function isOneIteration(graph: Graph, item: Item, measure = "flops"): boolean {
  if (measure === "time" || !graph.c.oneIteration?.length) return false;
  const [from, to] = graph.range(item);
  for (let at = from; at < to; at++) if (graph.isOneIteration(graph.order[at]!)) return true;
  return false;
}

/** In the order of BOUNDS in explorer/analysis/roofline.py. */
const BOUNDS = ["", "memory bound", "compute bound", "all overhead"];
const WORTH = 0.1; // of its time

/** What holds a kernel back, and the share of its time that the machine would not need; only of measured time. */
export function judgedOf(graph: Graph, item: Item): { bound: string; wasted: number } {
  const { bound, wasted, time } = graph.c.measures;
  if (!bound || !wasted || !time || !isNode(item)) return { bound: "", wasted: 0 };
  const { node } = item;
  return { bound: BOUNDS[bound[node]!] ?? "", wasted: wasted[node]! / time[node]! || 0 };
}

/** `compute bound · 63% wasted`; empty where no machine's peaks are known. */
export function judgedText(graph: Graph, item: Item): string {
  const { bound, wasted } = judgedOf(graph, item);
  return bound && wasted >= WORTH ? `${bound} · ${Math.round(100 * wasted)}% wasted` : bound;
}

export function shareText(graph: Graph, item: Item): string {
  const largest = shareOf(graph, item);
  if (!largest || !(largest.share >= LEAST)) return "";
  const percent = 100 * largest.share;
  const digits = percent < 9.95 ? percent.toFixed(1).replace(/\.0$/, "") : Math.round(percent);
  const of = MEASURES[largest.measure]!;
  const seconds = total(graph, "time", item);
  const time = seconds > 0 ? `${secondsText(seconds)} · ` : "";
  return `${time}${digits}% ${of}${isOneIteration(graph, item, largest.measure) ? ", one iteration counted" : ""}`;
}
