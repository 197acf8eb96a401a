// Places by name, in an address and back; tests/unit/model/test_bookmark.py reads the same examples.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Capture } from "../../src/core/capture";
import { type Graph, groupItem, nodeItem } from "../../src/core/graph";
import { addressOf, type Bookmark, bookmarkAt, lineName, lineNamed, Names } from "../../src/keep/bookmark";
import shared from "../bookmarks.json";

for (const { bookmark, address } of shared as { bookmark: Bookmark; address: string }[])
  test(`an address says what Python's says: ${address}`, () => {
    assert.equal(addressOf(bookmark), address);
    assert.deepEqual(bookmarkAt(address), bookmark);
  });

test("what is no bookmark in an address is passed over", () => {
  assert.deepEqual(bookmarkAt("section-2&at=&stage&note=:1&find=%E0%A4&pane=text"), { pane: "text" });
});

test("half a letter becomes a letter", () => assert.equal(addressOf({ search: "\ud83d" }), "find=%EF%BF%BD"));

const names = (nodes: string[], groups: [string, number][]): Names => {
  const c = { names: nodes, groups: groups.map(([name, parent]) => ({ name, parent })) };
  return new Names({ c, name: (node: number) => nodes[node] } as unknown as Graph);
};

test("two groups of one name have two paths, and each leads back to its own", () => {
  const { of, item } = bound(
    names(
      ["dot", "/step"],
      [
        ["step", -1],
        ["block", 0],
        ["block", 0],
        ["block~2", 0],
      ],
    ),
  );
  assert.deepEqual(
    [0, 1, 2, 3].map((group) => of(groupItem(group))),
    ["/step", "/step/block", "/step/block~2", "/step/block~2~2"],
  );
  for (const group of [0, 1, 2, 3]) assert.equal(item(of(groupItem(group))!), groupItem(group));
  assert.equal(item("dot"), nodeItem(0));
  assert.equal(item("gone"), undefined);
  assert.equal(of(undefined), undefined);
});

const bound = (names: Names) => ({ of: names.of.bind(names), item: names.item });

test("a line is called by its file unless that is the function's, and is found while the file is as long", () => {
  const sources = [
    { file: "/home/a/train.py", label: "train.py", text: "a\nb\nc" },
    { file: "/home/a/layers.py", label: "layers.py", text: "d\ne" },
  ];
  const capture = { header: { file: "/home/a/train.py", sources } } as unknown as Capture;
  assert.equal(lineName(capture, "/home/a/train.py", 3), ":3");
  assert.equal(lineName(capture, "/home/a/layers.py", 2), "layers.py:2");
  assert.deepEqual(lineNamed(capture, ":3"), { file: "/home/a/train.py", line: 3 });
  assert.deepEqual(lineNamed(capture, "layers.py:2"), { file: "/home/a/layers.py", line: 2 });
  for (const gone of [":4", ":0", "layers.py:3", "other.py:1", "dot.3"])
    assert.equal(lineNamed(capture, gone), undefined);
});
