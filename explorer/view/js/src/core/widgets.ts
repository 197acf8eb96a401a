// Controls that several views are made of: choices of which one holds, heads that sort, keys, and what lies under an
// event.

import { element } from "./dom";
import { button } from "./parts";

/** Fill an element with buttons of which one holds: tabs of a tablist, else pressed ones; returns what marks one. */
export function choices<T>(
  root: HTMLElement,
  all: readonly (readonly [value: T, text: string])[],
  choose: (value: T) => void,
  data?: string,
): (value: T) => HTMLButtonElement | undefined {
  const isTabs = root.getAttribute("role") === "tablist";
  const state = isTabs ? "aria-selected" : "aria-pressed";
  const buttons = all.map(([value, text]) => {
    const attributes = { ...(isTabs && { role: "tab" }), ...(data && { [`data-${data}`]: String(value) }) };
    return button({ ...attributes, [state]: "false" }, () => choose(value), text);
  });
  root.replaceChildren(...buttons);
  return (chosen) => {
    for (const [i, made] of buttons.entries()) made.setAttribute(state, String(all[i]![0] === chosen));
    return buttons.find((_, i) => all[i]![0] === chosen);
  };
}

/** A button of one sign, with a name. */
export const tool = (sign: string, label: string, act: () => void): HTMLButtonElement =>
  button({ class: "tool", "aria-label": label, title: label }, act, sign);

/** A column's head that sorts by it; `down` of the one that it is sorted by. */
export function sortHead(attributes: Record<string, string>, title: string, sort: () => void, down?: boolean): Element {
  const order = down === undefined ? "none" : down ? "descending" : "ascending";
  const sign = down === undefined ? "" : down ? " ▾" : " ▴";
  const head = button({}, sort, title, element("i", { "aria-hidden": "true" }, sign));
  return element("span", { role: "columnheader", ...attributes, "aria-sort": order }, head);
}

/** Do what a key without others does; the page around doesn't get it then. */
export function onKey(root: Element, actOf: (event: KeyboardEvent) => (() => unknown) | undefined): void {
  root.addEventListener("keydown", (pressed) => {
    const event = pressed as KeyboardEvent;
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : actOf(event);
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
}

/** What the nearest element at or around an event has of some data. */
export const dataAt = ({ target }: Event, name: string): string | undefined =>
  (target as Element | null)?.closest?.<HTMLElement>(`[data-${name}]`)?.dataset[name];

/** Has the keyboard something in an element? */
export const hasFocus = (root: HTMLElement): boolean =>
  root.contains((root.getRootNode() as Document | ShadowRoot).activeElement);

/** The position of the last of rising keys that isn't above a bound; the first one's where all are. */
export function lastAtMost<T>(rows: ArrayLike<T>, key: (row: T) => number, bound: number): number {
  let [low, high] = [0, rows.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (key(rows[middle]!) <= bound) low = middle;
    else high = middle - 1;
  }
  return low;
}

export const words = (text: string): string[] => text.toLowerCase().split(/\s+/).filter(Boolean);

/** Call back with the part of an element that is clicked, and with the one under the pointer, undefined for none. */
export function onParts<T>(
  root: HTMLElement,
  at: (event: Event) => T | undefined,
  choose: (part: T) => void,
  preview: (part?: T) => void,
): void {
  root.addEventListener("click", (event) => {
    const part = at(event);
    if (part !== undefined) choose(part);
  });
  root.addEventListener("pointerover", (event) => preview(at(event)));
  root.addEventListener("pointerleave", () => preview());
}
