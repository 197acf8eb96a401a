// The panes around one session.

import { DetailsPane } from "./details_pane";
import { element } from "./dom";
import { GraphPane } from "./graph_pane";
import { STAGE_TITLES, count, number, secondsText } from "./labels";
import { type Model, tellSelection } from "./live";
import type { Capture } from "./model";
import { type Mode, Session } from "./session";
import { SourcePane } from "./source_pane";
import { TablePane, TextPane } from "./text_pane";
import { followTheme } from "./theme";

const MODES: [Mode, string][] = [
  ["graph", "Graph"],
  ["text", "Text"],
  ["table", "Table"],
];

const LOWEST = 330; // pixels of the panes: the details need them

export interface Options {
  id: string;
  stage?: string;
  /** The widget that shows it, if one does; else the wire registered under `id`. */
  model?: Model;
}

export class Viewer {
  readonly root: HTMLElement;
  private readonly session: Session;
  private readonly source: SourcePane;
  private readonly graph: GraphPane;
  private readonly text: TextPane;
  private readonly table: TablePane;
  private readonly details: DetailsPane;
  private readonly stages = element("div", { class: "switch", role: "tablist", "aria-label": "stage" });
  private readonly modes = element("div", { class: "switch modes", role: "tablist", "aria-label": "representation" });
  private readonly panes = element("div", { class: "panes" });
  private readonly foot = element("div", { class: "explorer-foot" });
  private readonly search = element("input", { type: "search", placeholder: "find  op:dot  line:12", "aria-label": "find", spellcheck: "false" });
  private readonly stop: () => void;
  private stale: Record<Mode, boolean> = { graph: true, text: true, table: true };

  constructor(
    private readonly capture: Capture,
    private readonly options: Options,
  ) {
    const session = (this.session = new Session(capture, options.stage));
    this.graph = new GraphPane(session);
    this.source = new SourcePane(session);
    this.text = new TextPane(session);
    this.table = new TablePane(session);
    this.details = new DetailsPane(session, (node) => this.reveal(node));
    const middle = element("div", { class: "middle" }, this.graph.root, this.text.root, this.table.root);
    this.panes.append(this.source.root, middle, this.details.root);
    // Lab's own shortcuts must not take the keys typed here.
    this.root = element(
      "div",
      { class: "explorer", "data-capture": options.id, "data-lm-suppress-shortcuts": "true" },
      this.bar(),
      this.panes,
      this.foot,
    );
    this.stop = followTheme(this.root);
    this.root.addEventListener("keydown", (event) => this.key(event));
    session.listen((change) => {
      if (change === "preview") {
        this.source.light();
        if (session.mode === "graph") this.graph.light();
        return;
      }
      if (change === "stage") void this.showStage();
      else if (change === "mode") void this.showMode().then(() => this.follow());
      else this.showFocus();
    });
  }

  /** Draw everything once; resolves when the graph is on the screen. */
  async start(): Promise<void> {
    await this.showStage();
    this.shrink();
    this.source.toFunction();
    requestAnimationFrame(() => requestAnimationFrame(() => (this.root.dataset["ready"] = "true")));
  }

  /** A small program needs no tall panes. They can be pulled to any height afterwards. */
  private shrink(): void {
    const source = this.source.root.lastElementChild;
    const lines = source instanceof HTMLElement ? source.offsetTop + source.offsetHeight + 8 : 0;
    const needed = Math.max(lines, this.graph.height + 24, LOWEST);
    if (needed >= this.panes.clientHeight) return;
    this.panes.style.height = `${needed}px`;
    this.graph.refit();
  }

  dispose(): void {
    this.stop();
    this.graph.dispose();
  }

  private bar(): HTMLElement {
    const { capture, session } = this;
    for (const stage of capture.stages) {
      const button = element("button", { type: "button", role: "tab", "data-stage": stage.name }, STAGE_TITLES[stage.name] ?? stage.name, element("i", {}, this.stageCount(stage.name)));
      button.addEventListener("click", () => session.setStage(stage.name));
      this.stages.append(button);
    }
    for (const [mode, name] of MODES) {
      const button = element("button", { type: "button", role: "tab", "data-mode": mode }, name);
      button.addEventListener("click", () => session.setMode(mode));
      this.modes.append(button);
    }
    let found = -1;
    this.search.addEventListener("input", () => {
      found = -1;
      session.search(this.search.value);
    });
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !session.focus.query) return;
      const nodes = [...session.focus.nodes].sort((a, b) => a - b);
      if (!nodes.length) return;
      found = (found + (event.shiftKey ? -1 : 1) + nodes.length) % nodes.length;
      this.reveal(nodes[found]!);
    });
    const tool = (label: string, sign: string, act: () => void) => {
      const button = element("button", { type: "button", class: "tool", title: label, "aria-label": label }, sign);
      button.addEventListener("click", act);
      return button;
    };
    const { function: name, signature } = capture.header;
    return element(
      "div",
      { class: "bar" },
      element("span", { class: "function", title: name + signature }, element("b", {}, name), element("small", {}, signature)),
      this.stages,
      this.modes,
      element("span", { class: "stretch" }),
      this.search,
      tool("zoom in (+)", "+", () => this.graph.zoom(1.25)),
      tool("zoom out (−)", "−", () => this.graph.zoom(0.8)),
      tool("fit (0)", "⤢", () => this.graph.fitAll()),
    );
  }

  private stageCount(name: string): string {
    const stage = this.capture.stage(name);
    if (name !== "hlo") return number(stage.size);
    return count(stage.graph.kernelsIn(), "kernel");
  }

  private async showStage(): Promise<void> {
    const { session } = this;
    this.root.dataset["stage"] = session.stage.name;
    for (const button of this.stages.querySelectorAll("button")) button.setAttribute("aria-selected", String(button.dataset["stage"] === session.stage.name));
    this.stale = { graph: true, text: true, table: true };
    this.source.fill();
    this.fillFoot();
    await this.showMode();
    this.showFocus();
    if (session.focus.nodes.size) this.follow();
  }

  private async showMode(): Promise<void> {
    const { mode } = this.session;
    this.root.dataset["mode"] = mode;
    for (const button of this.modes.querySelectorAll("button")) button.setAttribute("aria-selected", String(button.dataset["mode"] === mode));
    if (this.stale[mode]) {
      this.stale[mode] = false;
      if (mode === "graph") await this.graph.reset();
      else this[mode].reset();
    }
    this.lightMode();
  }

  private lightMode(): void {
    this[this.session.mode].light();
  }

  private showFocus(): void {
    const { session } = this;
    this.lightMode();
    this.source.light();
    this.details.fill();
    if (session.focus.item !== undefined) this.source.scroll();
    if (session.mode === "text") this.text.scroll();
    if (!session.focus.query && document.activeElement !== this.search) this.search.value = "";
    tellSelection(this.options.id, this.options.model, session.stage.name, session.focus.nodes);
  }

  /** Bring what is in focus into sight. */
  private follow(): void {
    const { focus, mode } = this.session;
    const first = focus.item !== undefined && focus.item >= 0 ? focus.item : focus.nodes.values().next().value;
    if (first === undefined) return;
    if (mode === "graph") {
      if (focus.item !== undefined) void this.graph.reveal(first);
    } else if (mode === "text") this.text.scroll();
  }

  private reveal(node: number): void {
    if (this.session.mode === "graph") void this.graph.reveal(node).then(() => this.graph.light());
    else if (this.session.mode === "text") this.text.scroll();
  }

  private fillFoot(): void {
    const { header } = this.capture;
    const { stage } = this.session;
    const steps = ["trace", "lower", "compile"].map((step) => [step, header.durations[step] ?? 0] as const);
    const total = steps.reduce((all, [, seconds]) => all + seconds, 0) || 1;
    const bar = element("span", { class: "time", role: "img", "aria-label": steps.map(([step, s]) => `${step} ${secondsText(s)}`).join(", ") });
    for (const [step, seconds] of steps) {
      const share = seconds / total;
      const label = step === "compile" ? "XLA" : step;
      const part = element("span", { class: step, title: `${step} ${secondsText(seconds)}` }, share > 0.3 ? `${label} ${secondsText(seconds)}` : share > 0.12 ? label : "");
      part.style.width = `${Math.max(share * 100, 1.5)}%`;
      bar.append(part);
    }
    const { graph } = stage;
    let known = 0;
    for (let node = 0; node < graph.size; node++) if (graph.c.frame[node]! >= 0) known++;
    const percent = (share: number) => `${Math.floor(share * 100)}%`;
    const linked = element(
      "span",
      { title: "nodes whose line the compiler kept, and those placed by what they belong to: parameters, constants, layout plumbing" },
      `linked ${percent(stage.coverage)} · ${percent(graph.size ? known / graph.size : 0)} told by the compiler, the rest by structure`,
    );
    const { jax, backend } = header.environment;
    this.foot.replaceChildren(bar, linked, element("span", { class: "stretch" }), element("span", {}, header.failure || `jax ${jax ?? "?"} · ${backend ?? "?"}`));
  }

  private key(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.target === this.search) {
      if (event.key === "Escape") {
        this.search.value = "";
        this.session.search("");
        this.search.blur();
      }
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      this.search.focus();
    } else if (event.key === "Escape") this.session.focusItem(undefined);
  }
}
