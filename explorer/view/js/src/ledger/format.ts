// How the ledger's facts are formatted, and the small elements that its panes share.

import { button, code, copied, element, hasFocus } from "../core/dom";
import { secondsText } from "../core/labels";
import type { Call, Place, Steps } from "./data";

export const STEPS = [
  ["trace", "trace"],
  ["lower", "lower"],
  ["compile", "XLA"],
] as const;

type Parts = (Node | string)[];

export const part = (kind: string, ...children: Parts): HTMLElement =>
  element("span", { class: `lg-${kind}` }, ...children);
export const box = (kind: string, ...children: Parts): HTMLElement =>
  element("div", { class: `lg-${kind}` }, ...children);
export const none = (): HTMLElement => element("p.lg-none-yet", "nothing here");
/** A part of a bar, in the colour of its step. */
export const stepOf = (step: string, style = "") => ({ class: "lg-step", style: `--c:var(--${step});${style}` });

/** The mark of what was compiled again; a screen reader reads its label, if it has one. */
export const flag = (label = ""): HTMLElement =>
  element("b.lg-flag", { ...(label ? { "aria-label": label } : { "aria-hidden": "true" }) }, "▼ ");

export const cured = (fix: string): HTMLElement => box("cured", part("label", "fix"), cure(fix));

/** Draw anew, and leave the keyboard where it was. */
export function redraw(root: HTMLElement, draw: () => Parts): void {
  const active = (root.getRootNode() as Document).activeElement as HTMLElement | null;
  const key = hasFocus(root) ? active?.dataset.key : undefined;
  root.replaceChildren(...draw());
  if (key) keyed(root, key)?.focus({ preventScroll: true });
}

export const keyed = (root: HTMLElement, key: string): HTMLElement | null =>
  root.querySelector(`[data-key="${CSS.escape(key)}"]`);

export const placeText = (place: Place | undefined, inside = false): string =>
  place ? `${place.label}, line ${place.line}${inside && place.function ? ` in ${place.function}` : ""}` : "";

/** Why, in one line: `batch['x'].shape[0]  34 → 35`. */
export function why(call: Call): Parts {
  const { reason } = call;
  if (call.isMiss) return [part("mute", "left the fast path, nothing to compile")];
  if (reason.kind === "first") return [part("mute", "first call")];
  if (!reason.leaf) return [reason.text || reason.kind];
  return [code(reason.leaf), " ", ...change(reason.before, reason.after)];
}

export function change(before: string, after: string): Parts {
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

export const stepsText = (steps: Steps, isHit = false): string =>
  STEPS.filter(([step]) => steps[step] > 0)
    .map(([step, name]) => {
      const title = isHit && step === "compile" ? "from the persistent cache" : name;
      return `${title} ${secondsText(steps[step])}`;
    })
    .join(", ");

/** How long it took, and a bar as long as a share of the whole, in three parts. */
export function spent(seconds: number, steps: Steps, whole: number): HTMLElement {
  const parts = STEPS.map(([step]) => element("i", stepOf(step, `width:${(100 * steps[step]) / (whole || 1)}%`)));
  const bar = element("span.lg-bar", { "aria-hidden": "true" }, ...parts);
  return part("spent", element("span", secondsText(seconds)), bar);
}

export const total = (rows: readonly { seconds: number }[]): number => rows.reduce((sum, row) => sum + row.seconds, 0);

export function sumOf(calls: readonly Steps[]): Steps {
  const sum = { trace: 0, lower: 0, compile: 0 };
  for (const call of calls) for (const [step] of STEPS) sum[step] += call[step];
  return sum;
}

/** Code with a button that copies it; a sentence stands as it is. */
export function cure(fix: string): HTMLElement {
  const said = (done: boolean) => (copy.textContent = done ? "copied" : "select it");
  const copy = button({ class: "lg-copy" }, () => void copied(fix).then(said), "copy");
  return box("cure", element("pre", { tabindex: "0", "aria-label": "fix" }, fix), copy);
}
