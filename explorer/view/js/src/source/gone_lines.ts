// The lines of which nothing is left in what the compiler made, and what took them away.

import { lineKey } from "../core/attribution";
import { push } from "../core/buckets";
import type { Capture } from "../core/capture";

export interface Gone {
  /** `gone`, or `folded` where all of it was computed while compiling. */
  word: string;
  /** `removed by algsimp (pass 3): x · 1 is x`. */
  text: string;
}

const MOST = 2; // reasons

/** By the line's key; a line is gone if each of its equations was eliminated or folded. */
export function goneLines(capture: Capture): Map<string, Gone> {
  const gone = new Map<string, Gone>();
  const [first] = capture.stages;
  const fates = first?.fates;
  if (!first || !fates) return gone;
  for (const [code, { file, line }] of first.attribution.places.entries()) {
    const equations = [...first.attribution.nodesAt(code)].filter((node) => fates.kind(node));
    const isGone = (node: number) => /^(eliminated|folded)$/.test(fates.kind(node)) && !fates.isInferred(node);
    if (!equations.length || !equations.every(isGone)) continue;
    const isFolded = equations.every((node) => fates.kind(node) === "folded");
    const why = new Map<string, string[]>();
    for (const node of equations) push(why, fates.stepText(fates.step(node)), fates.why(node));
    const reasons = [...why].map(([step, texts]) => {
      const [text] = [...new Set(texts.filter(Boolean))];
      return `${step ? `by ${step}` : "by the compiler"}${text ? `: ${text}` : ""}`;
    });
    const verb = isFolded ? "computed while compiling, " : "removed ";
    gone.set(lineKey(file, line), {
      word: isFolded ? "folded" : "gone",
      text: verb + reasons.slice(0, MOST).join("; ") + (reasons.length > MOST ? "; …" : ""),
    });
  }
  return gone;
}
