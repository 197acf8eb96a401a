// What colour a box has: that of its source line, of a category, or of a number.

import { tallied } from "../core/buckets";
import type { Stage } from "../core/capture";
import { type Graph, type Item, isNode, isRest } from "../core/graph";
import { arrays, opText, shortType, total } from "../core/labels";
import type { Session } from "../core/session";
import { COLOURS } from "../source/source_lines";

export interface Colour {
  /** One of the palette of style.css, -1 for none. */
  kind: number;
  /** Of a number: a colour of its own. */
  css?: string;
}

export interface Legend {
  title: string;
  /** Categories with their colours, the most frequent first. */
  entries: { kind: number; text: string }[];
  /** Or the ends of a ramp. */
  ramp?: { low: number; high: number; isLog: boolean };
}

type Category = { title: string; of(graph: Graph, node: number, stage: Stage): string };

const CATEGORIES: Record<string, Category> = {
  op: { title: "operation", of: (graph, node) => opText(graph.op(node)) },
  dtype: { title: "dtype", of: (graph, node) => arrays(graph.type(node))[0]?.dtype ?? "" },
  fusion: {
    title: "kind of kernel",
    of: (graph, node) =>
      graph.isKernel(node)
        ? graph
            .name(node)
            .replace(/[._]?\d+$/, "")
            .replace(/\.clone.*$/, "")
        : "",
  },
  scope: { title: "scope", of: (graph, node) => scopeOf(graph.scope(graph.c.attribution.owner(node))) },
  sharding: { title: "sharding", of: (graph, node, { shardings }) => shardings?.way(node) ?? shardingOf(graph, node) },
  fate: { title: "what happened to it", of: (_, node, stage) => stage.fates?.kind(node) ?? "" },
};
const SHARDINGS = ["sharding", "sdy.sharding", "mhlo.sharding"]; // in a jaxpr and HLO, and in StableHLO
const MEASURES: Record<string, string> = {
  bytes: "bytes",
  flops: "FLOPs",
  time: "time",
  wasted: "time over the minimum",
};
const LOG_FROM = 1000; // times from the least to the most
const DECADES = 1e4; // of a sum, that the ramp spans: what is less than a part of this size is dark
// Viridis (Smith, van der Walt, Firing 2015): even steps of lightness, also to the colour-blind.
const RAMP = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"];

/** What stands between the brackets of a sharding, `@mesh, [{"i"}, {}]`; or of a type with axes in it, `data, –`. */
function shardingOf(graph: Graph, node: number): string {
  const type = graph.type(node);
  if (type.includes("@"))
    return arrays(type)[0]!
      .dims.map((dim) => dim.split("@")[1] ?? "–")
      .join(", ");
  const value = graph.attributes?.get(node, ...SHARDINGS) ?? "";
  const start = value.startsWith("{") ? 1 : value.startsWith("#sdy.sharding<") ? value.indexOf("<") + 1 : 0;
  return value.slice(start, start ? -1 : undefined);
}

/** `forward`, `backward` or the named scope that made it. */
function scopeOf(scope: string): string {
  const parts = scope.split("/").slice(0, -1);
  const named = parts.filter(
    (part) =>
      /^[\w.-]+$/.test(part) &&
      !/^(while|body|cond|branch_\d+_fun|closed_call|checkpoint|rematted_computation)$/.test(part),
  );
  return named[0] ?? (scope.includes("transpose(") ? "backward" : scope.includes("jvp(") ? "forward" : "");
}

/** What boxes of the current stage can be coloured by, with what a person calls it. */
export function columnsOf(session: Session): [name: string, title: string][] {
  const { graph } = session.stage;
  const columns: [string, string][] = [["line", "source line"]];
  for (const [name, { title, of }] of Object.entries(CATEGORIES)) {
    if (name === "fusion" && session.stage.name !== "hlo") continue;
    const isSharded = () =>
      !!session.stage.shardings ||
      !!graph.attributes?.has(...SHARDINGS) ||
      graph.c.types.some((type) => type.includes("@"));
    if (name === "sharding" ? isSharded() : name === "op" || name === "dtype" || hasTwo(session.stage, of))
      columns.push([name, title]);
  }
  for (const name of Object.keys(graph.c.measures).filter((name) => name !== "bound"))
    columns.push([name, MEASURES[name] ?? name]);
  return columns;
}

const SAMPLE = 4000;

function hasTwo(stage: Stage, of: Category["of"]): boolean {
  const { graph } = stage;
  const step = Math.max(1, Math.floor(graph.size / SAMPLE));
  const values = new Set<string>();
  for (let node = 0; node < graph.size && values.size < 2; node += step) {
    const value = of(graph, node, stage);
    if (value) values.add(value);
  }
  return values.size > 1;
}

export class Colouring {
  readonly #kinds = new Map<string, number>();
  readonly #frequent: string[] = [];
  #low = 0;
  #high = 0;
  #isLog = false;

  constructor(
    private readonly session: Session,
    readonly by: string,
  ) {
    const { graph } = session.stage;
    const category = CATEGORIES[by];
    if (category) this.#countCategories(graph, category.of);
    else if (graph.c.measures[by]) this.#findRange(graph, graph.c.measures[by]!);
  }

  #countCategories(graph: Graph, of: Category["of"]): void {
    const nodes = Array.from(graph.order.keys()).filter(
      (node) => !graph.isChip[node] && graph.op(node) !== "parameter",
    );
    const values = nodes.map((node) => of(graph, node, this.session.stage)).filter(Boolean);
    this.#frequent.push(...tallied(values).map(([value]) => value));
    for (const [i, value] of this.#frequent.slice(0, COLOURS).entries()) this.#kinds.set(value, i);
  }

  /** Of what adds up, shares of the whole, the same for kernels and groups; else from the least to the most. */
  #findRange(graph: Graph, values: Float32Array): void {
    if (MEASURES[this.by]) {
      this.#high = total(graph, this.by);
      this.#low = this.#high / DECADES;
      this.#isLog = true;
      return;
    }
    const above = values.filter((value) => value > 0);
    this.#high = above.reduce((most, value) => Math.max(most, value), 0);
    this.#low = above.reduce((least, value) => Math.min(least, value), this.#high);
    this.#isLog = this.#high / this.#low >= LOG_FROM;
    if (!this.#isLog) this.#low = 0;
  }

  /** The colour of an item; `line` is the palette's number of its source line. */
  of(item: Item, line: number): Colour {
    const { graph } = this.session.stage;
    if (this.by === "line" || isRest(item)) return { kind: line };
    const category = CATEGORIES[this.by];
    if (category)
      return { kind: isNode(item) ? (this.#kinds.get(category.of(graph, item.node, this.session.stage)) ?? -1) : -1 };
    // A group or a loop is what runs in it.
    const isOwn = isNode(item) && (!MEASURES[this.by] || graph.isKernel(item.node));
    const own = isOwn ? (graph.c.measures[this.by]?.[item.node] ?? NaN) : NaN;
    const value = own >= 0 ? own : MEASURES[this.by] ? total(graph, this.by, item) : NaN;
    return value > 0 ? { kind: -1, css: ramp(this.#place(value)) } : { kind: -1 };
  }

  #place(value: number): number {
    const scale = this.#isLog ? Math.log : (v: number) => v;
    const span = scale(this.#high) - scale(this.#low);
    return span > 0 ? Math.min(Math.max((scale(value) - scale(this.#low)) / span, 0), 1) : 1;
  }

  get legend(): Legend | undefined {
    const category = CATEGORIES[this.by];
    if (this.by === "line") return undefined;
    if (!category) {
      const ramp = { low: this.#low, high: this.#high, isLog: this.#isLog };
      return { title: MEASURES[this.by] ?? this.by, entries: [], ...(this.#high > 0 && { ramp }) };
    }
    const shown = this.#frequent.slice(0, COLOURS);
    const entries = shown.map((text, kind) => ({ kind, text: this.by === "dtype" ? shortType(text) : text }));
    if (this.#frequent.length > COLOURS) entries.push({ kind: -1, text: `${this.#frequent.length - COLOURS} others` });
    return { title: category.title, entries };
  }
}

/** The colour at a place of the ramp, from 0 to 1. */
export function ramp(place: number): string {
  const at = place * (RAMP.length - 1);
  const i = Math.min(Math.floor(at), RAMP.length - 2);
  const part = (hex: string, k: number) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
  const mix = (low: number, high: number) => Math.round(low + (at - i) * (high - low));
  const mixed = [0, 1, 2].map((k) => mix(part(RAMP[i]!, k), part(RAMP[i + 1]!, k)));
  return `rgb(${mixed.join(" ")})`;
}

export const RAMP_CSS = `linear-gradient(90deg, ${RAMP.join(", ")})`;
