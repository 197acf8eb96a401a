import assert from "node:assert/strict";
import { test } from "node:test";

import { type LayoutInput, type LayoutResult, layout } from "../../src/layout/layout";
import { Layouter } from "../../src/layout/layouter";

type Pair = readonly [from: number, to: number];

function graph(nodes: number, edges: readonly Pair[], size: (node: number) => Pair = () => [100, 32]): LayoutInput {
  return {
    width: Float64Array.from({ length: nodes }, (_, node) => size(node)[0]),
    height: Float64Array.from({ length: nodes }, (_, node) => size(node)[1]),
    edges: Int32Array.from(edges.flat()),
  };
}

function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Graphs of many kinds: sparse and dense, local and tangled, with cycles, self loops, duplicates and huge boxes. */
function randomGraph(seed: number): LayoutInput {
  const random = generator(seed);
  const nodes = 1 + random(120);
  const near = 1 + random(nodes);
  const edges: Pair[] = [];
  for (let i = random(3 * nodes); i > 0; i--) {
    const to = random(nodes);
    const from = Math.max(0, to - random(near));
    edges.push(random(20) === 0 ? [to, from] : [from, to]);
    if (random(15) === 0) edges.push(edges.at(-1)!);
  }
  const hub = random(nodes);
  if (random(4) === 0) for (let node = 0; node < hub; node++) edges.push([node, hub]);
  return graph(nodes, edges, () =>
    random(12) === 0 ? [300 + random(1500), 200 + random(600)] : [40 + random(120), 32],
  );
}

const SEEDS = Array.from({ length: 150 }, (_, i) => 7919 * (i + 1));

function corners(input: LayoutInput, result: LayoutResult, node: number) {
  const [left, top] = [result.x[node]!, result.y[node]!];
  return { left, top, right: left + input.width[node]!, bottom: top + input.height[node]! };
}

function overlaps(input: LayoutInput, result: LayoutResult): Pair[] {
  const boxes = Array.from(input.width, (_, node) => corners(input, result, node));
  const found: Pair[] = [];
  boxes.forEach((a, i) => {
    boxes.slice(i + 1).forEach((b, j) => {
      if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) found.push([i, i + 1 + j]);
    });
  });
  return found;
}

test("no two nodes overlap, and all lie within the drawing", () => {
  for (const seed of SEEDS) {
    const input = randomGraph(seed);
    const result = layout(input);
    assert.deepEqual(overlaps(input, result), [], `seed ${seed}`);
    for (let node = 0; node < input.width.length; node++) {
      const { left, top, right, bottom } = corners(input, result, node);
      assert.ok(
        left >= 0 && top >= 0 && right <= result.width && bottom <= result.height,
        `seed ${seed}, node ${node}`,
      );
    }
  }
});

test("every edge leaves its source's lower border and enters its target's upper one", () => {
  for (const seed of SEEDS) {
    const input = randomGraph(seed);
    const result = layout(input);
    assert.equal(result.edges.length, input.edges.length / 2);
    result.edges.forEach((way, edge) => {
      const source = corners(input, result, input.edges[2 * edge]!);
      const target = corners(input, result, input.edges[2 * edge + 1]!);
      const [x0, y0, x1, y1] = [way[0]!, way[1]!, way.at(-2)!, way.at(-1)!];
      assert.ok(y0 === source.bottom && x0 > source.left && x0 < source.right, `seed ${seed}, edge ${edge} starts`);
      assert.ok(y1 === target.top && x1 > target.left && x1 < target.right, `seed ${seed}, edge ${edge} ends`);
      assert.ok(way[way.length - 3]! < y1, `seed ${seed}, edge ${edge} comes from above`);
    });
  }
});

test("edges run along the axes, within the drawing and through no node", () => {
  for (const seed of SEEDS) {
    const input = randomGraph(seed);
    const result = layout(input);
    const boxes = Array.from(input.width, (_, node) => corners(input, result, node));
    result.edges.forEach((way, edge) => {
      for (let i = 2; i < way.length; i += 2) {
        const [x0, y0, x1, y1] = [way[i - 2]!, way[i - 1]!, way[i]!, way[i + 1]!];
        assert.ok(x0 === x1 || y0 === y1, `seed ${seed}, edge ${edge} is slanted`);
        const [left, right] = [Math.min(x0, x1), Math.max(x0, x1)];
        const [top, bottom] = [Math.min(y0, y1), Math.max(y0, y1)];
        assert.ok(
          left >= 0 && top >= 0 && right <= result.width && bottom <= result.height,
          `seed ${seed}, edge ${edge}`,
        );
        const hit = boxes.findIndex((b) => left < b.right && b.left < right + 1e-6 && top < b.bottom && b.top < bottom);
        const inside = boxes.findIndex((b) => left < b.right && right > b.left && top < b.bottom && bottom > b.top);
        assert.ok(hit < 0 && inside < 0, `seed ${seed}, edge ${edge} passes node ${Math.max(hit, inside)}`);
      }
    });
  }
});

test("edges lead downwards, except those that close a cycle", () => {
  const input = graph(5, [
    [0, 1],
    [1, 2],
    [2, 3],
    [3, 1],
    [3, 4],
    [0, 4],
    [2, 2],
  ]);
  const { y } = layout(input);
  assert.ok(y[0]! < y[1]! && y[1]! < y[2]! && y[2]! < y[3]! && y[3]! < y[4]!);
});

test("the same input gives the same layout", () => {
  for (const seed of SEEDS.slice(0, 20)) assert.deepEqual(layout(randomGraph(seed)), layout(randomGraph(seed)));
});

test("a chain goes straight down, whatever the widths", () => {
  const input = graph(
    30,
    Array.from({ length: 29 }, (_, i) => [i, i + 1] as const),
    (i) => [40 + 10 * (i % 7), 30],
  );
  const result = layout(input);
  const centre = result.x[0]! + input.width[0]! / 2;
  for (let i = 0; i < 30; i++) assert.equal(result.x[i]! + input.width[i]! / 2, centre);
  for (const way of result.edges) assert.equal(way.length, 4);
});

test("the main chain stays straight beside its constants and residual connections", () => {
  // 0 ▸ 1 ▸ 2 ▸ 3 ▸ 4 with constants 5…8 feeding each, and 0 added again at the end
  const input = graph(9, [
    [0, 1],
    [5, 1],
    [1, 2],
    [6, 2],
    [2, 3],
    [7, 3],
    [3, 4],
    [8, 4],
    [0, 4],
  ]);
  const { x, y } = layout(input);
  assert.deepEqual([x[1], x[2], x[3], x[4]], [x[0], x[0], x[0], x[0]]);
  assert.deepEqual([y[6], y[7], y[8]], [y[1], y[2], y[3]], "constants stand just above what they are used in");
});

test("edges into one node arrive at distinct points", () => {
  const input = graph(
    7,
    [0, 1, 2, 3, 4, 5].map((node) => [node, 6] as const),
  );
  const ends = layout(input).edges.map((way) => way.at(-2)!);
  assert.equal(new Set(ends).size, 6);
});

test("duplicates share one way", () => {
  const { edges } = layout(
    graph(3, [
      [0, 1],
      [1, 2],
      [0, 1],
    ]),
  );
  assert.deepEqual(edges[0], edges[2]);
});

test("two thousand siblings wrap into a drawing as wide as it is high, give or take", () => {
  const siblings = Array.from({ length: 2000 }, (_, i) => [0, i + 1] as const);
  const { width, height } = layout(graph(2001, siblings));
  assert.ok(width < 6000 && height < 6000, `${width} × ${height}`);
});

test("chains that don't fit beside each other stay whole, in bands below each other", () => {
  const edges: Pair[] = [];
  for (let chain = 0; chain < 60; chain++) {
    edges.push([0, 1 + 3 * chain], [1 + 3 * chain, 2 + 3 * chain], [2 + 3 * chain, 3 + 3 * chain]);
  }
  const { x, y, width } = layout(graph(181, edges));
  assert.ok(width < 3500, `${width}`);
  for (let chain = 0; chain < 60; chain++) {
    const [a, b, c] = [1 + 3 * chain, 2 + 3 * chain, 3 + 3 * chain];
    assert.ok(x[a] === x[b] && x[b] === x[c], `chain ${chain} is straight`);
    assert.ok(y[c]! - y[a]! < 200, `chain ${chain} is short`);
  }
});

test("unconnected nodes are packed, not put in one row", () => {
  const { width, height } = layout(graph(400, []));
  assert.ok(width / height > 0.7 && width / height < 3, `${width} × ${height}`);
});

test("nothing and a single node are laid out too", () => {
  assert.deepEqual(layout(graph(0, [])), {
    x: new Float64Array(),
    y: new Float64Array(),
    edges: [],
    width: 0,
    height: 0,
  });
  const single = layout(graph(1, []));
  assert.deepEqual([single.width, single.height], [100, 32]);
  assert.equal(layout(graph(1, [[0, 0]])).edges.length, 1);
});

test("a huge tangle ends, and keeps its nodes apart", () => {
  const random = generator(5);
  const edges = Array.from({ length: 12_000 }, () => [random(1500), random(1500)] as const);
  const input = graph(1500, edges);
  assert.deepEqual(overlaps(input, layout(input)), []);
});

test("where there is no worker the layouter works on the main thread, once for equal graphs", async () => {
  assert.equal(typeof globalThis.Worker, "undefined"); // as in a page whose policy forbids workers
  const layouter = new Layouter();
  const [first, again, other] = await Promise.all([
    layouter.layout(randomGraph(1)),
    layouter.layout(randomGraph(1)),
    layouter.layout(randomGraph(2)),
  ]);
  assert.deepEqual(first, layout(randomGraph(1)));
  assert.equal(again, first);
  assert.deepEqual(other, layout(randomGraph(2)));
  layouter.dispose();
});
