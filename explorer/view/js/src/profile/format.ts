// How a profile's figures are formatted, and the small elements that its panes share.

import { element } from "../core/dom";
import { secondsText } from "../core/labels";
import type { Data, Line } from "./data";

export const part = (kind: string, ...children: (Node | string)[]): HTMLElement =>
  element("span", { class: `pf-${kind}` }, ...children);
export const box = (kind: string, ...children: (Node | string)[]): HTMLElement =>
  element("div", { class: `pf-${kind}` }, ...children);

export function shareText(share: number): string {
  if (!(share > 0)) return "0%";
  if (share < 0.001) return "<0.1%";
  return share >= 0.0995 ? `${Math.round(100 * share)}%` : `${(100 * share).toFixed(1)}%`;
}

/** How strongly a part of the hottest is coloured, in percent: small ones must differ visibly too. */
export const strength = (heat: number): number => Math.round(12 + 88 * Math.sqrt(Math.min(Math.max(heat, 0), 1)));
export const heated = (heat: number): string => `--heat:${strength(heat)}%`;

/** A share of the time as a number, and as a bar that is whole for the hottest: never colour alone. */
export function bar(share: number, heat: number, kind = ""): HTMLElement {
  const fill = element("i", { style: `width:${Math.min(100 * heat, 100)}%`, "aria-hidden": "true" });
  return element("span", { class: `pf-bar ${kind}`, style: heated(heat) }, fill, element("b", shareText(share)));
}

export const placeText = (line: Line, { files }: Data): string =>
  files.length === 1 ? `line ${line.number}` : `${line.file.label}:${line.number}`;

/** Of several, one is reached by the Tab key, and the arrows go from there. */
export function roving(root: HTMLElement, rows: () => [unknown, HTMLElement][]): void {
  root.addEventListener("keydown", (event) => {
    const all = rows().map(([, row]) => row);
    const at = all.indexOf(event.target as HTMLElement);
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    if (!all[to]) return;
    event.stopPropagation();
    for (const item of all) item.tabIndex = -1;
    all[to].tabIndex = 0;
    all[to].focus();
  });
}

const MOST_HOST = 5;

/** What the thread that called did, in one line. */
export function hostText(host: [name: string, seconds: number][]): HTMLElement[] {
  if (!host.length) return [];
  const parts = host.slice(0, MOST_HOST).map(([name, seconds]) => `${name} ${secondsText(seconds)}`);
  if (host.length > MOST_HOST) parts.push(`${host.length - MOST_HOST} more`);
  return [element("p.pf-host", `the thread that called: ${parts.join(" · ")}`)];
}
