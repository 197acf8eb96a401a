// Which equations the nodes of a stage come from, and how sure that is: explorer/model/links.py.

import { type Buckets, buckets, rowOf } from "./buckets";

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
