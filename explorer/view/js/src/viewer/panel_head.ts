// Above the panel in the middle: the ways to look at the stage, and the tools of its picture.

import { element } from "../core/dom";
import { rove } from "../core/roving";
import type { Session } from "../core/session";
import type { PaneKind } from "./panes";
import { button, markTab, tab, tabList } from "./tabs";

interface Zoom {
  zoom(factor: number): void;
  fitAll(): void;
}

export class PanelHead {
  readonly root: HTMLElement;
  /** Stand behind the panel in the document: what they are for comes first. */
  readonly tools: HTMLElement;
  readonly #modes: HTMLElement;
  /** Stands among the modes while what is a stage to the eye is shown, so that one of them is marked. */
  readonly #between: HTMLElement;
  readonly #zoom: HTMLElement;

  constructor(
    private readonly session: Session,
    private readonly kinds: PaneKind[],
    panel: string,
    graph: Zoom,
    save: HTMLElement,
  ) {
    this.#modes = tabList(
      "representation",
      kinds
        .filter(({ count }) => !count)
        .map(({ mode, title }) => tab(panel, { mode }, title, "", () => session.setMode(mode))),
    );
    this.#modes.classList.add("modes");
    this.#between = tab(panel, { between: "" }, "", "", () => {});
    const tools = [
      { label: "zoom out (−)", sign: "−", act: () => graph.zoom(0.8) },
      { label: "zoom in (+)", sign: "+", act: () => graph.zoom(1.25) },
      { label: "fit the whole picture (0)", sign: "fit", act: () => graph.fitAll() },
    ];
    this.#zoom = element(
      "span.zoom",
      ...tools.map(({ label, sign, act }) => {
        const made = button("tool", label, sign);
        made.addEventListener("click", act);
        return made;
      }),
    );
    this.tools = element("div.picture-tools", { role: "toolbar", "aria-label": "picture" }, this.#zoom, save);
    rove(this.tools, ".tool");
    this.root = element("div.panel-head", this.#modes);
  }

  /** Mark the mode that is shown, and give its tab; a mode that the stage doesn't have goes. */
  mark(): HTMLElement | undefined {
    const { stage, mode } = this.session;
    const shown = this.#kind(mode);
    this.#between.remove();
    for (const item of this.#modes.querySelectorAll("button"))
      item.hidden = ![undefined, stage.name].includes(this.#kind(item.dataset.mode)?.stage);
    this.#zoom.classList.toggle("away", mode !== "graph");
    if (shown?.count) {
      this.#between.textContent = shown.title.replace(/^./, (first) => first.toUpperCase());
      this.#modes.append(this.#between);
    }
    return markTab(this.#modes, (data) => data.mode === mode || data.between !== undefined);
  }

  #kind(mode: string | undefined): PaneKind | undefined {
    return this.kinds.find((kind) => kind.mode === mode);
  }
}
