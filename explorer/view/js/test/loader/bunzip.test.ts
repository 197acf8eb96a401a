// What Python's bz2 packed is what it was; what it packed is here as text, for the tests have no Python.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { bunzip } from "../../src/loader/bunzip";

const PACK = "import bz2, sys; sys.stdout.buffer.write(bz2.compress(sys.stdin.buffer.read()))";
const packed = (text: Uint8Array): Uint8Array =>
  new Uint8Array(execFileSync("python3", ["-c", PACK], { input: text, maxBuffer: 1 << 24 }));

const random = (length: number, letters: number): Uint8Array => {
  let state = 7;
  return Uint8Array.from({ length }, () => ((state = (state * 1103515245 + 12345) & 0x7fffffff) >> 16) % letters);
};

for (const [name, bytes] of [
  ["nothing", Buffer.from("")],
  ["one letter", Buffer.from("a")],
  ["runs of every length around four", Buffer.from([..."abcdefgh"].map((letter, i) => letter.repeat(i + 1)).join(""))],
  ["long runs", Buffer.from(`${"x".repeat(1000)}${"y".repeat(259)}z`)],
  ["letters that repeat beside a run", Buffer.from("aaaaaaaaaaaabaaaaa")],
  ["every byte", random(70_000, 256)],
  ["few letters", random(70_000, 3)],
  ["text of other languages", Buffer.from("größer → ∑ 多言語 ".repeat(400))],
  ["more than one block", random(950_000, 7)],
] as [string, Uint8Array][])
  test(`bzip2 gives back ${name}`, () => assert.deepEqual(bunzip(packed(bytes)), Uint8Array.from(bytes)));
