// The tools that lie on the graph: what boxes are coloured by with its legend, and the ways that can be shown.

import { element } from "../core/dom";
import { amount, bytesText, secondsText } from "../core/labels";
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
    const buttons = WAYS.map(([way, text, help]) => {
      const button = element("button", { type: "button", title: help, "aria-pressed": "false" }, text);
      button.addEventListener("click", () => toggle(way));
      this.#ways.set(way, button);
      return button;
    });
    this.root = element("div.graph-tools", ...buttons, element("label", "color by ", this.#menu));
  }

  /** The columns of the current stage. */
  reset(): void {
    this.#fill(columnsOf(this.session));
    this.#state = "";
    this.light(undefined);
  }

  #fill(columns: [name: string, title: string][]): void {
    this.#menu.replaceChildren(...columns.map(([name, title]) => element("option", { value: name }, title)));
    this.#menu.value = this.session.colourBy;
  }

  /** Show what is chosen and what can be. */
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
      const bar = element("span", {
        class: "ramp",
        role: "img",
        "aria-label": `from ${format(ramp.low)} to ${format(ramp.high)}${ramp.isLog ? ", logarithmic" : ""}`,
      });
      bar.style.background = RAMP_CSS;
      parts.push(
        element("span", format(ramp.low)),
        bar,
        element("span", format(ramp.high) + (ramp.isLog ? " (log)" : "")),
      );
    }
    for (const { kind, text } of entries)
      parts.push(element("span", { class: kind >= 0 ? `k${kind}` : "" }, element("i", {}), text));
    if (!ramp && !entries.length) parts.push(element("span", "not known of this stage"));
    this.legend.replaceChildren(...parts);
  }
}
