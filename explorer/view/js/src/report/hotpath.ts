// In each output of hot paths: follows the page's theme, what Python sends while they are on, and opens captures.

import { button, element } from "../core/dom";
import { request, showAnswer } from "../core/kernel_link";
import { offerOnce, startOutputs } from "./output";

const CELL = /^cell \[(\d+)\]/;
const SHOWN = 1600; // milliseconds that a line stays marked

startOutputs(".explorer-hot", (host) => ({
  id: host.dataset.explorerHot,
  rewrite: (fresh) => rewrite(host.querySelector<HTMLElement>(".hp-live")!, fresh),
  decorate: (model) => {
    linkPlaces(host);
    offerOnce(host, "capture", (place) => {
      if (!model()) return false;
      const open = () => {
        const kernel = model();
        if (opener.ariaBusy === "true" || !kernel) return;
        const slot = place.parentElement!.querySelector<HTMLElement>(".hp-slot")!;
        void showAnswer(opener, request(kernel, "capture", place.dataset.capture ?? ""), slot, "xf-said");
      };
      const opener = button({ class: "xf-write" }, open, "open its capture");
      return place.append(opener, element("span.xf-said", "what the compiler made of it, line by line"));
    });
  },
}));

/** Write all of it anew but for what a person has opened, looks at or types in. */
function rewrite(live: HTMLElement, fresh: DocumentFragment): void {
  const before = new Map(keyed(live).map((node) => [node.dataset.key, node]));
  const focused = live.contains(document.activeElement) ? pathOf(document.activeElement!) : undefined;
  for (const node of keyed(fresh)) {
    const old = before.get(node.dataset.key);
    if (!old) continue;
    const [was, is] = [inner(old), inner(node)];
    for (const [at, details] of is.entries()) if (was[at]) details.open = was[at].open;
    const slot = old.querySelector(".hp-slot");
    if (slot?.hasChildNodes()) node.querySelector(".hp-slot")?.replaceWith(slot);
  }
  live.replaceChildren(fresh);
  if (focused) live.querySelector<HTMLElement>(focused)?.focus({ preventScroll: true });
}

function keyed(root: ParentNode): HTMLDetailsElement[] {
  return [...root.querySelectorAll<HTMLDetailsElement>("details[data-key]")];
}

/** A function's own details: itself, and its table; not those of a capture that is open in it. */
function inner(node: HTMLDetailsElement): HTMLDetailsElement[] {
  return [node, ...node.querySelectorAll("details")].filter((details) => !details.closest(".hp-slot"));
}

/** Where the focus is, so that it is found again: the summary of a function. */
function pathOf(focused: Element): string | undefined {
  const key = focused.matches("summary") ? focused.closest<HTMLElement>("[data-key]")?.dataset.key : undefined;
  return key === undefined ? undefined : `[data-key="${CSS.escape(key)}"] > summary`;
}

/** `cell [3], line 5` as a link to that line, in JupyterLab and Notebook 7; elsewhere it stays text. */
function linkPlaces(host: HTMLElement): void {
  if (!host.closest(".jp-Notebook")) return;
  for (const place of host.querySelectorAll<HTMLElement>(".xf-body span.hp-where[data-line]")) {
    const count = CELL.exec(place.textContent ?? "")?.[1];
    if (!count) continue;
    const go = () => {
      const line = lineOf(host, count, Number(place.dataset.line));
      line?.scrollIntoView({ block: "center", behavior: "instant" });
      line?.animate([{ outline: "2px solid #0b62c4" }, { outline: "2px solid transparent" }], SHOWN);
    };
    place.replaceWith(button({ class: "hp-where" }, go, place.textContent ?? ""));
  }
}

/** A line of the cell that ran as the count-th; a cell that runs has no number yet, and is the host's own. */
function lineOf(host: HTMLElement, count: string, line: number): Element | undefined {
  const cells = [...host.closest(".jp-Notebook")!.querySelectorAll(".jp-CodeCell")];
  const prompt = (cell: Element) => cell.querySelector(".jp-InputPrompt")?.textContent?.trim();
  const cell = cells.find((one) => prompt(one) === `[${count}]:`) ?? host.closest(".jp-CodeCell") ?? undefined;
  return cell?.querySelectorAll(".cm-line")[line - 1] ?? cell;
}
