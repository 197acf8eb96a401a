import assert from "node:assert/strict";
import { test } from "node:test";

import { columns, gridStep, Memory, type MemoryColumns } from "../../src/memory/memory";

const rows = (...of: [size: number, start: number, end: number, space?: number][]): MemoryColumns => {
  const column = (pick: (row: (typeof of)[number]) => number) => Int32Array.from(of, pick);
  return {
    kinds: ["argument", "temp"],
    scheduled: true,
    order: Int32Array.from({ length: Math.max(...of.map(([, , end]) => end)) + 1 }, (_, step) => step),
    node: column(() => 0),
    array: column(() => 0),
    kind: column((row) => (row[1] === 0 ? 0 : 1)),
    space: column((row) => row[3] ?? 0),
    start: column((row) => row[1]),
    end: column((row) => row[2]),
    size: Float64Array.from(of, (row) => row[0]),
    donations: new Int32Array(),
  };
};

test("the bytes alive at each step are those of the buffers that live in it", () => {
  const memory = new Memory(rows([8, 0, 3], [100, 1, 2], [1, 2, 3], [1000, 0, 3, 5]));
  assert.deepEqual([...memory.total], [8, 108, 109, 9]);
  assert.equal(memory.peakStep, 2);
  assert.deepEqual(memory.at(1), [3, 1, 0]);
});

test("other memory spaces count for themselves", () => {
  const memory = new Memory(rows([8, 0, 3], [100, 1, 2, 5], [7, 2, 3, 5], [1000, 0, 3, 1]));
  assert.equal(memory.peak, 8);
  assert.deepEqual(memory.besides, [
    [1, 1000],
    [5, 107],
  ]);
});

test("more bytes than an int32 holds are read exactly", () => {
  assert.equal(new Memory(rows([5 * 2 ** 40 + 1, 0, 0])).peak, 5 * 2 ** 40 + 1);
});

test("a peak of one step in a hundred thousand keeps its column", () => {
  const total = new Float64Array(100_000).fill(1);
  total[77_777] = 9;
  const { first, top } = columns(total, 640);
  assert.equal(top.length, 640);
  assert.ok(top.includes(77_777));
  assert.equal(first[0], 0);
  assert.equal(first[640], 100_000);
  for (const [i, step] of top.entries()) assert.ok(first[i]! <= step && step < first[i + 1]!);
});

test("few steps have a column each", () => {
  const { first, top } = columns(Float64Array.of(3, 1, 2), 640);
  assert.deepEqual([...first], [0, 1, 2, 3]);
  assert.deepEqual([...top], [0, 1, 2]);
});

test("the scale has round numbers, and not many of them", () => {
  for (const peak of [1, 7, 49_152, 22_600_000, 3e11]) {
    const step = gridStep(peak);
    assert.match(String(step), /^[125]0*$|^0\.[125]$/);
    assert.ok(peak / step >= 2 && peak / step <= 10, `${peak} by ${step}`);
  }
});
