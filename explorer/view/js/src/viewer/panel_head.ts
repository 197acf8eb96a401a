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
      kinds.map(({ mode, title }) =>
        tab(
          panel,
          { mode },
          title.replace(/^./, (first) => first.toUpperCase()),
          "",
          () => session.setMode(mode),
        ),
      ),
    );
    this.#modes.classList.add("modes");
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

  /**
   * Mark the mode that is shown, and give its tab; a mode that the stage doesn't have goes. What is a stage to the eye is
   * one of the modes only while it is shown.
   */
  mark(): HTMLElement | undefined {
    const { stage, mode } = this.session;
    for (const item of this.#modes.querySelectorAll("button"))
      item.hidden = !this.#isOffered(this.#kind(item.dataset.mode), stage.name, mode);
    this.#zoom.classList.toggle("away", mode !== "graph");
    return markTab(this.#modes, (data) => data.mode === mode);
  }

  #isOffered(kind: PaneKind | undefined, stage: string, mode: string): boolean {
    return kind?.count ? kind.mode === mode : [undefined, stage].includes(kind?.stage);
  }

  #kind(mode: string | undefined): PaneKind | undefined {
    return this.kinds.find((kind) => kind.mode === mode);
  }
}
