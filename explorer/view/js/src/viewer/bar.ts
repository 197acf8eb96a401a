// Above everything: the function, its stages, the search field and the tools. It never changes its height.

import { element } from "../core/dom";
import { count, number, STAGE_TITLES } from "../core/labels";
import { rove } from "../core/roving";
import type { Session } from "../core/session";
import type { PaneKind } from "./panes";
import { button, markTab, tab, tabList } from "./tabs";

export interface Tool {
  /** What it does, with its key. */
  label: string;
  text: string;
  /** What stands behind the text where there is place. */
  words?: string;
  act: (event: Event) => void;
}

export class Bar {
  readonly root: HTMLElement;
  readonly #stages: HTMLElement;
  readonly #tools = element("div.tools", { role: "toolbar", "aria-label": "tools" });
  readonly #markTool = rove(this.#tools, "button");
  readonly #more = button("more", "more tools", "⋯");

  constructor(
    private readonly session: Session,
    private readonly kinds: PaneKind[],
    panel: string,
    /** What becomes of the stage that isn't there yet. */
    pending: string | undefined,
    ask: HTMLElement,
  ) {
    const { capture } = session;
    const tabs: HTMLElement[] = [];
    for (const { name, size } of capture.stages) {
      const beside = kinds.filter((kind) => kind.count && kind.stage === name);
      tabs.push(...beside.filter(({ isAfter }) => !isAfter).map((kind) => this.#between(kind, panel)));
      const counted = name === "hlo" ? count(capture.stage(name).graph.kernelsIn(), "kernel") : number(size);
      tabs.push(tab(panel, { stage: name }, STAGE_TITLES[name] ?? name, counted, () => this.#toStage(name)));
      tabs.push(...beside.filter(({ isAfter }) => isAfter).map((kind) => this.#between(kind, panel)));
    }
    this.#stages = tabList("stage", tabs);
    const { function: name, signature } = capture.header;
    this.root = element(
      "div.bar",
      element("h2.function", { title: name + signature }, element("b", name), element("small", signature)),
      this.#stages,
      ...(pending ? [element("span.pending", { role: "status" }, `HLO: ${pending}`)] : []),
      ask,
      element("div.more-tools", this.#more, this.#tools),
    );
    this.#listenToMore();
  }

  setTools(tools: Tool[]): void {
    this.#tools.replaceChildren(
      ...tools.map(({ label, text, words, act }) => {
        const made = button("tool", label, text);
        if (words) made.append(element("i.words", ` ${words}`));
        made.addEventListener("click", act);
        return made;
      }),
    );
    this.#markTool();
  }

  /** Where there is no place for the tools, they lie in a sheet behind one button. */
  #listenToMore(): void {
    const open = (isOpen: boolean) => {
      this.#tools.classList.toggle("open", isOpen);
      this.#more.setAttribute("aria-expanded", String(isOpen));
    };
    open(false);
    this.#more.addEventListener("click", () => {
      open(!this.#tools.classList.contains("open"));
      this.#tools.querySelector<HTMLElement>("button[tabindex='0']")?.focus();
    });
    this.#tools.addEventListener("click", () => open(false));
    const around = this.#more.parentElement!;
    around.addEventListener("focusout", ({ relatedTarget }) => {
      if (!around.contains(relatedTarget as Node | null)) open(false);
    });
    around.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.#tools.classList.contains("open")) return;
      event.stopPropagation();
      open(false);
      this.#more.focus();
    });
  }

  /** What a stage went through on its way, between the stage before it and itself. */
  #between({ mode, title, stage, count: counted }: PaneKind, panel: string): HTMLElement {
    return tab(panel, { mode }, title, counted!(this.session), () => {
      this.session.setStage(stage!);
      this.session.setMode(mode);
    });
  }

  #toStage(name: string): void {
    const { session } = this;
    session.setStage(name);
    if (this.kinds.find(({ mode }) => mode === session.mode)?.count) session.setMode("graph");
  }

  /** Mark the stage that is shown; its tab. */
  mark(): HTMLElement | undefined {
    const { stage, mode } = this.session;
    const between = this.kinds.some((kind) => kind.mode === mode && kind.count);
    return markTab(this.#stages, ({ mode: own, stage: name }) =>
      own !== undefined ? own === mode : name === stage.name && !between,
    );
  }
}
