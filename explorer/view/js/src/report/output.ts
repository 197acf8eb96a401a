// What outputs have in common that are complete without a script, and that Python may write anew: of findings, of hot
// paths, of a session.

import { type Model, PythonLink } from "../core/kernel_link";
import { followTheme } from "../core/theme";

/** What an output is by itself, and what it does with the kernel that is behind it, if one is. */
interface LiveOutput {
  id: string | undefined;
  /** Put what Python sends instead of what stands there. The HTML is explorer's own. */
  rewrite?(fresh: DocumentFragment): void;
  /** Give what stands there now its links and buttons; whose kernel answers them is looked up when one is pressed. */
  decorate(model: () => Model | undefined): void;
}

/** Follow the page's theme, and what Python sends: once for each output that a selector finds and isn't live yet. */
export function startOutputs(selector: string, live: (host: HTMLElement) => LiveOutput): void {
  for (const host of document.querySelectorAll<HTMLElement>(`${selector}:not([data-started])`)) {
    host.dataset.started = "";
    followTheme(host);
    adoptStyle(host);
    const { id = "", rewrite, decorate } = live(host);
    let model: Model | undefined; // it may come while the link is made
    const shown = () => decorate(() => model);
    const changed = (now: Model | undefined) => {
      model = now;
      shown();
    };
    const updated = (html: string) => {
      const fresh = document.createElement("template");
      fresh.innerHTML = html;
      rewrite?.(fresh.content);
      shown();
    };
    shown();
    new PythonLink(host, id, { updated, changed });
  }
}

/** A strict page forbids a <style>, but not what a script makes of it. */
function adoptStyle(host: HTMLElement): void {
  if (getComputedStyle(host).getPropertyValue("--xf-bg")) return;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(host.querySelector("style")!.textContent!);
  (host.getRootNode() as Document).adoptedStyleSheets.push(sheet);
}

/** An element of an output that has some data, by its value. */
export const having = <E extends HTMLElement>(root: ParentNode, name: string, value: string): E | null =>
  root.querySelector<E>(`[data-${name}="${CSS.escape(value)}"]`);

/** The elements with some data that have no buttons yet; they count as having them if `offer` doesn't return false. */
export function offerOnce(root: HTMLElement, name: string, offer: (place: HTMLElement) => unknown): void {
  for (const place of root.querySelectorAll<HTMLElement>(`[data-${name}]:not([data-offered])`))
    if (offer(place) !== false) place.dataset.offered = "";
}
