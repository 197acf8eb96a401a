// How things are called on the screen.

import { made, sums } from "./buckets";
import { type Graph, type GroupItem, groupItem, type Item, isGroup, isNode, isRest } from "./graph";

export const STAGE_TITLES: Record<string, string> = {
  jaxpr: "jaxpr",
  stablehlo: "StableHLO",
  before: "HLO before",
  hlo: "HLO",
};
const UNITS: Record<string, [singular: string, plural: string]> = {
  jaxpr: ["equation", "equations"],
  stablehlo: ["operation", "operations"],
  before: ["instruction", "instructions"],
  hlo: ["instruction", "instructions"],
};

const NUMBER = new Intl.NumberFormat("en"); // making one is slow
export const number = (n: number): string => NUMBER.format(n);
export const count = (n: number, singular: string, plural = `${singular}s`): string =>
  `${number(n)} ${n === 1 ? singular : plural}`;
export const units = (stage: string, n: number): string => count(n, ...(UNITS[stage] ?? ["node", "nodes"]));
export const cut = (text: string, longest: number): string =>
  text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;

const SHORT = 12; // letters, of which a beginning tells more than both ends

/** With what is too long left out in the middle: names differ at their ends. */
export function cutMiddle(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const end = longest < SHORT ? 0 : Math.floor(longest / 3);
  return `${text.slice(0, Math.max(longest - 1 - end, 0)).trimEnd()}…${end ? text.slice(-end).trimStart() : ""}`;
}

/** What a kernel computes; the compiler's name of what computes nothing. */
export function kernelTitle(graph: Graph, kernel: number): string {
  return computes(graph, kernel) || targetOf(graph, kernel) || graph.name(kernel);
}

/** `f32[8,128]` from any stage's way to write it; layouts and tuples' insides are for the details. */
export function shortType(type: string): string {
  const tensor = /^tensor<([^<>]*)>$/.exec(type);
  if (tensor) {
    const parts = tensor[1]!.split("x");
    return `${parts.pop()}[${parts.join(",")}]`;
  }
  const arrays = type.match(/\w+\[[^\]]*\]|tensor</g) ?? [];
  if (arrays.length > 1) return `(${arrays.length} arrays)`;
  return type.replace(/\{[^}]*\}/g, "");
}

export const opText = (op: string): string => op.replace(/^stablehlo\./, "");

export interface Label {
  title: string;
  sub: string;
  /** A line of its own below: what holds a measured kernel back. */
  held?: string;
}

export function labelOf(graph: Graph, stage: string, item: Item): Label {
  if (isGroup(item)) return groupLabel(graph, stage, item);
  if (isRest(item)) return { title: "", sub: "" };
  const { node } = item;
  const type = shortType(graph.type(node));
  const op = opText(graph.op(node));
  const inner = graph.inside(item);
  const target = targetOf(graph, node);
  const name = graph.name(node);
  if (isInKernel(graph, node) && !inner.length)
    return { title: cut(op === "parameter" ? name : (target ?? op), 30), sub: "" };
  const isNamed = stage === "hlo";
  const title = op === "parameter" ? graph.scope(node) || name : isNamed ? name : op;
  const share = isNamed ? shareText(graph, item) : "";
  if (op === "fusion" && inner.length) {
    // What it computes is clearer than the compiler's name, which the tip and the details have.
    const words = computes(graph, node);
    const onlyMoves = movesOnly(graph, node) ? "layout only" : "";
    const held = judgedText(graph, item);
    return words
      ? { title: cutMiddle(words, 34), sub: joined(share || cutMiddle(name, 30), onlyMoves), ...(held ? { held } : {}) }
      : { title: cutMiddle(name, 34), sub: joined(cut(type, 22), share) };
  }
  // The instruction's own name stays, so that it can be found in the text.
  if (target) return { title: cutMiddle(target, 34), sub: joined(cutMiddle(isNamed ? name : type, 26), share) };
  if (inner.length) {
    const times = Math.max(0, ...inner.map((group) => graph.times(groupItem(group))));
    const sub = joined(units(stage, graph.count(item) - 1), share || cut(type, 22));
    return { title: cutMiddle(title, 34) + (times ? ` ×${number(times)}` : ""), sub };
  }
  const typed = isNamed && !title.startsWith(op) && op !== "parameter" ? `${op} ${type}` : type;
  return { title: cutMiddle(title, 30), sub: joined(cut(typed, 30), share) };
}

function groupLabel(graph: Graph, stage: string, item: GroupItem): Label {
  const { kind, name, caller } = graph.c.groups[item.group]!;
  const times = graph.times(item);
  if (kind === "uncalled") return { title: "nothing calls these", sub: `${name}, no part of the program` };
  if (kind === "inputs") return { title: name, sub: count(graph.count(item), "array") };
  if (kind === "outputs") {
    const results = graph.nodesOf(item)[0];
    return { title: name, sub: results === undefined ? "" : count(graph.operands(results).length, "array") };
  }
  // A body's own name is the compiler's number for it: what it is comes first.
  const isNumbered = caller >= 0 && /\d|^_|^jaxpr$/.test(name);
  const isPart = /^(body|condition|branch|region)$/.test(kind);
  const title = isNumbered && isPart ? kind : isNumbered && /^(call|function)$/.test(kind) ? `${kind} · ${name}` : name;
  const share = stage === "hlo" ? shareText(graph, item) : "";
  if (kind !== "repeat") {
    const often = times ? ` ×${number(times)}` : isLoop(graph, item) ? " ×?" : "";
    return { title: cutMiddle(title, 34) + often, sub: contents(graph, stage, item) };
  }
  const iterations = graph.iterations(item.group).map(groupItem);
  const first = iterations[iterations.length >> 1]; // the first or the last may be another than the others
  const kernels = first !== undefined && stage === "hlo" ? graph.kernelsIn(first) : 0;
  const content = kernels ? count(kernels, "kernel") : first === undefined ? "" : units(stage, graph.count(first));
  const each = content && `${content} each`;
  const differ = graph.c.differ?.[item.group] ?? 0;
  const unlike = differ || graph.c.difference?.[item.group] ? ", not all alike" : "";
  return { title: `${cutMiddle(title, 30)} ×${number(times)}`, sub: joined(each + unlike, share) };
}

/** Is it the body of a loop of which nobody knows how often it runs? */
const isLoop = (graph: Graph, { group }: GroupItem): boolean =>
  graph.c.groups[group]!.kind === "body" && graph.isOneIteration(graph.below(group)[0] ?? -1);

const joined = (...parts: string[]): string => parts.filter(Boolean).join(" · ");

/** A folded chain of operations that move no data, or only move it. */
export function chainLabel(graph: Graph, chain: number[]): Label {
  const ops = [...new Set(chain.map((node) => opText(graph.op(node))))];
  const type = shortType(graph.type(chain[chain.length - 1]!));
  return { title: cutMiddle(ops.join(", "), 34), sub: `${chain.length} folded · ${cut(type, 22)}` };
}

export const moreLabel = (left: number): Label => ({ title: `… and ${number(left)} more`, sub: "show them instead" });

/** A constant's value or a parameter's last key: what fits on the box of its reader. */
export function chipText(graph: Graph, node: number): string {
  const op = opText(graph.op(node));
  if (op === "parameter") {
    const keys = (graph.scope(node) || graph.name(node)).match(/[A-Za-z_]\w*/g) ?? [];
    return cut(keys.pop() ?? graph.name(node), 14);
  }
  if (op !== "constant") return op;
  const value = graph.attributes?.get(node, "literal", "value") ?? "";
  const plain = value.startsWith("dense<") ? value.slice("dense<".length, -1) : value;
  // An array's value is for the details.
  if (!plain || plain.length > LONGEST || /[(){}[\]<>"…]/.test(plain)) return cut(shortType(graph.type(node)), 14);
  // Binary fractions: 0.899999976 was written 0.9.
  const number = plain.startsWith("0x") ? Number.NaN : Number(plain); // the bits of an infinity are no value
  return Number.isNaN(number) ? plain : String(Number(number.toPrecision(6)));
}

const LONGEST = 16; // characters of a constant's value

export function isInKernel(graph: Graph, node: number): boolean {
  const kind = graph.c.groups[graph.c.groupOf[node]!]?.kind;
  return kind === "fusion" || kind === "apply";
}

/** The node that runs: itself, or the kernel around it. */
export function runningIn(graph: Graph, node: number): number {
  let at = node;
  for (let steps = 0; isInKernel(graph, at) && steps < 8; steps++) {
    const { caller } = graph.c.groups[graph.c.groupOf[at]!]!;
    if (caller < 0) break;
    at = caller;
  }
  return at;
}

/** The kernels that nodes run in: themselves, or the fusion around them; each once, in program order. */
export function kernelsOf(graph: Graph, nodes: Iterable<number>): number[] {
  const kernels = new Set<number>();
  for (const node of nodes) {
    const at = runningIn(graph, node);
    if (graph.isKernel(at)) kernels.add(at);
  }
  return [...kernels].sort((a, b) => a - b);
}

function contents(graph: Graph, stage: string, item: Item): string {
  const kernels = stage === "hlo" ? graph.kernelsIn(item) : 0;
  return kernels ? joined(count(kernels, "kernel"), shareText(graph, item)) : units(stage, graph.count(item));
}

const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];
const SECONDS = ["s", "ms", "µs", "ns"].map((name, i) => [10 ** (-3 * i), name] as const);

/** In the largest unit of which there is one, as it will be printed: to a tenth, from `whole` on to one. */
function scaled(value: number, whole: number): [value: number, prefix: string] {
  let prefix = 0;
  const printed = () => Number(value.toFixed(value >= whole || !prefix ? 0 : 1));
  for (; prefix < PREFIXES.length - 1 && printed() >= 1000; prefix++) value /= 1000;
  return [value, PREFIXES[prefix]!];
}

export function bytesText(bytes: number): string {
  const [value, prefix] = scaled(bytes, 100);
  return `${value >= 100 || !prefix ? Math.round(value).toLocaleString("en") : value.toFixed(1)} ${prefix}B`;
}

/** `2.4 P`: operations. */
export function amount(count: number): string {
  const [value, prefix] = scaled(count, 1000);
  return prefix ? `${value.toFixed(1)} ${prefix}` : String(Math.round(value));
}

/** Three digits: `41.3 ms`. */
export function secondsText(seconds: number): string {
  if (!(seconds > 0)) return "0 s";
  const three = (size: number) => Number((seconds / size).toPrecision(3));
  const [size, unit] = SECONDS.find(([size]) => three(size) >= 1) ?? SECONDS[3]!;
  return `${three(size).toLocaleString("en")} ${unit}`;
}

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

export interface ArrayType {
  dtype: string;
  /** As written: a dynamic one keeps its `<=`, a symbolic one its name, a split one its axes, `32@data`. */
  dims: string[];
}

const ARRAY = /([a-zA-Z]\w*)\[([^\]]*)\]|tensor<((?:(?:\d+|\?)x)*)([^<>,]*(?:<[^<>]*>)?)/g;
const BITS: Record<string, number> = { pred: 8, bool: 8, i1: 8, token: 0, index: 64 };

const parsedTypes = new Map<string, ArrayType[]>();

export function arrays(type: string): ArrayType[] {
  return made(parsedTypes, type, () =>
    Array.from(type.matchAll(ARRAY), ([, name, dims, tensorDims, tensor]) => {
      const parts = name === undefined ? tensorDims!.split("x").slice(0, -1) : dims!.split(/,(?![^()]*\))/);
      return { dtype: name ?? tensor!, dims: parts.map((dim) => dim.trim()).filter(Boolean) };
    }),
  );
}

const bound = (dim: string): number => Number(/^(?:<=)?(\d+)(?:@|$)/.exec(dim)?.[1] ?? 1);
const sizeOf = ({ dims }: ArrayType): number => dims.reduce((all, dim) => all * bound(dim), 1);

/** How many elements the first array of a type has: layouts and transposes keep that. */
export function elements(type: string): number {
  const [first] = arrays(type);
  return first ? sizeOf(first) : 1;
}

/** Bytes of all arrays in a type; a dimension without a number counts as 1, a bounded one as its bound. */
export function bytesOf(type: string): number {
  return Math.ceil(arrays(type).reduce((all, array) => all + bitsOf(array.dtype) * sizeOf(array), 0) / 8);
}

function bitsOf(dtype: string): number {
  const complex = /^complex<f(\d+)>/.exec(dtype);
  return BITS[dtype] ?? (complex ? 2 * Number(complex[1]) : Number(/^[a-z]+(\d+)/.exec(dtype)?.[1] ?? 0));
}
