// What the graph pane makes of a graph: repeats, pages, chains, ways, colours.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Capture, type Stage } from "../../src/core/capture";
import { Graph, type Group, groupItem, type Item, isGroup, isRest, nodeItem } from "../../src/core/graph";
import { chainLabel, chipText, computes, labelOf, shareOf, shareText } from "../../src/core/labels";
import { Attribution } from "../../src/core/links";
import { Session } from "../../src/core/session";
import { Marks } from "../../src/graph/canvas";
import { Colouring, columnsOf, ramp } from "../../src/graph/colours";
import { flowText } from "../../src/graph/draw";
import { chainsOf, openable, PAGE, type Scene, SceneBuilder } from "../../src/graph/scene";
import { between, criticalPath, MOST_COUNTED, near, reach, way } from "../../src/graph/shown_way";
import { layout } from "../../src/layout/layout";
import { attributesOf } from "../attributes";

interface Row {
  op: string;
  operands?: number[];
  group?: number;
  type?: string;
  scope?: string;
  line?: number;
  values?: Record<string, number>;
  twin?: number;
  attributes?: Record<string, string>;
}

const codes = (texts: string[]): [string[], Int32Array] => {
  const table = [...new Set(texts)];
  return [table, Int32Array.from(texts, (text) => table.indexOf(text))];
};

function graphOf(rows: Row[], groups: (Partial<Group> & { repeat?: number; differ?: number })[] = []): Graph {
  const [ops, op] = codes(rows.map((row) => row.op));
  const [types, type] = codes(rows.map((row) => row.type ?? "f32[8,128]{1,0}"));
  const [scopes, scope] = codes(rows.map((row) => row.scope ?? ""));
  const starts = [0];
  for (const row of rows) starts.push(starts[starts.length - 1]! + (row.operands?.length ?? 0));
  const measures = [...new Set(rows.flatMap((row) => Object.keys(row.values ?? {})))];
  return new Graph({
    names: rows.map((row, i) => `${row.op}.${i}`),
    ops,
    types,
    scopes,
    op,
    type,
    scope,
    operandStart: Int32Array.from(starts),
    operand: Int32Array.from(rows.flatMap((row) => row.operands ?? [])),
    frame: new Int32Array(rows.length).fill(-1),
    line: Int32Array.from(rows, (row, i) => row.line ?? i),
    frames: [],
    attribution: noLines(rows.length),
    measures: Object.fromEntries(
      measures.map((name) => [name, Float32Array.from(rows, (row) => row.values?.[name] ?? NaN)]),
    ),
    groups: groups.map(({ name = "g", kind = "function", parent = -1, caller = -1 }) => ({
      name,
      kind,
      parent,
      caller,
    })),
    groupOf: Int32Array.from(rows, (row) => row.group ?? -1),
    repeat: Int32Array.from(groups, (group) => group.repeat ?? 0),
    differ: Int32Array.from(groups, (group) => group.differ ?? 0),
    twin: Int32Array.from(rows, (row, i) => row.twin ?? i),
    readAttributes: () => attributesOf(rows.map((row) => row.attributes ?? {})),
  });
}

/** No node belongs to a line. */
function noLines(size: number): Attribution {
  const none = new Int32Array(size).fill(-1);
  const empty = new Int32Array(0);
  return new Attribution([], { line: none, mark: none, by: none, equation: none, start: empty, node: empty });
}

const stageOf = (graph: Graph, name = "hlo", text = ""): Stage => {
  const { size } = graph;
  return { name, size, coverage: 1, graph, lines: text.split("\n"), frames: [], attribution: noLines(size) };
};

const sceneOf = (graph: Graph, open: Item[] = [], builder = builderOf(graph)) => builder.build(new Set(open));
/** A node's number, or `group 3`. */
const textOf = (item: Item): number | string => (item.kind === "node" ? item.node : `${item.kind} ${item.group}`);
const itemsOf = (scene: Scene): (number | string)[] => scene.boxes.map((box) => textOf(box.item));
const builderOf = (graph: Graph) => new SceneBuilder(stageOf(graph), (input) => Promise.resolve(layout(input)));

/** A loop of three iterations of two operations each, between a start and an end. */
const loop = () =>
  graphOf(
    [
      { op: "start" },
      { op: "dot", operands: [0], group: 1 },
      { op: "add", operands: [1, 0], group: 1 },
      { op: "dot", operands: [2], group: 2, twin: 1 },
      { op: "add", operands: [3, 2], group: 2, twin: 2 },
      { op: "dot", operands: [4], group: 3, twin: 1 },
      { op: "add", operands: [5, 4], group: 3, twin: 2 },
      { op: "end", operands: [6] },
    ],
    [
      { name: "block", kind: "repeat", repeat: 3 },
      { name: "block", kind: "iteration", parent: 0 },
      { name: "block", kind: "iteration", parent: 0 },
      { name: "block", kind: "iteration", parent: 0 },
    ],
  );

test("a repeat is one box that says how often, and opens to one of its iterations", async () => {
  const graph = loop();
  assert.deepEqual(labelOf(graph, "hlo", groupItem(0)), { title: "block ×3", sub: "2 kernels each" });
  const closed = await sceneOf(graph);
  assert.deepEqual(itemsOf(closed), [0, "group 0", 7]);
  const open = await sceneOf(graph, [groupItem(0)]);
  assert.deepEqual(itemsOf(open).sort(), [0, 1, 2, 7, "group 0"]);
  assert.deepEqual(open.boxes.find((box) => box.item === groupItem(0))!.step, { at: 0, of: 3 });
  graph.shown.set(0, 2);
  const last = await sceneOf(graph, [groupItem(0)]);
  assert.deepEqual(itemsOf(last).sort(), [0, 5, 6, 7, "group 0"]);
});

test("what is lit in an iteration that is not drawn lights up its counterpart", () => {
  const graph = loop();
  const marks = new Marks();
  marks.set(graph, new Set([5]));
  assert.ok(marks.any(...graph.range(nodeItem(1))) && marks.any(...graph.range(groupItem(0))));
  assert.ok(!marks.any(...graph.range(nodeItem(2))) && !marks.any(...graph.range(nodeItem(0))));
  assert.deepEqual(
    graph.iterations(0).map((group) => marks.has(...graph.range(groupItem(group)))),
    [false, false, true],
  );
  assert.equal(graph.drawn(5), 1);
  graph.shown.set(0, 1);
  assert.equal(graph.drawn(5), 3);
  assert.equal(graph.drawn(3), 3);
  assert.equal(graph.drawn(7), 7);
});

test("of a group with very many boxes a page is shown, and how many there are beside it", async () => {
  const many = 1000;
  const graph = graphOf(
    [{ op: "start" }, ...Array.from({ length: many }, () => ({ op: "add", operands: [0], group: 0 }))],
    [{ name: "wide" }],
  );
  const builder = builderOf(graph);
  const scene = await sceneOf(graph, [groupItem(0)], builder);
  assert.equal(scene.boxes.length, 2 + PAGE + 1);
  const more = scene.boxes.find((box) => isRest(box.item))!;
  assert.equal(more.label.title, `… and ${many - PAGE} more`);
  assert.ok(isRest(more.item));
  builder.turn(more.item);
  const second = await sceneOf(graph, [groupItem(0)], builder);
  assert.deepEqual(
    second.boxes.filter((box) => isRest(box.item)).map((box) => box.label.title),
    [`… and ${PAGE} more`, `… and ${many - 2 * PAGE} more`],
  );
  builder.turnTo(nodeItem(many));
  const last = await sceneOf(graph, [groupItem(0)], builder);
  assert.ok(last.boxes.some((box) => box.item === nodeItem(many)));
});

test("a chain of operations that only look at an array otherwise is one box until it is opened", async () => {
  const graph = graphOf([
    { op: "dot" },
    { op: "bitcast", operands: [0] },
    { op: "reshape", operands: [1] },
    { op: "convert", operands: [2] },
    { op: "add", operands: [3, 0] },
    { op: "copy", operands: [4] },
    { op: "multiply", operands: [5, 4] },
  ]);
  const chains = chainsOf(graph, graph.children(-1));
  assert.deepEqual([...chains], [[1, [1, 2, 3]]], "a single copy is a box as ever");
  assert.deepEqual(chainLabel(graph, [1, 2, 3]), { title: "bitcast, reshape, convert", sub: "3 folded · f32[8,128]" });
  const folded = await sceneOf(graph);
  assert.deepEqual(itemsOf(folded), [0, 1, 4, 5, 6]);
  assert.deepEqual(
    folded.lines.map(({ from, to }) => [textOf(from), textOf(to)]),
    [
      [0, 1],
      [0, 4],
      [1, 4],
      [4, 5],
      [4, 6],
      [5, 6],
    ],
  );
  const unfolded = await sceneOf(graph, [nodeItem(1)]);
  assert.deepEqual(itemsOf(unfolded), [0, 1, 2, 3, 4, 5, 6]);
});

test("a value that two read breaks a chain", () => {
  const graph = graphOf([
    { op: "dot" },
    { op: "bitcast", operands: [0] },
    { op: "reshape", operands: [1] },
    { op: "add", operands: [1, 2] },
  ]);
  assert.equal(chainsOf(graph, graph.children(-1)).size, 0);
});

test("boxes are coloured by their sharding, as the reader has it, and only where there is one", () => {
  const parameter = (sharding?: string, key = "sharding") => ({
    op: "add",
    ...(sharding && { attributes: { [key]: sharding } }),
  });
  const legend = (graph: Graph) => {
    const session = new Session(new Capture({ sources: [] } as never, [stageOf(graph)]));
    const isOffered = columnsOf(session).some(([name]) => name === "sharding");
    return [isOffered, new Colouring(session, "sharding").legend?.entries.map(({ text }) => text)];
  };
  const sdy = parameter('#sdy.sharding<@mesh, [{"i"}, {}]>', "sdy.sharding");
  assert.deepEqual(legend(graphOf([parameter("{devices=[4,1]<=[4]}"), parameter("{replicated}"), sdy])), [
    true,
    ["devices=[4,1]<=[4]", "replicated", '@mesh, [{"i"}, {}]'],
  ]);
  assert.deepEqual(legend(graphOf([parameter()])), [false, []]);
});

test("a constant's chip has its value where that is short, else its type", () => {
  const of = (attributes: Record<string, string>) =>
    chipText(graphOf([{ op: "constant", type: "f32[2]", attributes }]), 0);
  assert.equal(of({ value: "dense<1.000000e-01>" }), "0.1");
  assert.equal(of({ value: "dense<0x7F800000>" }), "0x7F800000");
  assert.equal(of({ literal: "true" }), "true");
  assert.equal(of({ literal: "{1, 2}" }), "f32[2]");
  assert.equal(of({}), "f32[2]");
});

test("constants are chips with their value, on the box of what reads them", async () => {
  const graph = graphOf([
    { op: "parameter" },
    { op: "constant", type: "f32[]", attributes: { literal: "0.499999997" } },
    { op: "add", operands: [0, 1] },
    { op: "exp", operands: [2] },
  ]);
  assert.equal(chipText(graph, 1), "0.5");
  const scene = await new SceneBuilder(stageOf(graph), (input) => Promise.resolve(layout(input))).build(new Set());
  assert.deepEqual(
    scene.boxes.map((box) => [textOf(box.item), box.chips.map((chip) => chip.text)]),
    [
      [2, ["parameter", "0.5"]],
      [3, []],
    ],
  );
});

test("a kernel is called by what it computes, and says how much of the whole that is", () => {
  const graph = graphOf(
    [
      { op: "parameter", values: { flops: NaN } },
      { op: "fusion", operands: [0], values: { flops: 30, bytes: 10 } },
      { op: "reduce", group: 0, scope: "jit(f)/reduce_max" },
      { op: "exponential", group: 0, scope: "jit(f)/exp" },
      { op: "broadcast", group: 0, scope: "jit(f)/broadcast_in_dim" },
      { op: "reduce", group: 0, scope: "jit(f)/reduce_sum" },
      { op: "multiply", group: 0 },
      { op: "dot", operands: [1], values: { flops: 70, bytes: 90 } },
    ],
    [{ kind: "fusion", caller: 1 }],
  );
  graph.c.readKernelWords = () => new Map([[1, "max, exp, sum"]]);
  assert.equal(computes(graph, 1), "max, exp, sum");
  assert.equal(computes(graph, 7), "");
  assert.deepEqual(labelOf(graph, "hlo", nodeItem(1)), { title: "max, exp, sum", sub: "30% of the FLOPs" });
  assert.deepEqual(shareOf(graph, nodeItem(7)), { measure: "bytes", share: 0.9 });
  graph.costBy = "flops";
  assert.deepEqual(shareOf(graph, nodeItem(7)), { measure: "flops", share: 0.7 });
  assert.deepEqual(labelOf(graph, "hlo", nodeItem(1)), { title: "max, exp, sum", sub: "30% of the FLOPs" });
  assert.equal(shareText(graph, nodeItem(0)), "");
});

test("what flows along a line is shown by type and bytes", () => {
  const graph = graphOf(
    [
      { op: "dot", type: "f32[8,4,128,128]{3,2,1,0}" },
      { op: "exp", type: "f32[2]", operands: [0] },
      { op: "add", operands: [0, 1], group: 0 },
    ],
    [{}],
  );
  assert.equal(flowText({ graph, shardings: undefined }, nodeItem(0), nodeItem(1)), "f32[8,4,128,128] · 2.1 MB");
  assert.equal(flowText({ graph, shardings: undefined }, nodeItem(1), groupItem(0)), "f32[2] · 8 B");
  assert.equal(flowText({ graph, shardings: undefined }, nodeItem(1), nodeItem(0)), "");
  const shardings = {
    mesh: [["data", 4]] as [string, number][],
    text: (node: number) => `f32[${node}@data]`,
    way: () => "",
  };
  assert.equal(flowText({ graph, shardings }, nodeItem(1), groupItem(0)), "f32[1@data] · 8 B each");
});

test("of an array that is padded, the line names the dimensions that vary", () => {
  const graph = graphOf([
    { op: "dot", type: "f32[64,96,8]", attributes: { padded: "0=b,1=max(s, 3*b)" } },
    { op: "exp", operands: [0] },
  ]);
  assert.equal(
    flowText({ graph, shardings: undefined }, nodeItem(0), nodeItem(1)),
    "f32[b≤64,max(s, 3*b)≤96,8] · 197 kB",
  );
});

const diamond = () =>
  graphOf([
    { op: "a", values: { flops: 1 } },
    { op: "b", operands: [0], values: { flops: 10 } },
    { op: "c", operands: [0], values: { flops: 2 } },
    { op: "d", operands: [2], values: { flops: 3 } },
    { op: "e", operands: [1, 3], values: { flops: 1 } },
    { op: "f", values: { flops: 9 } },
  ]);

test("everything that a node needs, and everything that needs it, with how far away it is", () => {
  const graph = diamond();
  assert.deepEqual(
    [...reach(graph, [4], false)],
    [
      [4, 0],
      [1, 1],
      [3, 1],
      [0, 2],
      [2, 2],
    ],
  );
  assert.deepEqual(
    [...reach(graph, [2], true)],
    [
      [2, 0],
      [3, 1],
      [4, 2],
    ],
  );
});

test("the way between two nodes is a shortest one, from either end", () => {
  const graph = diamond();
  assert.deepEqual(way(graph, [0], [4]), [0, 1, 4]);
  assert.deepEqual(way(graph, [4], [0]), [0, 1, 4]);
  assert.deepEqual(way(graph, [1], [3]), []);
  assert.deepEqual(way(graph, [1, 2], [3, 5]), [2, 3], "of groups, from any of their nodes");
});

test("between two nodes are all paths, with their number, from either end", () => {
  const graph = diamond();
  for (const [a, b] of [
    [0, 4],
    [4, 0],
  ] as const) {
    const { nodes, shortest, paths } = between(graph, [a], [b]);
    assert.deepEqual([...nodes], [0, 1, 2, 3, 4]);
    assert.deepEqual(shortest, [0, 1, 4]);
    assert.equal(paths, 2);
  }
  assert.deepEqual(between(graph, [1], [3]), { nodes: new Set(), shortest: [], paths: 0 });
});

test("of 50,000 residual blocks the paths are more than are counted, and all that they run through is known", () => {
  const blocks = Array.from({ length: 50_000 }, (_, i) => [
    { op: "f", operands: [2 * i] },
    { op: "add", operands: [2 * i, 2 * i + 1] },
  ]);
  const graph = graphOf([{ op: "x" }, ...blocks.flat()]);
  const { nodes, shortest, paths } = between(graph, [0], [100_000]);
  assert.equal(nodes.size, 100_001);
  assert.equal(shortest.length, 50_001);
  assert.equal(paths, MOST_COUNTED);
  assert.equal(between(graph, [0], [40]).paths, 2 ** 20);
});

test("what is near is a number of steps away, along operands and users", () => {
  const graph = diamond();
  assert.deepEqual([...near(graph, [3], 1).keys()].sort(), [2, 3, 4]);
  assert.deepEqual([...near(graph, [3], 2)].sort(), [
    [0, 2],
    [1, 2],
    [2, 1],
    [3, 0],
    [4, 1],
  ]);
  assert.deepEqual([...near(graph, [5], 9)], [[5, 0]]);
});

test("the critical path is the heaviest by what is measured, else the longest", () => {
  assert.deepEqual(criticalPath(diamond()), { nodes: [0, 1, 4], measure: "flops", share: 12 / 26 });
  const plain = graphOf([
    { op: "a" },
    { op: "b", operands: [0] },
    { op: "c", operands: [1] },
    { op: "d", operands: [0] },
  ]);
  assert.deepEqual(criticalPath(plain).nodes, [0, 1, 2]);
  assert.deepEqual(criticalPath(graphOf([])).nodes, []);
});

const sessionOf = (graph: Graph): Session =>
  new Session(new Capture({ sources: [] } as never, [stageOf(graph)]), "hlo");

test("numbers are coloured along a ramp, categories by how frequent they are", () => {
  const session = sessionOf(diamond());
  assert.deepEqual(
    columnsOf(session).map(([name]) => name),
    ["line", "op", "dtype", "fusion", "flops"],
  );
  const flops = new Colouring(session, "flops");
  assert.deepEqual(flops.legend?.ramp, { low: 26 / 1e4, high: 26, isLog: true });
  assert.notEqual(flops.of(nodeItem(1), 3).css, flops.of(nodeItem(0), 3).css);
  assert.equal(new Colouring(session, "line").of(nodeItem(0), 3).kind, 3);
  const ops = new Colouring(
    sessionOf(graphOf([{ op: "add" }, { op: "dot", operands: [0] }, { op: "add", operands: [1] }])),
    "op",
  );
  assert.deepEqual(
    ops.legend?.entries.map(({ text }) => text),
    ["add", "dot"],
  );
  assert.deepEqual([ops.of(nodeItem(0), -1).kind, ops.of(nodeItem(1), -1).kind], [0, 1]);
});

test("a colour is the line's unasked; a loop is as hot as what runs in it, and says its measured time", () => {
  const graph = graphOf(
    [
      { op: "while", values: { time: 1 } },
      { op: "dot", group: 0, values: { time: 7 } },
      { op: "add", operands: [0], values: { time: 2 } },
      { op: "copy", values: { time: 8 } },
    ],
    [{ kind: "body", caller: 0 }],
  );
  const session = sessionOf(graph);
  assert.equal(session.colourBy, "line");
  const time = new Colouring(session, "time");
  assert.equal(time.legend?.ramp?.high, 18);
  assert.equal(time.of(nodeItem(0), -1).css, time.of(nodeItem(3), -1).css, "1 of its own and 7 inside");
  assert.match(labelOf(graph, "hlo", nodeItem(0)).sub, /8 s · 44% of the time/);
  session.setColour("op");
  assert.equal(session.colourBy, "op");
  session.setColour();
  assert.equal(session.colourBy, "line");
});

test("the ramp goes from dark to light in even steps", () => {
  const lightness = (css: string) => {
    const [r, g, b] = css.match(/\d+/g)!.map(Number) as [number, number, number];
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const steps = Array.from({ length: 11 }, (_, i) => lightness(ramp(i / 10)));
  for (let i = 1; i < steps.length; i++) assert.ok(steps[i]! > steps[i - 1]!, `${steps}`);
});

test("phases are opened before anything else", () => {
  const graph = graphOf(
    [
      { op: "a", group: 0 },
      { op: "b", operands: [0], group: 1 },
      { op: "c", operands: [1], group: 1 },
      { op: "d", operands: [2], group: 1 },
    ],
    [
      { kind: "phase", name: "forward" },
      { kind: "function", name: "big" },
    ],
  );
  assert.equal(openable(graph, new Set())[0], groupItem(0));
  assert.ok(openable(graph, new Set()).every(isGroup));
});
