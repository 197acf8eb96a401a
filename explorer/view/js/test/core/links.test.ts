// Links between stages, as sets of equations.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EquationSets } from "../../src/core/links";

const column = (...values: number[]) => Int32Array.from(values);

test("a node leads to the equations of its set and each of them back to all nodes that come from it", () => {
  // sets: {2}, {0, 2}, {5}
  const code = column(1, -1, 0, 2, 0);
  const grade = column(1, 0, 2, 2, 2);
  const sets = new EquationSets({ code, start: column(0, 1, 3, 4), node: column(2, 0, 2, 5), grade });
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

test("a stage without any link has none", () => {
  const sets = new EquationSets({ code: column(-1, -1), start: column(0), node: column(), grade: column(0, 0) });
  assert.deepEqual([Array.from(sets.of(0)), sets.comingFrom(0)], [[], []]);
});
