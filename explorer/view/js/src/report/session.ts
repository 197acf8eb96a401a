// In each output of a session: follows the page's theme and what Python sends, and opens what a row has.

import { button } from "../core/dom";
import { insertOutput, type Model, request, showAnswer } from "../core/kernel_link";
import { having, offerOnce, startOutputs } from "./output";

startOutputs(".explorer-session", (host) => ({
  id: host.dataset.explorerSession,
  rewrite: (fresh) => rewrite(host.querySelector<HTMLElement>(".sp-live")!, fresh),
  decorate: (model) => offer(host, model),
}));

/** Write all of it anew but for what a person has opened. */
function rewrite(live: HTMLElement, fresh: DocumentFragment): void {
  const focused = document.activeElement?.closest<HTMLElement>("[data-open]");
  const key = focused && live.contains(focused) ? focused.dataset.open : undefined;
  for (const row of fresh.querySelectorAll<HTMLElement>(".sp-row")) {
    const old = having(live, "key", row.dataset.key!);
    const slot = old?.querySelector(".sp-slot");
    if (slot?.hasChildNodes()) row.querySelector(".sp-slot")!.replaceWith(slot);
    if (old?.querySelector(".sp-why details[open]")) row.querySelector(".sp-why details")?.setAttribute("open", "");
  }
  live.replaceChildren(fresh);
  if (key === undefined) return;
  queueMicrotask(() => having(live, "open", key)?.querySelector("button")?.focus({ preventScroll: true }));
}

/** Make a button of each item that can be opened: by the kernel, or from the page itself. */
function offer(host: HTMLElement, model: () => Model | undefined): void {
  offerOnce(host, "open", (item) => {
    const key = item.dataset.open!;
    const page = having<HTMLTemplateElement>(host, "page", key);
    if (!page && !model()) return false;
    const slot = item.closest(".sp-row")!.querySelector<HTMLElement>(".sp-slot")!;
    const isOpen = String(slot.dataset.of === key);
    const opener = button({ "aria-expanded": isOpen }, () => toggle(opener), item.textContent ?? "");
    return item.replaceChildren(opener);

    function toggle(opener: HTMLElement): void {
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
      const kernel = model();
      if (page) insertOutput(slot, page.innerHTML);
      else if (host.dispatchEvent(opens) && kernel)
        void showAnswer(opener, request(kernel, "open", key), slot, "xf-said");
    }
  });
}
