// What became of each equation: explorer/analysis/fates/fates.py.

import { push } from "./buckets";
import type { Graph } from "./graph";

interface Columns {
  kinds: string[];
  reasons: string[];
  /** The share of the equations whose fate is determined. */
  mapped: number;
  kind: Int32Array;
  inferred: Int32Array;
  why: Int32Array;
  kernelStart: Int32Array;
  kernel: Int32Array;
}

const FARTHEST = 24; // equations walked from one without a kernel to the next that has one

export class Fates {
  #byKernel?: Map<number, number[]>;

  constructor(readonly c: Columns) {}

  /** Empty for what is no equation: an argument, a constant. */
  kind = (node: number): string => this.c.kinds[this.c.kind[node]!] ?? "";
  why = (node: number): string => this.c.reasons[this.c.why[node]!] ?? "";
  isInferred = (node: number): boolean => this.c.inferred[node] === 1;
  kernels = (node: number): number[] => [
    ...this.c.kernel.subarray(this.c.kernelStart[node]!, this.c.kernelStart[node + 1]!),
  ];

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
