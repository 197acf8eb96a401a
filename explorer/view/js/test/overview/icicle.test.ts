// What a program costs as boxes: they add up, stay within what is above them, and are few.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Capture, type Header, type LineCost, type Stage } from "../../src/core/capture";
import { Graph, type Group } from "../../src/core/graph";
import { Attribution } from "../../src/core/links";
import { icicle, type Part } from "../../src/overview/icicle";

/** A program of kernels: the group and the line of each, -1 for none, and its bytes. */
function captureOf(kernels: { group: number; line: number; bytes: number }[], groups: Group[], lines: number): Capture {
  const size = kernels.length;
  const column = (value: number) => new Int32Array(size).fill(value);
  const none = { line: column(-1), mark: column(0), by: column(-1), equation: column(-1) };
  const attribution = new Attribution([], { ...none, start: new Int32Array(1), node: new Int32Array(0) });
  const graph = new Graph({
    names: kernels.map((_, i) => `fusion.${i}`),
    ops: ["multiply"],
    types: ["f32[8]"],
    scopes: [""],
    op: column(0),
    type: column(0),
    scope: column(0),
    operandStart: new Int32Array(size + 1),
    operand: new Int32Array(0),
    frame: column(-1),
    line: Int32Array.from(kernels, (_, i) => i),
    frames: [],
    attribution,
    measures: { bytes: Float32Array.from(kernels, ({ bytes }) => bytes) },
    groups,
    groupOf: Int32Array.from(kernels, ({ group }) => group),
  });
  const stage: Stage = { name: "hlo", size, coverage: 1, graph, lines: [], frames: [], attribution };
  const costs: LineCost[] = Array.from({ length: lines }, (_, i) => ({
    ...{ file: "a.py", line: i + 1, equations: 1, kernels: 1, flops: 0 },
    ...{ bytes: 1, seconds: null },
  }));
  const header = { lines: costs, function: "f", sources: [] } as unknown as Header;
  const rows = kernels.map(({ bytes }, i) => [i, bytes] as const).filter(([, bytes]) => bytes > 0);
  const kernelLines = {
    kernel: Int32Array.from(rows, ([i]) => i),
    line: Int32Array.from(rows, ([i]) => kernels[i]!.line),
    amounts: { bytes: Float64Array.from(rows, ([, bytes]) => bytes) },
  };
  return new Capture(header, [stage], { kernelLines: () => kernelLines });
}

const group = (name: string, kind: string, parent = -1): Group => ({ name, kind, parent, caller: -1 });
const PHASES = [group("backward", "phase"), group("forward", "phase"), group("block", "function", 1)];

function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

const isWithin = (inner: Part, outer: Part) =>
  inner.from >= outer.from - 1e-9 && inner.from + inner.share <= outer.from + outer.share + 1e-9;

test("boxes of any program add up to the whole, lie within what is above them and never over each other", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const next = random(seed);
    const kernels = Array.from({ length: 1 + Math.floor(next() * 80) }, () => ({
      group: Math.floor(next() * 4) - 1,
      line: Math.floor(next() * 6) - 1,
      bytes: next() < 0.2 ? 0 : next() ** 6 * 1e6,
    }));
    const least = next() * 0.05;
    const { parts, rows, total } = icicle(captureOf(kernels, PHASES, 5), "bytes", Math.floor(next() * 3), least);
    const all = kernels.reduce((sum, { bytes }) => sum + bytes, 0);
    assert.ok(Math.abs(total - all) <= 1e-6 * all);
    if (!all) continue;
    for (let row = 0; row < rows; row++) {
      const inRow = parts.filter((part) => part.top <= row && row < part.bottom).sort((a, b) => a.from - b.from);
      const sum = inRow.reduce((sum, part) => sum + part.share, 0);
      assert.ok(Math.abs(sum - 1) < 1e-6, `row ${row} of seed ${seed} is ${sum} of the whole`);
      for (const [i, part] of inRow.entries())
        if (i) assert.ok(part.from >= inRow[i - 1]!.from + inRow[i - 1]!.share - 1e-9);
      // Each hangs under one box that is as wide at least.
      for (const part of inRow.filter(({ top }) => top === row && row > 0))
        assert.ok(parts.some((outer) => outer.bottom === row && isWithin(part, outer)));
    }
  }
});

test("phases stand in the order in which they run, lines in that of the source, what has no line last", () => {
  const kernels = [
    { group: 0, line: 1, bytes: 1 },
    { group: 1, line: -1, bytes: 1 },
    { group: 1, line: 1, bytes: 1 },
    { group: 2, line: 0, bytes: 1 },
  ];
  const { parts } = icicle(captureOf(kernels, PHASES, 2), "bytes", 1, 0);
  const names = parts
    .filter(({ target }) => target.kind !== "kernel")
    .map(({ target }) => (target.kind === "item" ? target.item : target.kind === "line" ? target.line : target.kind));
  assert.deepEqual(names, ["whole", { kind: "group", group: 1 }, 1, 2, "unlinked", { kind: "group", group: 0 }, 2]);
});

test("a hundred thousand kernels are a few hundred boxes, and what is too small for one is in a box together", () => {
  const next = random(7);
  const kernels = Array.from({ length: 100_000 }, () => ({
    group: Math.floor(next() * 4) - 1,
    line: Math.floor(next() * 40),
    bytes: next(),
  }));
  const { parts } = icicle(captureOf(kernels, PHASES, 40), "bytes", 2, 11 / 1300);
  assert.ok(parts.length < 400);
  const rest = parts.filter(({ target }) => target.kind === "rest");
  const ofRest = rest.reduce((sum, { kernels }) => sum + kernels.length, 0);
  assert.equal(ofRest, 100_000);
});

test("kernels whose cost is not known have no box, and are counted", () => {
  const kernels = [
    { group: -1, line: 0, bytes: 4 },
    { group: -1, line: 0, bytes: NaN },
  ];
  const { parts, unknown } = icicle(captureOf(kernels, [], 1), "bytes", 2, 0);
  assert.equal(unknown, 1);
  assert.deepEqual(
    parts.map(({ target }) => target.kind),
    ["whole", "line", "kernel"],
  );
});
