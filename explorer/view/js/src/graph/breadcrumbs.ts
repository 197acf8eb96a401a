// Where what is chosen lies: forward ▸ block ×24 ▸ attention ▸ the kernel. Each part is a way back.

import { element } from "../core/dom";
import type { Item } from "../core/item";
import { labelOf } from "../core/labels";
import type { Session } from "../core/session";

export class Breadcrumbs {
  readonly root = element("nav.crumbs", { "aria-label": "place in the program" });
  /** What the parts were made from: the stage, the items, and which iteration of each repeat is drawn. */
  #state: unknown[] = [];

  constructor(
    private readonly session: Session,
    private readonly go: (item: Item) => void,
  ) {}

  fill(): void {
    const { stage, focus } = this.session;
    const { graph } = stage;
    const items = focus.item === undefined ? [] : this.#around(focus.item);
    const state = [stage, ...items, ...graph.shown.values()];
    if (state.length === this.#state.length && state.every((value, i) => value === this.#state[i])) return;
    this.#state = state;
    const parts = items.map((item, i) => {
      const { title } = labelOf(graph, stage.name, item);
      const button = element(
        "button",
        { type: "button", ...(i === items.length - 1 ? { "aria-current": "true" } : {}) },
        title,
      );
      button.addEventListener("click", () => this.go(item));
      return button;
    });
    this.root.replaceChildren(
      ...parts.flatMap((part, i) => (i ? [element("i", { "aria-hidden": "true" }, "▸"), part] : [part])),
    );
    this.root.hidden = !parts.length;
  }

  /** The items around an item, outermost first, itself last; the repeat stands for its iterations. */
  #around(item: Item): Item[] {
    const { graph } = this.session.stage;
    const groups = graph.ancestors(item).filter((group) => graph.c.groups[group]!.kind !== "iteration");
    const items = groups.map((group) => graph.itemOf(group));
    return [...new Set([...items, item])];
  }
}
