// In each output of a session: follows the page's theme and what Python sends, and opens what a row has.

import { element } from "../core/dom";
import { insertOutput, type Model, request, showAnswer } from "../core/kernel_link";
import { startOutputs } from "../core/live_output";

startOutputs(".explorer-session", (host) => ({
  id: host.dataset.explorerSession ?? "",
  rewrite: (html) => rewrite(host.querySelector<HTMLElement>(".sp-live")!, html),
  decorate: (model) => offer(host, model),
}));

/** Write all of it anew but for what a person has opened. The HTML is explorer's own. */
function rewrite(live: HTMLElement, html: string): void {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const focused = document.activeElement?.closest<HTMLElement>("[data-open]");
  const key = focused && live.contains(focused) ? focused.dataset.open : undefined;
  for (const row of fresh.content.querySelectorAll<HTMLElement>(".sp-row")) {
    const old = live.querySelector<HTMLElement>(`[data-key="${CSS.escape(row.dataset.key!)}"]`);
    const slot = old?.querySelector(".sp-slot");
    if (slot?.hasChildNodes()) row.querySelector(".sp-slot")!.replaceWith(slot);
    if (old?.querySelector(".sp-why details[open]")) row.querySelector(".sp-why details")?.setAttribute("open", "");
  }
  live.replaceChildren(fresh.content);
  if (key !== undefined) queueMicrotask(() => button(live, key)?.focus({ preventScroll: true }));
}

const button = (live: HTMLElement, key: string) =>
  live.querySelector<HTMLElement>(`[data-open="${CSS.escape(key)}"] button`);

/** Make a button of each item that can be opened: by the kernel, or from the page itself. */
function offer(host: HTMLElement, model: () => Model | undefined): void {
  for (const item of host.querySelectorAll<HTMLElement>("[data-open]:not([data-offered])")) {
    const key = item.dataset.open!;
    const page = host.querySelector<HTMLTemplateElement>(`template[data-page="${CSS.escape(key)}"]`);
    if (!page && !model()) continue;
    item.dataset.offered = "";
    const slot = item.closest(".sp-row")!.querySelector<HTMLElement>(".sp-slot")!;
    const isOpen = slot.dataset.of === key;
    const opener = element("button", { type: "button", "aria-expanded": String(isOpen) }, item.textContent ?? "");
    opener.addEventListener("click", () => toggle(host, opener, slot, key, page, model()));
    item.replaceChildren(opener);
  }
}

function toggle(
  host: HTMLElement,
  opener: HTMLElement,
  slot: HTMLElement,
  key: string,
  page: HTMLTemplateElement | null,
  model: Model | undefined,
): void {
  if (opener.ariaBusy === "true") return;
  const was = slot.dataset.of;
  for (const other of slot.parentElement!.querySelectorAll("button[aria-expanded]"))
    other.setAttribute("aria-expanded", "false");
  slot.replaceChildren();
  delete slot.dataset.of;
  if (was === key) return;
  slot.dataset.of = key;
  opener.setAttribute("aria-expanded", "true");
  const opens = new CustomEvent("explorer-session-open", { cancelable: true, detail: { key } });
  if (page) insertOutput(slot, page.innerHTML);
  else if (host.dispatchEvent(opens) && model) void showAnswer(opener, request(model, "open", key), slot, "xf-said");
}
