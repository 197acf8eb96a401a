// What the viewer reads from types and queries, and what it says.

import assert from "node:assert/strict";
import { test } from "node:test";
import { column } from "../../src/core/capture";
import { amount, bytesOf, bytesText, count, cutMiddle, elements, secondsText, shortType } from "../../src/core/labels";

test("a type is short in every stage's notation", () => {
  assert.equal(shortType("f32[8,128]{1,0}"), "f32[8,128]");
  assert.equal(shortType("tensor<8x128xf32>"), "f32[8,128]");
  assert.equal(shortType("tensor<i32>"), "i32[]");
  assert.equal(shortType("(s32[], f32[8]{0}, pred[2]{0})"), "(3 arrays)");
  assert.equal(shortType("tensor<i32>, tensor<5xf32>"), "(2 arrays)");
});

test("bytes count every array of a type", () => {
  assert.equal(bytesOf("f32[8,128]{1,0}"), 4096);
  assert.equal(bytesOf("tensor<8x128xbf16>"), 2048);
  assert.equal(bytesOf("(s32[], pred[10]{0})"), 14);
  assert.equal(bytesOf("f32[]"), 4);
  assert.equal(bytesOf("f32[32@data,8]"), 1024); // split over devices, in JAX's notation
  assert.equal(bytesOf("f32[32@(data,model),8]"), 1024);
});

test("elements are the first array's", () => {
  assert.equal(elements("f32[8,4]{1,0}"), 32);
  assert.equal(elements("tensor<8x4xf32>"), 32);
  assert.equal(elements("f32[]"), 1);
});

test("quantities have a unit a person reads", () => {
  assert.equal(bytesText(2_100_000), "2.1 MB");
  assert.equal(bytesText(999), "999 B");
  assert.equal(bytesText(999_999), "1.0 MB");
  assert.equal(bytesText(2.4113e15), "2.4 PB");
  assert.equal(amount(5_800_000), "5.8 M");
  assert.equal(amount(2411.3e12), "2.4 P");
  assert.equal(amount(999_990), "1.0 M");
  assert.equal(secondsText(0.0412), "41.2 ms");
  assert.equal(secondsText(1.444), "1.44 s");
  assert.equal(count(1, "kernel"), "1 kernel");
  assert.equal(count(1234, "kernel"), "1,234 kernels");
});

test("a column is byte planes of zigzag differences", () => {
  // 0, -1, 300, -2147483648 as Python's wire.py writes them
  const deltas = [0, -1, 301, -2147483948 | 0].map((d) => ((d << 1) ^ (d >> 31)) >>> 0);
  const planes = [0, 8, 16, 24].flatMap((shift) => deltas.map((d) => (d >>> shift) & 255));
  assert.deepEqual([...column([0, 16], Uint8Array.from(planes))], [0, -1, 300, -2147483648]);
});

test("a long name loses its middle, a short piece of one its end", () => {
  assert.equal(cutMiddle("attention", 9), "attention");
  assert.equal(cutMiddle("transformer_block_feed_forward_up", 20), "transformer_b…ard_up");
  assert.equal(cutMiddle("transformer_block", 6), "trans…");
  for (let longest = 1; longest < 40; longest++)
    assert.ok(cutMiddle("transformer block feed forward, up and down", longest).length <= longest);
});
