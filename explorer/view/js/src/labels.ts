// How things are called on the screen.

import { type Graph, type Item, isGroup } from "./model";

export const STAGE_TITLES: Record<string, string> = { jaxpr: "jaxpr", stablehlo: "StableHLO", hlo: "HLO" };
const UNITS: Record<string, [one: string, many: string]> = {
  jaxpr: ["equation", "equations"],
  stablehlo: ["operation", "operations"],
  hlo: ["instruction", "instructions"],
};

const NUMBER = new Intl.NumberFormat("en"); // making one is slow
export const number = (n: number): string => NUMBER.format(n);
export const count = (n: number, one: string, many = `${one}s`): string => `${number(n)} ${n === 1 ? one : many}`;
export const units = (stage: string, n: number): string => count(n, ...(UNITS[stage] ?? ["node", "nodes"]));
export const cut = (text: string, longest: number): string => (text.length <= longest ? text : `${text.slice(0, longest - 1)}…`);

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

export { bytesOf } from "./types";

export function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) {
    bytes /= 1000;
    unit++;
  }
  return `${bytes >= 100 || unit === 0 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
}

export function amount(value: number): string {
  for (const [size, unit] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"]] as const)
    if (value >= size) return (value / size).toFixed(1) + unit;
  return String(Math.round(value));
}

export function secondsText(seconds: number): string {
  if (seconds >= 1) return `${seconds.toFixed(seconds >= 10 ? 0 : 1)} s`;
  return seconds >= 0.001 ? `${Math.round(seconds * 1000)} ms` : `${Math.round(seconds * 1e6)} µs`;
}

export const opText = (op: string): string => op.replace(/^stablehlo\./, "");

export interface Label {
  title: string;
  sub: string;
}

export function labelOf(graph: Graph, stage: string, item: Item): Label {
  if (isGroup(item)) {
    const group = graph.c.groups[~item]!;
    // A body's own name is the compiler's number for it: what it is comes first.
    const title = /^(body|condition|branch|call|region|function)$/.test(group.kind) && group.caller >= 0 ? `${group.kind} · ${group.name}` : group.name;
    const sub = group.kind === "inputs" ? count(graph.count(item), "array") : contents(graph, stage, item);
    return { title: cut(title, 34), sub };
  }
  const type = shortType(graph.type(item));
  const op = opText(graph.op(item));
  const inner = graph.inside(item);
  const isNamed = stage === "hlo" && !isInKernel(graph, item);
  const title = op === "parameter" ? graph.scope(item) || graph.name(item) : isNamed ? graph.name(item) : op;
  if (inner.length) return { title: cut(title, 34), sub: `${units(stage, graph.count(item) - 1)} · ${cut(type, 22)}` };
  return { title: cut(title, 30), sub: isInKernel(graph, item) ? "" : cut(isNamed && op !== "fusion" && !title.startsWith(op) ? `${op} ${type}` : type, 30) };
}

export function isInKernel(graph: Graph, node: number): boolean {
  const kind = graph.c.groups[graph.c.groupOf[node]!]?.kind;
  return kind === "fusion" || kind === "apply";
}

/** The kernels that nodes run in: themselves, or the fusion around them; each once, in program order. */
export function kernelsOf(graph: Graph, nodes: Iterable<number>): number[] {
  const found = new Set<number>();
  for (const node of nodes) {
    let at = node;
    for (let steps = 0; isInKernel(graph, at) && steps < 8; steps++) {
      const { caller } = graph.c.groups[graph.c.groupOf[at]!]!;
      if (caller < 0) break;
      at = caller;
    }
    if (graph.isKernel(at)) found.add(at);
  }
  return [...found].sort((a, b) => a - b);
}

function contents(graph: Graph, stage: string, item: Item): string {
  const all = units(stage, graph.count(item));
  if (stage !== "hlo") return all;
  const n = graph.kernelsIn(item);
  return n ? `${count(n, "kernel")} · ${all}` : all;
}
