// What the ledger's view makes of its tables: calls, groups, time, marks, the tree of stacks.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Clock, lanes, lasting, marksOf } from "../../src/ledger/clock";
import { type Call, Data, grouped, type Message, matching, varied } from "../../src/ledger/data";
import { children, treeOf } from "../../src/ledger/functions";

const STATUS = {
  verdict: { kind: "again", text: [], cause: [], cure: "", function: "" },
  storms: [],
  foreseen: [],
  running: [],
  varying: [],
  cells: [],
  notes: [],
  now: 1,
  watching: true,
} as Message["status"];

/** `strings` first: nothing, step, /f.py, f.py, shape, x.shape[0], 8, 9, first, add. */
const STRINGS = ["", "step", "/f.py", "f.py", "shape", "x.shape[0]", "8", "9", "first", "add", "step(x)"];

interface Row {
  start?: number;
  reason?: number;
  flags?: number;
  function?: number;
  compile?: number;
}

function message(rows: Row[], from = 0, sizes?: Message["from"]): Message {
  const column = (pick: (row: Row, i: number) => number) => rows.map(pick);
  const zero = column(() => 0);
  return {
    version: 1,
    from: sizes ?? {},
    strings: sizes ? [] : STRINGS,
    places: sizes
      ? []
      : [
          [3, 2, 3, 10, 0],
          [9, 2, 3, 0, 1],
        ],
    reasons: sizes
      ? []
      : [
          [8, 0, 0, 0, 0, 0],
          [4, 5, 6, 7, 0, 0],
        ],
    functions: sizes
      ? []
      : [
          [1, 2, 1, 0],
          [9, 0, 0, 1],
        ],
    stacks: sizes ? [] : [[0, 1]],
    calls: {
      number: column((_, i) => from + i + 1),
      function: column((row) => row.function ?? 0),
      stack: zero,
      start: column((row) => row.start ?? 1000),
      trace: column(() => 1e5),
      lower: zero,
      compile: column((row) => row.compile ?? 9e5),
      saved: zero,
      reason: column((row) => row.reason ?? 0),
      flags: column((row) => row.flags ?? 0),
      id: zero,
      thread: zero,
      device: zero,
      error: zero,
      process: zero,
    },
    status: STATUS,
  };
}

const AGAIN = { reason: 1, flags: 4 };
const EAGER = { function: 1 };
const calls = (...rows: Row[]): Call[] => new Data(message(rows)).calls;

test("a call has its seconds, its place and its reason", () => {
  const [first, again] = calls({}, AGAIN) as [Call, Call];
  assert.equal(first.seconds, 1);
  assert.equal(first.stack[0]!.label, "f.py");
  assert.equal(again.reason.leaf, "x.shape[0]");
  assert.equal(again.start - first.start, 1, "starts are sent as differences");
});

test("a slice adds what is new, and what is known already is passed over", () => {
  const data = new Data(message([{}, {}]));
  const before = { ...data.sizes, calls: 1 };
  assert.ok(data.take(message([{ start: 2000 }, AGAIN, {}], 1, before)));
  assert.equal(data.calls.length, 4);
  assert.equal(data.calls[2]!.reason.kind, "shape");
});

test("a slice that begins beyond what is known is refused, and nothing is taken", () => {
  const data = new Data(message([{}]));
  assert.equal(data.take(message([{}], 5, { ...data.sizes, calls: 5 })), false);
  assert.equal(data.calls.length, 1);
});

test("tables that were begun anew replace the former; a slice of them does not", () => {
  const data = new Data(message([{}, {}, {}]));
  assert.equal(data.take({ ...message([{}], 3, data.sizes), epoch: 1 }), false);
  assert.ok(data.take({ ...message([AGAIN]), epoch: 1 }));
  assert.equal(data.calls.length, 1);
});

test("a message of another format is refused", () => {
  assert.throws(() => new Data({ ...message([]), version: 2 }), /format is 2/);
});

test("eager operations are one group; the dearest group is first", () => {
  const groups = grouped(calls(EAGER, {}, AGAIN, EAGER));
  assert.deepEqual(
    groups.map(({ name, calls: own }) => [name, own.length]),
    [
      ["eager operations", 2],
      ["step", 2],
    ],
  );
  assert.equal(groups[1]!.again, 1);
  assert.equal(groups[1]!.reasons[0]!.calls.length, 1);
});

test("numbers that varied are shown by their ends, others in their order", () => {
  const of = (...values: string[]) =>
    varied(values.slice(1).map((after, i) => ({ reason: { before: values[i], after } }) as unknown as Call));
  assert.equal(of("8", "9"), "8 → 9");
  assert.equal(of("8", "30", "9"), "8 … 30");
  assert.equal(of("a", "b", "c", "d"), "a → b → c …");
});

test("every word of a filter must be found", () => {
  const all = calls({}, AGAIN, EAGER);
  assert.equal(matching(all, "").length, 3);
  assert.equal(matching(all, "STEP shape").length, 1);
  assert.equal(matching(all, "eager").length, 1);
  assert.equal(matching(all, "f.py line 3").length, 3);
  assert.equal(matching(all, "nothing").length, 0);
});

test("a long wait is cut out of the time axis, and said", () => {
  const clock = new Clock(calls({}, { start: 2000 }, { start: 600_000 }), 800);
  assert.equal(clock.breaks.length, 1);
  assert.ok(Math.abs(clock.breaks[0]!.seconds - 599) < 0.01);
  assert.equal(clock.x(0), 0);
  assert.ok(clock.x(1e9) <= 800);
  const places = clock.ticks().map(({ x }) => x);
  assert.deepEqual(
    places,
    [...places].sort((a, b) => a - b),
  );
});

test("a span is shown in its two largest units", () => {
  assert.deepEqual([0, 0.25, 4.54, 59, 75, 3720].map(lasting), [
    "0 ms",
    "250 ms",
    "4.5 s",
    "59 s",
    "1 min 15 s",
    "1 h 2 min",
  ]);
});

test("thousands of calls are few marks, and none is lost", () => {
  const all = calls(...Array.from({ length: 5000 }, () => ({ start: 20, compile: 1000 })));
  const marks = marksOf(all, new Clock(all, 900));
  assert.ok(marks.length < 120, `${marks.length}`);
  assert.equal(
    marks.reduce((sum, mark) => sum + mark.calls.length, 0),
    5000,
  );
});

test("more functions than lanes share the last one", () => {
  const groups = grouped(calls({}, EAGER));
  assert.equal(lanes(groups, 2).length, 2);
  const shared = lanes([...groups, ...groups], 2);
  assert.deepEqual(
    shared.map(({ groups: own }) => own.length),
    [1, 3],
  );
});

test("the tree goes from the outermost frame to the function, and sums the cost", () => {
  const tree = treeOf(calls({}, AGAIN, { flags: 2 }));
  assert.equal(tree.count, 2, "what compiled nothing is not in it");
  const [outer] = children(tree);
  assert.deepEqual([outer!.place!.line, outer!.seconds], [9, 2]);
  const [inner] = children(outer!);
  assert.equal(inner!.place!.text, "step(x)");
  assert.deepEqual(
    children(inner!).map(({ name, count }) => [name, count]),
    [["step", 2]],
  );
});
