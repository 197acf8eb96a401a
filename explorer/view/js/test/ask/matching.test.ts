// Which question is meant, as in Python: the same cases as tests/unit/analysis/test_questions.py.

import assert from "node:assert/strict";
import { test } from "node:test";

import { distance, meant, nearest, type Question, rank } from "../../src/ask/matching";
import shared from "../questions.json";

const questions = shared.questions as Question[];
const silent = new Set(shared.silent);

for (const [text, key] of shared.cases as [string, string | null][])
  test(`“${text}” means ${key}`, () => {
    const matches = rank(text, questions, silent, (word) => shared.names.includes(word));
    assert.equal(meant(matches)?.[0] ?? null, key);
  });

test("letters that are swapped are one mistake", () => {
  assert.equal(distance("trasnpose", "transpose", 2), 1);
  assert.ok(distance("sum", "transpose", 2) > 2);
});

test("a spelling is proposed where a name is near, and none where none is", () => {
  assert.equal(nearest("dot_genral", ["dot_general", "tanh"]), "dot_general");
  assert.equal(nearest("tnah", ["dot_general", "tanh"]), "tanh");
  assert.equal(nearest("quantum", ["dot_general", "tanh"]), undefined);
});
