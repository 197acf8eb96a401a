// What the profile's view makes of its message: lines and kernels that know of each other, boxes, what is folded,
// words.

import assert from "node:assert/strict";
import { test } from "node:test";
import { secondsText } from "../../src/core/labels";
import { chosenBox, chosenKernel, chosenLine, Data, folded, type Message, ordered } from "../../src/profile/data";
import { shareText, strength } from "../../src/profile/format";
import { named } from "../../src/profile/threads";

/** Two lines of one file; `dot` is of the first, `fusion` of both. */
function message(): Message {
  return {
    version: 1,
    function: "step",
    signature: "()",
    headline: { text: [], waits: [], facts: [] },
    runs: 1,
    wall: 12,
    device: 10,
    gap: 2,
    unattributed: 0,
    files: [
      {
        file: "/f.py",
        label: "f.py",
        rows: [
          [3, "def step(x):"],
          [4, "    y = x @ x"],
          [5, "    y = y + 1"],
          [90, "    return y.sum()"],
        ],
      },
    ],
    lines: [
      [0, 4, "y = x @ x", 7, 1, 2],
      [0, 90, "return y.sum()", 3, 2, 1],
    ],
    moreLines: [0, 0],
    kernels: [
      ["dot", "dot", "jit_step", 1, 6, 6, 1, 100, 10, 1, "net"],
      ["fusion", "fusion", "jit_step", 1, 4, 4, 1, null, null, null, ""],
    ],
    moreKernels: [0, 0],
    parts: [
      [0, 0, 6],
      [1, 1, 3],
      [1, 0, 1],
    ],
    flames: {
      stack: {
        parent: [-1, 0, 1, 0, 3],
        name: [0, 1, 2, 3, 4],
        kind: ["root", "frame", "kernel", "frame", "kernel"],
        seconds: [10, 6, 6, 4, 4],
        kernel: [-1, -1, 0, -1, 1],
        frame: [0, ["/f.py", 4], 0, ["/f.py", 90], 0],
        names: ["step", "step (f.py:4)", "dot", "step (f.py:90)", "fusion"],
      },
    },
    host: [],
    notes: [],
    captures: [],
    timeline: null,
  };
}

const data = new Data(message());
const [matmul, sum] = data.lines as [Data["lines"][0], Data["lines"][0]];
const [dot, fusion] = data.kernels as [Data["kernels"][0], Data["kernels"][0]];
const boxes = data.flames.get("stack")!;

test("a line knows its kernels, and a kernel its lines, the longest first", () => {
  assert.deepEqual(
    matmul.kernels.map(({ kernel, seconds }) => [kernel.name, seconds]),
    [
      ["dot", 6],
      ["fusion", 1],
    ],
  );
  assert.deepEqual(
    fusion.lines.map(({ line, seconds }) => [line.number, seconds]),
    [
      [90, 3],
      [4, 1],
    ],
  );
});

test("a message of another version is refused", () => {
  assert.throws(() => new Data({ ...message(), version: 2 }), /format is 2/);
});

test("boxes stand beside each other within the one they are in", () => {
  assert.deepEqual(
    boxes.map(({ left, depth }) => [left, depth]),
    [
      [0, 0],
      [0, 1],
      [0, 2],
      [6, 1],
      [6, 2],
    ],
  );
  assert.equal(boxes[1]!.line, matmul);
  assert.equal(boxes[2]!.kernel, dot);
  assert.deepEqual(boxes[0]!.inside, [boxes[1], boxes[3]]);
});

test("what is chosen takes what belongs to it along", () => {
  assert.deepEqual([...chosenLine(matmul).kernels], [dot, fusion]);
  assert.deepEqual([...chosenKernel(fusion).lines], [sum, matmul]);
  assert.deepEqual([...chosenBox(boxes[3]!).kernels], [fusion]);
  assert.deepEqual(
    [...chosenBox(boxes[0]!).kernels].sort((a, b) => a.index - b.index),
    [dot, fusion],
  );
  assert.equal(chosenBox(boxes[2]!).kernel, dot);
});

test("lines go by place, by time and by what is wasted", () => {
  assert.deepEqual(ordered(data.lines, "source"), [matmul, sum]);
  assert.deepEqual(ordered(data.lines, "time"), [matmul, sum]);
  assert.deepEqual(ordered(data.lines, "wasted"), [sum, matmul]);
  assert.deepEqual(data.lines, [matmul, sum], "the lines themselves stay as they are");
});

test("what lies between shown lines is folded, and counted", () => {
  const shown = folded(data.files[0]!, data.lines);
  assert.deepEqual(
    shown.map((row) => ("folded" in row ? `…${row.folded}` : `${row.line}${row.hot ? "!" : ""}`)),
    ["…2", "3", "4!", "5", "…84", "90!"],
  );
});

test("a file whose source is not known shows its hot lines", () => {
  const file = { ...data.files[0]!, rows: [] };
  const shown = folded(
    file,
    data.lines.map((line) => ({ ...line, file })),
  );
  assert.deepEqual(
    shown.map((row) => ("folded" in row ? "…" : row.text)),
    ["…", "y = x @ x", "…", "return y.sum()"],
  );
});

test("the hottest is whole, the others are parts of it", () => {
  assert.equal(data.heat("line", 7), 1);
  assert.equal(data.heat("kernel", 3), 0.5);
  assert.equal(strength(1), 100);
  assert.ok(strength(0.01) < strength(0.1) && strength(0) > 0);
});

test("where everything takes little, nothing is hot", () => {
  const flat = new Data({ ...message(), device: 1000 });
  assert.equal(flat.heat("line", 7), 0.07);
});

test("times have three digits and the unit that fits", () => {
  assert.deepEqual([0.0413, 0.00123, 4.2e-8, 0.9999e-3, 75, 0, 1.5].map(secondsText), [
    "41.3 ms",
    "1.23 ms",
    "42 ns",
    "1 ms",
    "75 s",
    "0 s",
    "1.5 s",
  ]);
});

test("a share is never rounded to nothing", () => {
  assert.deepEqual([0.62, 1, 0.0994, 0.012, 1e-5, 0].map(shareText), ["62%", "100%", "9.9%", "1.2%", "<0.1%", "0%"]);
});

test("threads of one kind are counted, their numbers say nothing", () => {
  assert.deepEqual(named(["tf_XLAEigen/-546", "tf_XLAEigen/278", "tf_XLAPjRtCpuClient/57", "python"]), [
    "Eigen 1",
    "Eigen 2",
    "PjRtCpuClient",
    "python",
  ]);
});
