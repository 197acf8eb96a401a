// What is said of findings under the lines of a capture.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Finding, tally } from "../../src/source/source_pane";

const finding = (severity: Finding["severity"]): Finding => ({
  rule: "impure-print",
  severity,
  message: "",
  file: "",
  line: 0,
  evidence: "",
  fix: { text: "" },
  code: "EX001",
  documentation: "",
});

test("the bar counts the findings of each severity, the gravest first, and leaves out what there is none of", () => {
  assert.equal(tally([finding("warning"), finding("error"), finding("warning")]), "✖ 1 ▲ 2");
  assert.equal(tally([finding("note")]), "● 1");
  assert.equal(tally([]), "");
});
