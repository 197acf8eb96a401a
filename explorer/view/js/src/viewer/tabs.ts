// Tabs that switch one panel: each list is one Tab stop, and the arrows choose.

import { element } from "../core/dom";
import { rove } from "../core/roving";

let made = 0;

export function button(kind: string, label: string, text: string): HTMLButtonElement {
  return element("button", { type: "button", class: kind, title: label, "aria-label": label }, text);
}

export function tab(
  panel: string,
  data: Record<string, string>,
  title: string,
  counted: string,
  choose: () => void,
): HTMLElement {
  const parts = counted ? [element("i", counted)] : [];
  const item = element("button", { type: "button", role: "tab", id: `${panel}-tab-${made++}` }, title, ...parts);
  if (counted) item.title = counted;
  item.setAttribute("aria-controls", panel);
  Object.assign(item.dataset, data);
  item.addEventListener("click", choose);
  return item;
}

export function tabList(label: string, tabs: HTMLElement[]): HTMLElement {
  const root = element("div.switch", { role: "tablist", "aria-label": label }, ...tabs);
  rove(root, "button", (item) => item.click());
  return root;
}

/** Mark the tab of what is shown, which Tab comes to, and give it; none may be. */
export function markTab(list: HTMLElement, isShown: (data: DOMStringMap) => boolean): HTMLElement | undefined {
  let shown: HTMLElement | undefined;
  for (const item of list.querySelectorAll<HTMLElement>("[role=tab]")) {
    const is = isShown(item.dataset);
    item.setAttribute("aria-selected", String(is));
    if (is) shown = item;
  }
  if (shown)
    for (const item of list.querySelectorAll<HTMLElement>("[role=tab]")) item.tabIndex = item === shown ? 0 : -1;
  return shown;
}
