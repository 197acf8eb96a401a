// Where what is chosen lies: forward ▸ block ×24 ▸ attention ▸ the kernel. Each part is a way back.

import { element } from "../core/dom";
import { groupItem, type Item } from "../core/graph";
import { labelOf } from "../core/labels";
import type { Session } from "../core/session";

export class Breadcrumbs {
  readonly root = element("nav", { class: "crumbs", "aria-label": "place in the program" });
  private told = "";

  constructor(
    private readonly session: Session,
    private readonly go: (item: Item) => void,
  ) {}

  fill(): void {
    const { stage, focus } = this.session;
    const { graph } = stage;
    const items = focus.item === undefined ? [] : this.around(focus.item);
    const key = `${stage.name} ${items.join()} ${[...graph.shown.values()].join()}`;
    if (key === this.told) return;
    this.told = key;
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

  /** The items around one, outermost first, itself last; an iteration is told by its repeat. */
  private around(item: Item): Item[] {
    const { graph } = this.session.stage;
    const groups = graph.ancestors(item).filter((group) => graph.c.groups[group]!.kind !== "iteration");
    const items = groups.map((group) => (graph.c.groups[group]!.caller >= 0 ? graph.itemOf(group) : groupItem(group)));
    return [...new Set([...items, item])];
  }
}
