// Python's text with its tokens in spans: enough of the language to be read by.

import { element, spans } from "./dom";

const KEYWORDS =
  "def|return|for|in|if|else|elif|lambda|class|import|from|as|with|while|not|and|or|is|" +
  "None|True|False|yield|assert|raise|try|except";
const TOKENS = new RegExp(
  String.raw`(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(${KEYWORDS})\b|(?<=^\s*)(@[\w.]+)`,
  "g",
);

const BREAKS = /(?<=[([{,])(?![\s)\]}])/;

/** The parts of a line: strings, and spans of the classes `t-comment, t-string, t-keyword, t-decorator`. */
export const pythonSpans = (line: string): (Node | string)[] =>
  spans(line, TOKENS, ["comment", "string", "keyword", "decorator"]).flatMap((part) =>
    typeof part === "string" ? breakable(part) : [part],
  );

/** Code that may also wrap behind an open bracket or a comma: a browser breaks only at spaces. */
const breakable = (code: string): (Node | string)[] =>
  code.split(BREAKS).flatMap((piece, i) => (i ? [element("wbr"), piece] : [piece]));
