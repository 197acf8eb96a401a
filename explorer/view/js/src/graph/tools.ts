// The tools that lie on the graph: what boxes are coloured by with its legend, and the ways that can be shown.

import { button, element } from "../core/dom";
import type { Item } from "../core/graph";
import { amount, bytesText, labelOf, secondsText } from "../core/labels";
import type { Session } from "../core/session";
import type { GraphCanvas } from "./canvas";
import { columnsOf, RAMP_CSS } from "./colours";

export type Way = "inputs" | "outputs" | "critical";

const WAYS: [way: Way, text: string, help: string][] = [
  ["inputs", "inputs", "everything that the selection uses (i)"],
  ["outputs", "outputs", "everything that uses the selection (o)"],
  ["critical", "critical path", "the longest path through the program (c)"],
];

export class GraphTools {
  readonly root: HTMLElement;
  readonly legend = element("div.legend");
  readonly #menu = element("select", { "aria-label": "color by" });
  readonly #ways = new Map<Way, HTMLButtonElement>();
  #state = "";

  constructor(
    private readonly session: Session,
    private readonly canvas: GraphCanvas,
    toggle: (way: Way) => void,
  ) {
    this.#menu.addEventListener("change", () => session.setColour(this.#menu.value));
    this.#menu.addEventListener("keydown", (event) => event.stopPropagation());
    for (const [way, text, title] of WAYS)
      this.#ways.set(
        way,
        button({ title, "aria-pressed": "false" }, () => toggle(way), text),
      );
    this.root = element("div.graph-tools", ...this.#ways.values(), element("label", "color by ", this.#menu));
  }

  reset(): void {
    this.#menu.replaceChildren(
      ...columnsOf(this.session).map(([name, title]) => element("option", { value: name }, title)),
    );
    this.#state = "";
    this.light(undefined);
  }

  light(way: Way | undefined): void {
    const { session } = this;
    const hasNode = session.focus.nodes.size > 0;
    for (const [name, button] of this.#ways) {
      button.setAttribute("aria-pressed", String(name === way));
      button.disabled = name !== "critical" && !hasNode;
    }
    const key = `${session.stage.name} ${session.colourBy}`;
    if (key === this.#state) return;
    this.#state = key;
    if (![...this.#menu.options].some(({ value }) => value === session.colourBy))
      this.#menu.append(element("option", { value: session.colourBy }, session.colourBy));
    this.#menu.value = session.colourBy;
    this.#fillLegend();
  }

  #fillLegend(): void {
    const legend = this.canvas.colours.legend;
    this.legend.hidden = !legend;
    if (!legend) return;
    const { title, entries, ramp } = legend;
    const parts: Node[] = [element("b", title)];
    if (ramp) {
      const format = title === "bytes" ? bytesText : title.startsWith("time") ? secondsText : amount;
      const [low, high] = [format(ramp.low), format(ramp.high)];
      const label = `from ${low} to ${high}${ramp.isLog ? ", logarithmic" : ""}`;
      const bar = element("span.ramp", { role: "img", "aria-label": label, style: `background: ${RAMP_CSS}` });
      parts.push(element("span", low), bar, element("span", high + (ramp.isLog ? " (log)" : "")));
    }
    for (const { kind, text } of entries)
      parts.push(element("span", { class: kind >= 0 ? `k${kind}` : "" }, element("i", {}), text));
    if (!ramp && !entries.length) parts.push(element("span", "unknown for this stage"));
    this.legend.replaceChildren(...parts);
  }
}

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
      const isLast = i === items.length - 1;
      return button(isLast ? { "aria-current": "true" } : {}, () => this.go(item), title);
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
