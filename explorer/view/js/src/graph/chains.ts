// Runs of operations that move or reinterpret an array without computing: one box stands for each, until it is opened.

import type { Graph } from "../core/graph";
import { type Item, isNode } from "../core/item";

// Operations in every stage's spelling, `_` as `-`.
const PLAIN = new RegExp(
  "^(stablehlo\\.)?(bitcast|bitcast-convert|bitcast-convert-type|reshape|dynamic-reshape|convert|" +
    "convert-element-type|copy|copy-p|broadcast|broadcast-in-dim|squeeze|expand-dims|transpose|get-tuple-element|" +
    "optimization-barrier|opt-barrier|stop-gradient|reduce-precision|pbroadcast|pvary)$",
);

/** The chains among `items`, by their first node; each at least two nodes, of which each is read by the next alone. */
export function chainsOf(graph: Graph, items: readonly Item[]): Map<number, number[]> {
  const plain = new Set(
    items
      .filter(isNode)
      .filter((item) => !graph.inside(item).length)
      .map(({ node }) => node)
      .filter((node) => PLAIN.test(graph.op(node).replaceAll("_", "-"))),
  );
  const next = new Map<number, number>();
  const hasBefore = new Set<number>();
  for (const node of plain) {
    const users = graph.users(node);
    const only = users.length === 1 ? users[0]! : -1;
    if (!plain.has(only) || graph.operands(only).filter((operand) => !graph.isChip[operand]).length !== 1) continue;
    next.set(node, only);
    hasBefore.add(only);
  }
  const chains = new Map<number, number[]>();
  for (const node of plain) {
    if (hasBefore.has(node) || !next.has(node)) continue;
    const chain = [node];
    for (let at = next.get(node); at !== undefined; at = next.get(at)) chain.push(at);
    chains.set(node, chain);
  }
  return chains;
}
