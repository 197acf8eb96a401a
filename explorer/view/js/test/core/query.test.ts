// The search field's language finds what `Graph.where` finds: the same cases as tests/unit/analysis/test_query.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph } from "../../src/core/graph";
import { Attribution } from "../../src/core/links";
import { find, QueryError } from "../../src/core/query";
import { attributesOf } from "../attributes";
import shared from "../queries.json";

const { graph: known, cases, faults } = shared;

const byName: Record<string, Record<string, string>> = known.attributes;
const attributes = attributesOf(known.names.map((name) => byName[name] ?? {}));

const graph = new Graph({
  ...known,
  op: Int32Array.from(known.op),
  type: Int32Array.from(known.type),
  scope: Int32Array.from(known.scope),
  operandStart: Int32Array.from([0, ...known.operands.map((_, i) => known.operands.slice(0, i + 1).flat().length)]),
  operand: Int32Array.from(known.operands.flat()),
  frame: Int32Array.from(known.frame),
  line: new Int32Array(known.names.length),
  frames: known.frames.map((frame) => ({ column: 0, ...frame })),
  attribution: new Attribution(known.places, {
    line: Int32Array.from(known.attribution.line),
    mark: Int32Array.from(known.attribution.mark),
    by: Int32Array.from(known.attribution.by),
    equation: Int32Array.from(known.attribution.equation),
    start: Int32Array.from(known.attribution.start),
    node: Int32Array.from(known.attribution.node),
  }),
  groupOf: Int32Array.from(known.group, (group) => group - 1), // the picture has no box for the entry
  groups: known.groups.slice(1).map((group) => ({ ...group, parent: group.parent - 1 })),
  measures: Object.fromEntries(
    Object.entries(known.measures).map(([name, values]) => [name, Float32Array.from(values, (value) => value ?? NaN)]),
  ),
  readAttributes: () => attributes,
});

for (const [query, names] of cases as [string, string[]][])
  test(`“${query}” finds what it finds in Python`, () =>
    assert.deepEqual(
      find(graph, query).map((node) => known.names[node]),
      names,
    ));

for (const query of faults) test(`“${query}” is refused`, () => assert.throws(() => find(graph, query), QueryError));

test("a graph without attributes has nothing to find in them", () => {
  const without = new Graph({ ...graph.c, readAttributes: undefined });
  assert.deepEqual(find(without, "attr:dimensions or target:getrf"), []);
});

test("a node's attributes are in the order of the text", () => {
  assert.deepEqual(graph.attributes!.of(5), [
    ["known_trip_count", "10"],
    ["body", "body.1"],
  ]);
  assert.equal(graph.attributes!.get(5, "sharding", "body"), "body.1");
  assert.equal(graph.attributes!.get(0, "body"), undefined);
});
