// In each output of hot paths: follows the page's theme, what Python sends while they are on, and opens captures.

import { element } from "../core/dom";
import { type Model, request, showAnswer } from "../core/kernel_link";
import { startOutputs } from "../core/live_output";
import { linkPlaces } from "./places";

startOutputs(".explorer-hot", (host) => ({
  id: host.dataset.explorerHot ?? "",
  rewrite: (html) => rewrite(host.querySelector<HTMLElement>(".hp-live")!, html),
  decorate: (model) => {
    linkPlaces(host);
    if (model()) offerCaptures(host, model);
  },
}));

/** Write all of it anew but for what a person has opened, looks at or types in. The HTML is explorer's own. */
function rewrite(live: HTMLElement, html: string): void {
  const before = new Map(keyed(live).map((node) => [node.dataset.key, node]));
  const focused = live.contains(document.activeElement) ? pathOf(live, document.activeElement!) : undefined;
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  for (const node of keyed(fresh.content)) {
    const old = before.get(node.dataset.key);
    if (!old) continue;
    const [was, is] = [inner(old), inner(node)];
    for (const [at, details] of is.entries()) if (was[at]) details.open = was[at].open;
    const slot = old.querySelector(".hp-slot");
    if (slot?.hasChildNodes()) node.querySelector(".hp-slot")?.replaceWith(slot);
  }
  live.replaceChildren(fresh.content);
  if (focused) (live.querySelector(focused) as HTMLElement | null)?.focus({ preventScroll: true });
}

function keyed(root: ParentNode): HTMLDetailsElement[] {
  return [...root.querySelectorAll<HTMLDetailsElement>("details[data-key]")];
}

/** A function's own details: itself, and its table; not those of a capture that is open in it. */
function inner(node: HTMLDetailsElement): HTMLDetailsElement[] {
  return [node, ...node.querySelectorAll("details")].filter((details) => !details.closest(".hp-slot"));
}

/** Where the focus is, so that it is found again: the summary of a function. */
function pathOf(live: HTMLElement, focused: Element): string | undefined {
  const key = focused.matches("summary") ? focused.closest<HTMLElement>("[data-key]")?.dataset.key : undefined;
  return key === undefined || !live.contains(focused) ? undefined : `[data-key="${CSS.escape(key)}"] > summary`;
}

function offerCaptures(host: HTMLElement, model: () => Model | undefined): void {
  for (const place of host.querySelectorAll<HTMLElement>("[data-capture]:not([data-offered])")) {
    place.dataset.offered = "";
    const button = element("button", { type: "button", class: "xf-write" }, "open its capture");
    button.addEventListener("click", () => {
      const kernel = model();
      if (button.ariaBusy === "true" || !kernel) return;
      const slot = place.parentElement!.querySelector<HTMLElement>(".hp-slot")!;
      void showAnswer(button, request(kernel, "capture", place.dataset.capture ?? ""), slot, "xf-said");
    });
    place.append(button, element("span.xf-said", "what the compiler made of it, line by line"));
  }
}
