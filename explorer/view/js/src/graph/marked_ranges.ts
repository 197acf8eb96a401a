// Which places of a graph's order are marked, so that any range of it can be tested in constant time.

import type { Graph } from "../core/graph";

const NONE: Int32Array = new Int32Array(0);

export class Marks {
  /** Running sums by place: of the marked nodes, and of those whose counterpart in an equal iteration is marked. */
  #own: Int32Array = NONE;
  #alike: Int32Array = NONE;
  #nodes?: ReadonlySet<number>;
  #graph?: Graph;

  set(graph: Graph, nodes: ReadonlySet<number>): void {
    if (this.#nodes === nodes && this.#graph === graph) return;
    this.#nodes = nodes;
    this.#graph = graph;
    this.#own = this.#alike = NONE;
    if (!nodes.size) return;
    const marked = new Uint8Array(graph.size);
    for (const node of nodes) marked[graph.at[node]!] = 1;
    this.#own = sums(graph.size, (i) => marked[i]!);
    const { twins } = graph;
    if (!twins) {
      this.#alike = this.#own;
      return;
    }
    const any = new Uint8Array(graph.size);
    for (let i = 0; i < graph.size; i++) if (marked[i]) any[twins[i]!] = 1;
    this.#alike = sums(graph.size, (i) => any[twins[i]!]!);
  }

  /** Is anything marked in a stretch, or its counterpart in an iteration that is not drawn? */
  any(from: number, to: number): boolean {
    return this.#alike.length > 0 && this.#alike[to]! > this.#alike[from]!;
  }

  /** Is anything marked in the stretch itself? */
  has(from: number, to: number): boolean {
    return this.#own.length > 0 && this.#own[to]! > this.#own[from]!;
  }
}

function sums(size: number, value: (i: number) => number): Int32Array {
  const all = new Int32Array(size + 1);
  for (let i = 0; i < size; i++) all[i + 1] = all[i]! + value(i);
  return all;
}
