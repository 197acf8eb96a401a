// Links between stages, as sets of equations, and as the keys of captures up to format 2.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EquationSets } from "../../src/core/links";

const column = (...values: number[]) => Int32Array.from(values);

test("a node leads to the equations of its set and each of them back to all nodes that come from it", () => {
  // sets: {2}, {0, 2}, {5}
  const sets = new EquationSets(column(1, -1, 0, 2, 0), column(0, 1, 3, 4), column(2, 0, 2, 5), column(1, 0, 2, 2, 2));
  assert.deepEqual(
    [0, 1, 2, 3, 9].map((node) => Array.from(sets.of(node))),
    [[0, 2], [], [2], [5], []],
  );
  assert.deepEqual(
    [0, 1, 2, 5, 9].map((equation) => sets.comingFrom(equation)),
    [[0], [], [0, 2, 4], [3], []],
  );
  assert.deepEqual(
    [0, 1, 2].map((node) => sets.gradeOf(node)),
    ["inferred", "unknown", "exact"],
  );
});

test("keys that are equal are one set, inferred, and a key that the first stage has not is none", () => {
  const sets = EquationSets.ofKeys(column(-1, 3, 0, 3), column(3, -1, 0, 7, 1));
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((node) => Array.from(sets.of(node))),
    [[1, 3], [], [2], [], []],
  );
  assert.deepEqual(
    [0, 1, 2, 3].map((equation) => sets.comingFrom(equation)),
    [[], [0], [2], [0]],
  );
  assert.deepEqual(
    [0, 1, 2].map((node) => sets.gradeOf(node)),
    ["inferred", "unknown", "inferred"],
  );
});

test("a stage without any link has none", () => {
  const sets = new EquationSets(column(-1, -1), column(0), column(), column(0, 0));
  assert.deepEqual([Array.from(sets.of(0)), sets.comingFrom(0)], [[], []]);
});
