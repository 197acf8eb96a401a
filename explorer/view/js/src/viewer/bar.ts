// Above the panes: the function, its stages, the ways to look at one, the search field and the tools.

import { element } from "../core/dom";
import { count, number, STAGE_TITLES } from "../core/labels";
import type { Session } from "../core/session";
import type { PaneKind } from "./panes";

export interface Tool {
  label: string;
  sign: string;
  act: () => void;
}

export class Bar {
  readonly root: HTMLElement;
  readonly search = element("input", {
    type: "search",
    placeholder: "find  op:dot  bytes>1MB",
    "aria-label": "find",
    spellcheck: "false",
    title: HELP,
  });
  readonly #stages = element("div.switch", { role: "tablist", "aria-label": "stage" });
  readonly #modes = element("div.switch.modes", { role: "tablist", "aria-label": "representation" });

  constructor(
    private readonly session: Session,
    private readonly kinds: PaneKind[],
    tools: Tool[],
    reveal: (node: number) => void,
  ) {
    const { capture } = session;
    for (const { name, size } of capture.stages) {
      for (const kind of kinds) if (kind.count && kind.stage === name) this.#stages.append(this.#between(kind));
      const counted = name === "hlo" ? count(capture.stage(name).graph.kernelsIn(), "kernel") : number(size);
      this.#stages.append(this.#tab({ stage: name }, STAGE_TITLES[name] ?? name, counted, () => this.#toStage(name)));
    }
    for (const { mode, title, count: isStage } of kinds)
      if (!isStage) this.#modes.append(this.#tab({ mode }, title, "", () => session.setMode(mode)));
    this.#listen(reveal);
    const { function: name, signature } = capture.header;
    this.root = element(
      "div.bar",
      element("span.function", { title: name + signature }, element("b", name), element("small", signature)),
      this.#stages,
      this.#modes,
      this.search,
      ...tools.map(({ label, sign, act }) => {
        const button = element("button", { type: "button", class: "tool", title: label, "aria-label": label }, sign);
        button.addEventListener("click", act);
        return button;
      }),
    );
  }

  /** What a stage went through on its way, between the stage before it and itself. */
  #between({ mode, title, stage, count: counted }: PaneKind): HTMLElement {
    return this.#tab({ mode }, title, counted!(this.session), () => {
      this.session.setStage(stage!);
      this.session.setMode(mode);
    });
  }

  #toStage(name: string): void {
    const { session } = this;
    session.setStage(name);
    if (this.kinds.find(({ mode }) => mode === session.mode)?.count) session.setMode("graph");
  }

  /** Mark the stage and the mode that are shown; a mode that the stage doesn't have goes. */
  mark(): void {
    const { stage, mode } = this.session;
    const between = this.kinds.some((kind) => kind.mode === mode && kind.count);
    for (const button of this.#stages.querySelectorAll("button")) {
      const { mode: own, stage: name } = button.dataset;
      button.setAttribute("aria-selected", String(own !== undefined ? own === mode : name === stage.name && !between));
    }
    for (const button of this.#modes.querySelectorAll("button")) {
      const kind = this.kinds.find((kind) => kind.mode === button.dataset.mode);
      button.hidden = kind?.stage !== undefined && kind.stage !== stage.name;
      button.setAttribute("aria-selected", String(button.dataset.mode === mode));
    }
  }

  /** What is chosen otherwise is no longer what was searched. */
  forget(): void {
    if (document.activeElement !== this.search) this.search.value = "";
  }

  #tab(data: Record<string, string>, title: string, counted: string, choose: () => void): HTMLElement {
    const button = element(
      "button",
      { type: "button", role: "tab" },
      title,
      ...(counted ? [element("i", counted)] : []),
    );
    Object.assign(button.dataset, data);
    button.addEventListener("click", choose);
    return button;
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
