// What became of each equation: explorer/analysis/fates.py.

import { push, rowOf } from "./buckets";
import type { Graph } from "./graph";

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
