import assert from "node:assert/strict";
import test from "node:test";
import { aligned, Versions } from "../../src/passes/passes";

/** Three snapshots of two instructions: the second is rewritten, then the first is replaced by a third. */
function versions(): Versions {
  const lines = [
    "ENTRY %main {",
    "  %a = f32[2] parameter(0)",
    "  ROOT %b = f32[2] tanh(%a)",
    "}",
    "  ROOT %b = f32[2] exp(%a)",
    "  %c = f32[2] iota()",
  ];
  return new Versions(
    {
      key: Int32Array.of(-1, 0, 1, -1, 1, 2),
      op: Int32Array.of(-1, 0, 1, -1, 2, 3),
      type: Int32Array.of(-1, 0, 0, -1, 0, 0),
      frame: new Int32Array(6).fill(-1),
      operandStart: Int32Array.of(0, 0, 0, 1, 1, 2, 2),
      operand: Int32Array.of(0, 0),
      computation: new Int32Array(3),
      names: ["a", "b", "c"],
      computations: ["main"],
      ops: ["parameter", "tanh", "exp", "iota"],
      types: ["f32[2]"],
      frames: [],
      own: new Int32Array(0),
      runs: Int32Array.of(-1, 4, 0, 2, -1, 1, 3, 1, 0, 1, -1, 1, 2, 2),
      runCounts: Int32Array.of(2, 6, 6),
      firsts: Int32Array.of(0, 4, 5),
    },
    () => lines.join("\n"),
  );
}

test("each snapshot is made of the one before it and the rows that are new", () => {
  const made = versions();
  assert.deepEqual([...made.rows(2)], [0, 5, 4, 3]);
  assert.deepEqual([...made.rows(0)], [0, 1, 2, 3]);
  assert.deepEqual([...made.rows(1)], [0, 1, 4, 3]);
});

test("an instruction that keeps its name is rewritten, another is born or has died", () => {
  const made = versions();
  assert.deepEqual(made.effect(0, 1), { born: [], died: [], changed: [[2, 4]] });
  assert.deepEqual(made.effect(1, 2), { born: [5], died: [1], changed: [] });
});

test("aligned rows keep both sides in order, and as many in place as can be", () => {
  const [before, after] = [Int32Array.of(1, 2, 3, 4, 5), Int32Array.of(3, 1, 2, 9, 5)];
  const pairs = aligned(before, after);
  assert.deepEqual(
    pairs.map(([old]) => old).filter((row) => row >= 0),
    [...before],
  );
  assert.deepEqual(
    pairs.map(([, row]) => row).filter((row) => row >= 0),
    [...after],
  );
  assert.equal(pairs.filter(([old, row]) => old === row).length, 3);
});
