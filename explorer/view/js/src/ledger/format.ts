// How the ledger's facts are formatted, and the small elements that its panes share.

import { copied } from "../core/clipboard";
import { element } from "../core/dom";
import { secondsText } from "../core/labels";
import { button, code } from "../core/parts";
import type { Call, Place } from "./data";

export const STEPS = [
  ["trace", "trace"],
  ["lower", "lower"],
  ["compile", "XLA"],
] as const;

export const part = (kind: string, ...children: (Node | string)[]): HTMLElement =>
  element("span", { class: `lg-${kind}` }, ...children);

export const box = (kind: string, ...children: (Node | string)[]): HTMLElement =>
  element("div", { class: `lg-${kind}` }, ...children);

export const line = (...children: (Node | string)[]): HTMLElement => element("p", ...children);

export const none = (): HTMLElement => element("p.lg-none-yet", "nothing here");

/** The mark of what was compiled again; a screen reader reads its label, if it has one. */
export const flag = (label = ""): HTMLElement =>
  element("b.lg-flag", { ...(label ? { "aria-label": label } : { "aria-hidden": "true" }) }, "▼ ");

export const cured = (fix: string): HTMLElement => box("cured", part("label", "the cure"), cure(fix));

/** Draw anew, and leave the keyboard where it was. */
export function redraw(root: HTMLElement, draw: () => (Node | string)[]): void {
  const active = (root.getRootNode() as Document).activeElement as HTMLElement | null;
  const key = active && root.contains(active) ? active.dataset.key : undefined;
  root.replaceChildren(...draw());
  if (key) keyed(root, key)?.focus({ preventScroll: true });
}

export const keyed = (root: HTMLElement, key: string): HTMLElement | null =>
  root.querySelector(`[data-key="${CSS.escape(key)}"]`);

export const placeText = (place: Place | undefined): string => (place ? `${place.label}, line ${place.line}` : "");

export const compilesText = (count: number): string => `${number(count)} ${count === 1 ? "compile" : "compiles"}`;

export const number = (value: number): string => value.toLocaleString("en");

/** Why, in one line: `batch['x'].shape[0]  34 → 35`. */
export function why(call: Call): Node[] {
  const { reason } = call;
  if (call.isMiss) return [part("mute", "left the fast path, nothing to compile")];
  if (reason.kind === "first") return [part("mute", "first call")];
  if (!reason.leaf) return [document.createTextNode(reason.text || reason.kind)];
  return [code(reason.leaf), " ", ...change(reason.before, reason.after)].map((part) =>
    typeof part === "string" ? document.createTextNode(part) : part,
  );
}

export function change(before: string, after: string): (Node | string)[] {
  if (!before && !after) return [];
  return [element("code.lg-before", before || "–"), " → ", element("code.lg-after", after || "–")];
}

export function whyText(call: Call): string {
  const { reason } = call;
  if (call.isMiss) return "left the fast path";
  if (reason.kind === "first") return "first call";
  if (!reason.leaf) return reason.text || reason.kind;
  const both = reason.before || reason.after ? `${reason.before || "–"} → ${reason.after || "–"}` : "";
  return [reason.leaf, both].filter(Boolean).join(": ");
}

export const stepsText = (call: { trace: number; lower: number; compile: number }, isHit = false): string =>
  STEPS.filter(([step]) => call[step] > 0)
    .map(
      ([step, name]) =>
        `${isHit && step === "compile" ? "from the persistent cache" : name} ${secondsText(call[step])}`,
    )
    .join(", ");

/** A bar as long as a share of the whole, in three parts. */
export function bar(steps: { trace: number; lower: number; compile: number }, whole: number): HTMLElement {
  const parts = STEPS.map(([step]) =>
    element("i", { class: `lg-${step}`, style: `width:${(100 * steps[step]) / (whole || 1)}%` }),
  );
  return element("span.lg-bar", { "aria-hidden": "true" }, ...parts);
}

export const sumOf = (calls: readonly Call[]) => {
  const sum = { trace: 0, lower: 0, compile: 0 };
  for (const call of calls) for (const [step] of STEPS) sum[step] += call[step];
  return sum;
};

/** Code with a button that copies it; a sentence stands as it is. */
export function cure(fix: string): HTMLElement {
  const copy = button(
    { class: "lg-copy" },
    () => void copied(fix).then((done) => (copy.textContent = done ? "copied" : "select it")),
    "copy",
  );
  return box("cure", element("pre", { tabindex: "0", "aria-label": "the cure" }, fix), copy);
}
