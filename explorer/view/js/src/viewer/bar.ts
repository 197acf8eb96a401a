// Above everything, the function, its stages, the search field and the tools; above the panel in the middle, the ways
// to look at the stage and the tools of its picture. Each list of tabs is one Tab stop, and the arrows choose.

import { element } from "../core/dom";
import { count, number, STAGE_TITLES } from "../core/labels";
import { button } from "../core/parts";
import { popup } from "../core/popup";
import { rove } from "../core/roving";
import type { Session } from "../core/session";
import type { GraphPane } from "../graph/graph_pane";
import type { PaneKind } from "./panes";

export interface Tool {
  /** What it does, with its key. */
  label: string;
  text: string;
  /** What stands behind the text where there is place. */
  words?: string;
  act: (event: Event) => void;
}

let made = 0; // tabs of this page

export const toolButton = ({ label, text, words, act }: Tool): HTMLButtonElement =>
  button(
    { class: "tool", title: label, "aria-label": label },
    act,
    text,
    ...(words ? [element("i.words", ` ${words}`)] : []),
  );

function tab(panel: string, data: string, title: string, counted: string, choose: () => void): HTMLElement {
  const [name, value = ""] = data.split("=");
  const attributes = { role: "tab", id: `${panel}-tab-${made++}`, "aria-controls": panel, [`data-${name}`]: value };
  const parts = counted ? [element("i", counted)] : [];
  return button({ ...attributes, ...(counted && { title: counted }) }, choose, title, ...parts);
}

function tabList(label: string, tabs: HTMLElement[]): HTMLElement {
  const root = element("div.switch", { role: "tablist", "aria-label": label }, ...tabs);
  rove(root, "button", (item) => item.click());
  return root;
}

/** Mark the tab of what is shown, which Tab comes to, and give it; none may be. */
function markTab(list: HTMLElement, isShown: (data: DOMStringMap) => boolean): HTMLElement | undefined {
  const all = [...list.querySelectorAll<HTMLElement>("[role=tab]")];
  const shown = all.find((item) => isShown(item.dataset));
  for (const item of all) {
    item.setAttribute("aria-selected", String(item === shown));
    if (shown) item.tabIndex = item === shown ? 0 : -1;
  }
  return shown;
}

/** It never changes its height. */
export class Bar {
  readonly root: HTMLElement;
  readonly #stages: HTMLElement;
  readonly #tools = element("div.tools", { role: "toolbar", "aria-label": "tools" });
  readonly #markTool = rove(this.#tools, "button");

  constructor(
    private readonly session: Session,
    private readonly kinds: PaneKind[],
    panel: string,
    /** What becomes of the stage that isn't there yet. */
    pending: string | undefined,
    ask: HTMLElement,
  ) {
    const { capture } = session;
    const between = ({ mode, title, stage, count: counted }: PaneKind) =>
      tab(panel, `mode=${mode}`, title, counted!(session), () => {
        session.setStage(stage!);
        session.setMode(mode);
      });
    const tabs = capture.stages.flatMap(({ name, size }) => {
      // What a stage went through on its way stands between the stage before it and itself.
      const beside = kinds.filter((kind) => kind.count && kind.stage === name);
      const counted = name === "hlo" ? count(capture.stage(name).graph.kernelsIn(), "kernel") : number(size);
      return [
        ...beside.filter(({ isAfter }) => !isAfter).map(between),
        tab(panel, `stage=${name}`, STAGE_TITLES[name] ?? name, counted, () => this.#toStage(name)),
        ...beside.filter(({ isAfter }) => isAfter).map(between),
      ];
    });
    this.#stages = tabList("stage", tabs);
    const { function: name, signature } = capture.header;
    const more = element("button.more", { type: "button", title: "more tools", "aria-label": "more tools" }, "⋯");
    const around = element("div.more-tools", more, this.#tools);
    this.root = element(
      "div.bar",
      element("h2.function", { title: name + signature }, element("b", name), element("small", signature)),
      this.#stages,
      ...(pending ? [element("span.pending", { role: "status" }, `HLO: ${pending}`)] : []),
      ask,
      around,
    );
    // Where there is no place for the tools, they lie in a sheet behind one button.
    const open = popup(more, around, (isOpen) => {
      this.#tools.classList.toggle("open", isOpen);
      if (isOpen) this.#tools.querySelector<HTMLElement>("button[tabindex='0']")?.focus();
    });
    this.#tools.addEventListener("click", () => open(false));
  }

  setTools(tools: Tool[]): void {
    this.#tools.replaceChildren(...tools.map(toolButton));
    this.#markTool();
  }

  #toStage(name: string): void {
    const { session } = this;
    session.setStage(name);
    if (this.kinds.find(({ mode }) => mode === session.mode)?.count) session.setMode("graph");
  }

  mark(): HTMLElement | undefined {
    const { stage, mode } = this.session;
    const between = this.kinds.some((kind) => kind.mode === mode && kind.count);
    return markTab(this.#stages, ({ mode: own, stage: name }) =>
      own !== undefined ? own === mode : name === stage.name && !between,
    );
  }
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
    graph: GraphPane,
    save: HTMLElement,
  ) {
    const modes = kinds.filter(({ count }) => !count);
    this.#modes = tabList(
      "representation",
      modes.map(({ mode, title }) => tab(panel, `mode=${mode}`, title, "", () => session.setMode(mode))),
    );
    this.#modes.classList.add("modes");
    this.#between = tab(panel, "between", "", "", () => {});
    const tools: Tool[] = [
      { label: "zoom out (−)", text: "−", act: () => graph.zoom(0.8) },
      { label: "zoom in (+)", text: "+", act: () => graph.zoom(1.25) },
      { label: "fit the whole picture (0)", text: "fit", act: () => graph.fitAll() },
    ];
    this.#zoom = element("span.zoom", ...tools.map(toolButton));
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

  #kind = (mode: string | undefined): PaneKind | undefined => this.kinds.find((kind) => kind.mode === mode);
}

/** The sentence on top: each fact leads to what it speaks of. Nothing where nothing is known. */
export function summary(session: Session, choose: (stage: string, nodes: number[]) => void): HTMLElement {
  const root = element("p.summary");
  for (const { text, stage, nodes } of session.capture.header.summary ?? []) {
    const leads = nodes.length && session.capture.stages.some(({ name }) => name === stage);
    const fact = leads
      ? button({ title: "show what this is about" }, () => choose(stage, nodes), text)
      : element("span", text);
    if (leads) {
      fact.addEventListener("pointerenter", () => session.previewNodes(stage, nodes));
      fact.addEventListener("pointerleave", () => session.previewItem(undefined));
    }
    root.append(fact, " ");
  }
  rove(root, "button");
  return root;
}
