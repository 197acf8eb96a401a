// Which equations the nodes of a stage come from, and how sure that is: explorer/model/links.py.

import { type Buckets, buckets } from "./buckets";

export const GRADES = ["unknown", "inferred", "exact"] as const;
export type Grade = (typeof GRADES)[number];

export class EquationSets {
  /**
   * @param code of each node, the index of its set; -1 for none
   * @param start where each set begins in `node`, and the end
   * @param node the nodes of the first stage in each set
   * @param grade of each node, an index into `GRADES`
   */
  constructor(
    readonly code: Int32Array,
    readonly start: Int32Array,
    readonly node: Int32Array,
    readonly grade: ArrayLike<number>,
  ) {}
  #holders?: { equations: Buckets; codes: Buckets };

  /** The sets of captures up to format 2: nodes correspond where their keys are equal; -1 for none. */
  static ofKeys(first: Int32Array, other: Int32Array): EquationSets {
    const { start, list } = keyed(first);
    const code = other.map((key) => (key >= 0 && start[key]! < start[key + 1]! ? key : -1));
    const grade = code.map((key) => (key < 0 ? 0 : 1));
    return new EquationSets(code, start, list, grade);
  }

  /** The nodes of the first stage that a node comes from: from all of them if that is exact, else from one or more. */
  of(node: number): Int32Array {
    const code = this.code[node] ?? -1;
    return code < 0 ? new Int32Array(0) : this.node.subarray(this.start[code]!, this.start[code + 1]!);
  }

  gradeOf(node: number): Grade {
    return GRADES[this.grade[node] ?? 0]!;
  }

  /** The nodes that come from an equation, in program order. */
  comingFrom(equation: number): number[] {
    this.#holders ??= this.#turnedAround();
    const { equations, codes } = this.#holders;
    const sets = equations.list.subarray(equations.start[equation] ?? 0, equations.start[equation + 1] ?? 0);
    const nodes = Array.from(sets, (set) =>
      Array.from(codes.list.subarray(codes.start[set] ?? 0, codes.start[set + 1] ?? 0)),
    );
    return nodes.length === 1 ? nodes[0]! : nodes.flat().sort((a, b) => a - b);
  }

  /** The sets that hold each equation, and the nodes that have each set. */
  #turnedAround(): { equations: Buckets; codes: Buckets } {
    const setOf = new Int32Array(this.node.length);
    for (let set = 0; set + 1 < this.start.length; set++) setOf.fill(set, this.start[set]!, this.start[set + 1]!);
    const { start, list } = keyed(this.node);
    return { equations: { start, list: list.map((member) => setOf[member]!) }, codes: keyed(this.code) };
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
