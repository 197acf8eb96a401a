// Which equations the nodes of a stage come from, and how sure that is: explorer/model/links.py.

import { type Buckets, buckets, push, rowOf } from "./buckets";
import type { Graph } from "./graph";

export const GRADES = ["unknown", "inferred", "exact"] as const;
export type Grade = (typeof GRADES)[number];

export interface SetColumns {
  /** Of each node, the index of its set; -1 for none. */
  code: Int32Array;
  /** Where each set begins in `node`, and the end. */
  start: Int32Array;
  /** The nodes of the first stage in each set. */
  node: Int32Array;
  /** Of each node, an index into `GRADES`. */
  grade: Int32Array;
}

export class EquationSets {
  constructor(private readonly c: SetColumns) {}
  #holders?: { equations: Buckets; codes: Buckets };

  /** The nodes of the first stage that a node comes from: from all of them if that is exact, else from one or more. */
  of = (node: number): Int32Array => rowOf({ start: this.c.start, list: this.c.node }, this.c.code[node] ?? -1);

  gradeOf = (node: number): Grade => GRADES[this.c.grade[node] ?? 0]!;

  /** The nodes that come from an equation, in program order. */
  comingFrom(equation: number): number[] {
    this.#holders ??= this.#turnedAround();
    const { equations, codes } = this.#holders;
    const nodes = Array.from(rowOf(equations, equation), (set) => Array.from(rowOf(codes, set)));
    return nodes.length === 1 ? nodes[0]! : nodes.flat().sort((a, b) => a - b);
  }

  /** The sets that hold each equation, and the nodes that have each set. */
  #turnedAround(): { equations: Buckets; codes: Buckets } {
    const setOf = new Int32Array(this.c.node.length);
    for (let set = 0; set + 1 < this.c.start.length; set++) setOf.fill(set, this.c.start[set]!, this.c.start[set + 1]!);
    const { start, list } = keyed(this.c.node);
    return { equations: { start, list: list.map((member) => setOf[member]!) }, codes: keyed(this.c.code) };
  }
}

/** Indices by their key, but for those whose key is -1. */
function keyed(keys: Int32Array): Buckets {
  const count = keys.reduce((most, key) => Math.max(most, key), -1) + 1;
  const { start, list } = buckets(
    count + 1,
    keys.map((key) => key + 1),
  );
  const skipped = start[1] ?? 0;
  return { start: start.subarray(1).map((at) => at - skipped), list: list.subarray(skipped) };
}

export const lineKey = (file: string, line: number): string => `${line}\u0000${file}`;

/** A line of the source; the function that it stands in, as frames call it. */
export type SourceLine = { file: string; line: number; function: string };

/** See explorer/model/attribution.py; a node's row each, and compressed rows of the nodes of each place. */
export type AttributionColumns = Record<"line" | "mark" | "by" | "equation" | "start" | "node", Int32Array>;

const SERVES = 3;
const EQUATION = 2;

/** The line of each node, as explorer/analysis/attribution.py decides it. */
export class Attribution {
  #codes_?: Map<string, number>;

  constructor(
    readonly places: SourceLine[],
    private readonly c: AttributionColumns,
  ) {}

  /** The line of a node, of a kernel the one that it is named for. */
  place = (node: number): SourceLine | undefined => this.places[this.c.line[node] ?? -1];

  /** The nodes that belong to a line, a kernel to each line of what is inside it. */
  nodes(file: string, line: number): Int32Array {
    this.#codes_ ??= new Map(this.places.map((place, code) => [lineKey(place.file, place.line), code]));
    return this.nodesAt(this.#codes_.get(lineKey(file, line)) ?? -1);
  }

  nodesAt = (code: number): Int32Array => rowOf({ start: this.c.start, list: this.c.node }, code);

  /** Which nodes belong to one of the places that pass. */
  mask(passes: boolean[]): Uint8Array {
    const mask = new Uint8Array(this.c.line.length);
    for (const [code, does] of passes.entries()) if (does) for (const node of this.nodesAt(code)) mask[node] = 1;
    return mask;
  }

  /** The node whose line a node has, if it has one: itself, or the one that it serves. */
  owner(node: number): number {
    const by = this.c.by[node]!;
    return by >= 0 ? by : node;
  }

  /** The node that one serves, whose line it therefore has. */
  served = (node: number): number | undefined => (this.c.mark[node] === SERVES ? this.c.by[node] : undefined);

  /** The equation whose line a node has that lost its own: its row in the first stage. */
  equation = (node: number): number | undefined => (this.c.mark[node] === EQUATION ? this.c.equation[node] : undefined);
}

/** `why`, `before` and `after` are codes into `texts`; `step` is the pass: 0 the import, -1 the lowering, -2 none. */
type Column = "kind" | "inferred" | "why" | "before" | "after" | "step" | "kernelStart" | "kernel";

interface Columns extends Record<Column, Int32Array> {
  kinds: string[];
  /** In words, or lines of the compiler's text. */
  texts: string[];
  /** The names of passes by their numbers. */
  passes: Record<string, string>;
}

export const [IMPORT, LOWERING, NO_PASS] = [0, -1, -2];
const FARTHEST = 24; // equations walked from one without a kernel to the next that has one

/** What became of each equation: explorer/analysis/fates.py. */
export class Fates {
  #byKernel?: Map<number, number[]>;

  constructor(readonly c: Columns) {}

  /** Empty for what is no equation: an argument, a constant. */
  kind = (node: number): string => this.c.kinds[this.c.kind[node]!] ?? "";
  why = (node: number): string => this.#text(this.c.why, node);
  /** The line before the pass that ended it, and the one that stands in its place. */
  before = (node: number): string => this.#text(this.c.before, node);
  after = (node: number): string => this.#text(this.c.after, node);
  step = (node: number): number => this.c.step[node] ?? NO_PASS;
  isInferred = (node: number): boolean => this.c.inferred[node] === 1;
  kernels = (node: number): number[] => [...rowOf({ start: this.c.kernelStart, list: this.c.kernel }, node)];

  #text = (column: Int32Array, node: number): string => this.c.texts[column[node]!] ?? "";

  /** `algsimp (pass 3)`; empty where no pass ended it. */
  stepText(step: number): string {
    if (step === LOWERING) return "JAX's lowering";
    if (step === IMPORT) return "the import (pass 0)";
    return step > 0 ? `${this.c.passes[step] ?? "?"} (pass ${step})` : "";
  }

  /** The nodes of each fate, the most frequent first. */
  counts(): [kind: string, nodes: number[]][] {
    const nodes = new Map<string, number[]>();
    this.c.kind.forEach((code, node) => {
      const kind = this.c.kinds[code];
      if (kind) push(nodes, kind, node);
    });
    return [...nodes].sort(([, a], [, b]) => b.length - a.length);
  }

  /**
   * The equations that a kernel was made of: those that run in it, and those without a kernel that led to one of them.
   */
  ofKernel(graph: Graph, kernel: number): number[] {
    if (!this.#byKernel) {
      this.#byKernel = new Map();
      for (let node = 0; node < graph.size; node++)
        if (this.kind(node)) for (const at of this.#homes(graph, node)) push(this.#byKernel, at, node);
    }
    return this.#byKernel.get(kernel) ?? [];
  }

  /** The kernels under which an equation is listed: its own, or that of its first reader that has one. */
  #homes(graph: Graph, node: number): number[] {
    const seen = new Set([node]);
    for (const at of seen) {
      const kernels = this.kernels(at);
      if (kernels.length) return at === node ? kernels : kernels.slice(0, 1);
      if (seen.size < FARTHEST) for (const user of graph.users(at)) seen.add(user);
    }
    return [];
  }
}
