// Shares of lines, and which equations a kernel was made of.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Graph } from "../../src/core/graph";
import { Fates, lineKey } from "../../src/core/links";
import { Costs, percent } from "../../src/lines/line_costs";

const line = (number: number, flops: number, bytes: number) => ({
  file: "a.py",
  line: number,
  equations: 1,
  kernels: 1,
  flops,
  bytes,
  seconds: null,
});

test("a share is never rounded to nothing, and nothing is not written", () => {
  assert.equal(percent(0), "");
  assert.equal(percent(1e-9), "<1%");
  assert.equal(percent(0.005), "1%");
  assert.equal(percent(1), "100%");
  assert.equal(percent(NaN), "");
});

test("what takes the time comes first: bytes where little is computed with each, FLOPs where much is", () => {
  assert.equal(new Costs([line(1, 90, 10)]).first, "bytes");
  assert.equal(new Costs([line(1, 110, 10)]).first, "flops");
  assert.equal(new Costs([{ ...line(1, 110, 10), seconds: 2 }]).first, "seconds");
  assert.deepEqual(new Costs([]).measures, []);
});

test("the shares of the lines are of their sum", () => {
  const costs = new Costs([line(1, 30, 0), line(2, 10, 5)]);
  assert.equal(costs.share(costs.at(lineKey("a.py", 1))!, "flops"), 0.75);
  assert.equal(costs.share(costs.at(lineKey("a.py", 2))!, "bytes"), 1);
  assert.equal(costs.at(lineKey("a.py", 3)), undefined);
});

/** A chain of four equations, each read by the next; the last two run in kernel 7. */
function chain(): [Fates, Graph] {
  const users = [[1], [2], [3], []];
  const fates = new Fates({
    kinds: ["", "fused", "folded"],
    texts: [""],
    passes: {},
    kind: Int32Array.of(0, 2, 1, 1),
    inferred: Int32Array.of(0, 1, 0, 0),
    why: new Int32Array(4),
    before: new Int32Array(4),
    after: new Int32Array(4),
    step: new Int32Array(4).fill(-2),
    kernelStart: Int32Array.of(0, 0, 0, 1, 2),
    kernel: Int32Array.of(7, 7),
  });
  return [fates, { size: 4, users: (node: number) => users[node]! } as unknown as Graph];
}

test("a kernel was made of what runs in it and of what led to that alone", () => {
  const [fates, graph] = chain();
  assert.deepEqual(fates.ofKernel(graph, 7), [1, 2, 3]);
  assert.deepEqual(fates.ofKernel(graph, 8), []);
  assert.ok(fates.isInferred(1));
});

test("the most frequent fate comes first, and arguments have none", () => {
  const [fates] = chain();
  assert.deepEqual(fates.counts(), [
    ["fused", [2, 3]],
    ["folded", [1]],
  ]);
});
