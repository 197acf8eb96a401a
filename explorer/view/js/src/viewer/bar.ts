// Above everything, the function, its stages, the search field and the tools; above the panel in the middle, the ways
// to look at the stage and the tools of its picture. Each list of tabs is one Tab stop, and the arrows choose.

import { tallied } from "../core/buckets";
import { button, element, popup, rove } from "../core/dom";
import { count, number, opText, STAGE_TITLES, secondsText, units } from "../core/labels";
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

const STEPS = { trace: "trace", lower: "lower", compile: "XLA" };

// What does nothing that an equation does: explorer/model/graph.py has the same.
const PASSIVE = /^(parameter|constant|tuple|get-tuple-element|(func\.)?return)$/;
const MOST_NAMED = 5; // operations

export class Foot {
  readonly root = element("div.explorer-foot");
  /** What is kept: filled by who keeps it. */
  readonly kept = element("span.kept", { role: "status" });

  constructor(
    private readonly session: Session,
    private readonly recorder: HTMLElement,
  ) {}

  fill(): void {
    const { header } = this.session.capture;
    const { jax, backend, target, caveat } = header.environment;
    const runs = target ? `for ${target}, which isn't here` : (backend ?? "?");
    const about = header.failure || (jax ? `jax ${jax} · ${runs}` : Object.values(header.environment).join(" · "));
    this.root.replaceChildren(
      ...this.#times(),
      this.#links(),
      ...this.#fates(),
      this.recorder,
      this.kept,
      element("span.stretch"),
      element("span", caveat ? { title: caveat } : {}, about),
    );
  }

  /** The number of equations whose end is not known; in HLO, of those that it was made of. */
  #fates(): Node[] {
    const { stage, capture } = this.session;
    const { fates, name } = stage.fates ? stage : (capture.stages[0] ?? stage);
    if (!fates) return [];
    const counts = fates.counts();
    const all = counts.reduce((sum, [, nodes]) => sum + nodes.length, 0);
    const missing = counts.find(([kind]) => kind === "unknown")?.[1].length ?? 0;
    const kinds = counts.map(([kind, nodes]) => `${number(nodes.length)} ${kind}`);
    const title = `of ${units(name, all)}, ${kinds.join(", ")}`;
    const text = `what happened to ${number(missing)} of ${units(name, all)} is not known`;
    return missing ? [element("span", { title }, text)] : [];
  }

  /** Nothing where nothing was timed: a module from a file. */
  #times(): Node[] {
    const { durations, reused = [] } = this.session.capture.header;
    // What a look into JAX's cache took is no step's cost.
    const cost = (step: string) => (reused.includes(step) ? 0 : (durations[step] ?? 0));
    const steps = Object.entries(STEPS).map(([step, name]) => [step, name, cost(step)] as const);
    const before = reused.includes("compile") ? ["compiled before"] : [];
    const total = steps.reduce((all, [, , seconds]) => all + seconds, 0);
    if (!total) return before.map((text) => element("span.times", { title: "JAX already had the program" }, text));
    const bar = element("span.time", { "aria-hidden": "true" });
    for (const [step, , seconds] of steps)
      bar.append(
        element("span", { style: `background: var(--${step}); width: ${Math.max((seconds / total) * 100, 1.5)}%` }),
      );
    // A step that took no time has not ended.
    const times = steps
      .filter(([, , seconds]) => seconds)
      .map(([, name, seconds]) => `${name} ${secondsText(seconds)}`);
    return [element("span.times", { title: "duration of the compile" }, bar, [...times, ...before].join(" · "))];
  }

  /** The part that is linked to equations of what carries an op_name, or else how much has a source line. */
  #links(): Node {
    const { coverage, sets, grades } = this.session.stage;
    const note = this.session.capture.header.recording_note;
    const why = note ? ` · ${note}` : "";
    // Rounded down: 100% is all.
    const percent = (share: number) => Math.floor(share * 100 + 1e-6);
    const lines = `${percent(coverage)}%`;
    const [exact, inferred] = [percent(grades?.exact ?? 0), percent(grades?.inferred ?? 0)];
    if (!sets || !(exact || inferred)) return element("span", `source lines: ${lines}${why}`);
    const title = [
      "of the instructions that carry an op_name",
      ...this.#unnamed(),
      ...(inferred ? ["inferred from names and places"] : []),
      `${lines} of all have a source line`,
    ].join("; ");
    const parts = [exact ? `exact ${exact}%` : "", inferred ? `inferred ${inferred}%` : ""].filter(Boolean);
    return element("span", { title }, "source mapping ", element("b", parts.join(" · ")), why);
  }

  /** The operations without an op_name, the most frequent first. */
  #unnamed(): string[] {
    const { graph } = this.session.stage;
    const nodes = Array.from(graph.order.keys()).filter((node) => !graph.scope(node));
    const unnamed = nodes.map((node) => opText(graph.op(node))).filter((op) => !PASSIVE.test(op));
    const ops = tallied(unnamed)
      .slice(0, MOST_NAMED)
      .map(([op, amount]) => `${op} ×${number(amount)}`)
      .join(", ");
    return ops ? [`those without one are the compiler's own: ${ops}`] : [];
  }
}
