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
  act: () => void;
}

export class Bar {
  readonly root: HTMLElement;
  readonly search = element("input", {
    type: "search",
    placeholder: "ask or find: op:dot  bytes>1MB",
    "aria-label": "ask or find",
    spellcheck: "false",
    title: HELP,
  });
  readonly #stages: HTMLElement;
  readonly #tools = element("div.tools", { role: "toolbar", "aria-label": "tools" });
  readonly #markTool = rove(this.#tools, "button");
  readonly #more = button("more", "more tools", "⋯");

  constructor(
    private readonly session: Session,
    private readonly kinds: PaneKind[],
    panel: string,
    tools: Tool[],
    reveal: (node: number) => void,
  ) {
    const { capture } = session;
    const tabs: HTMLElement[] = [];
    for (const { name, size } of capture.stages) {
      for (const kind of kinds) if (kind.count && kind.stage === name) tabs.push(this.#between(kind, panel));
      const counted = name === "hlo" ? count(capture.stage(name).graph.kernelsIn(), "kernel") : number(size);
      tabs.push(tab(panel, { stage: name }, STAGE_TITLES[name] ?? name, counted, () => this.#toStage(name)));
    }
    this.#stages = tabList("stage", tabs);
    this.#listen(reveal);
    const { function: name, signature } = capture.header;
    this.root = element(
      "div.bar",
      element("h2.function", { title: name + signature }, element("b", name), element("small", signature)),
      this.#stages,
      element("div.ask", { role: "search", "aria-label": `in ${name}` }, this.search, element("kbd", "Ctrl K")),
      element("div.more-tools", this.#more, this.#tools),
    );
    this.setTools(tools);
    this.#listenToMore();
  }

  setTools(tools: Tool[]): void {
    this.#tools.replaceChildren(
      ...tools.map(({ label, text, act }) => {
        const made = button("tool", label, text);
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

  /** What is chosen otherwise is no longer what was searched. */
  forget(): void {
    if (document.activeElement !== this.search) this.search.value = "";
  }

  /** Enter goes from hit to hit, Escape leaves. */
  #listen(reveal: (node: number) => void): void {
    const { search, session } = this;
    let current = -1;
    search.addEventListener("input", () => {
      current = -1;
      session.search(search.value);
    });
    search.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") {
        search.value = "";
        session.search("");
        search.blur();
      }
      if (event.key !== "Enter" || !session.focus.query) return;
      const nodes = [...session.focus.nodes].sort((a, b) => a - b);
      if (!nodes.length) return;
      current = (current + (event.shiftKey ? -1 : 1) + nodes.length) % nodes.length;
      reveal(nodes[current]!);
    });
  }
}

const HELP = `words: softmax exp
in a field: op:dot  scope:attention  line:12  through:12  shape:8,*  dtype:bf16  function:block  in:body
attributes: target:getrf  attr:replica_groups  attr:dimensions={1}
whole: op == "copy"
numbers: bytes > 1MB  flops >= 2G  rank == 3  users > 4
regular expressions: /^dot/  name:/fusion/
combined: and, or, not, ( )`;
