// An output that Python writes anew while it is in the page: of hot paths, of a session.

import { adoptStyle } from "./fragment";
import { type Model, onModel } from "./kernel_link";
import { followTheme } from "./theme";

/** What an output is by itself, and what it does with the kernel that is behind it, if one is. */
export interface LiveOutput {
  /** The id of its kernel's model. */
  id: string;
  /** Put what Python sends in the place of what stands there. The HTML is explorer's own. */
  rewrite(html: string): void;
  /** Give what stands there now its links and buttons; whose kernel answers them is looked up when one is pressed. */
  decorate(model: () => Model | undefined): void;
}

/** Follow the page's theme, and what Python sends: once for each output that a selector finds and isn't live yet. */
export function startOutputs(selector: string, live: (host: HTMLElement) => LiveOutput): void {
  for (const host of document.querySelectorAll<HTMLElement>(`${selector}:not([data-started])`)) {
    host.dataset.started = "";
    followTheme(host);
    adoptStyle(host);
    follow(host, live(host));
  }
}

function follow(host: HTMLElement, { id, rewrite, decorate }: LiveOutput): void {
  let model: Model | undefined;
  const current = () => model;
  decorate(current);
  const update = () => {
    const html = model?.get("update");
    if (html) rewrite(html);
    decorate(current);
  };
  onModel(host, id, (next) => (model = next) && update(), undefined, { "change:update": update });
}
