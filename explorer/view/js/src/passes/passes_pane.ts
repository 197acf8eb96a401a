// Changes one after the other: how much each did, and what, as text and as a graph. Passes of a compiler, or the stages
// of two captures.

import { made } from "../core/buckets";
import { button, choices, dataAt, element, onKey, tool } from "../core/dom";
import type { Frame } from "../core/graph";
import { count, number, secondsText } from "../core/labels";
import type { Session } from "../core/session";
import { addSheet } from "../core/theme";
import { Layouter } from "../layout/layouter";
import { ChangeGraph } from "./graph";
import { HistoryList, linesOf } from "./history";
import type { Key, Pass, Passes } from "./passes";
import sheet from "./passes.css";
import { ChangeText } from "./text";

addSheet(sheet);

type Look = "unified" | "split" | "graph";
const LOOKS: [Look, string][] = [
  ["unified", "Text"],
  ["split", "Side by side"],
  ["graph", "Graph"],
];

/** What is shown of the changes beyond themselves. */
export interface Around {
  /** Show a line of it, where there is a pane for that. */
  goLine?(place: Frame): void;
  /** What a change is one of. */
  ran(position: number): string;
  /** What the two sides are called, where the change is no pass. */
  sides?: [string, string];
  /** The pointer is over an instruction; without one, it left. */
  over?(name?: string, place?: Frame): void;
  /** What is chosen elsewhere: instructions by name, and lines of the source. */
  chosen?(): { names: ReadonlySet<string>; lines: ReadonlySet<string> };
}

const FEW = 6; // changes whose names stand beside each other

type Step = { pass: Pass; passes: Passes };

export class ChangesPane {
  readonly root = element("div.explorer-passes.recorded");
  readonly #steps: Step[];
  #position = 0;
  #look: Look = "unified";
  #chosen: Key = -1;
  readonly #strip = new Strip((position) => this.#go(position));
  readonly #slider = element("input", { type: "range", min: 0, "aria-label": "pass" });
  readonly #title = element("div.pass-title", { "aria-live": "polite" });
  readonly #looks = element("div", { class: "switch", role: "tablist", "aria-label": "how the change is shown" });
  readonly #text = new ChangeText((key) => this.#choose(key));
  readonly #layouter = new Layouter();
  readonly #graph = new ChangeGraph(this.#layouter, (key) => this.#choose(key));
  readonly #histories = new Map<Passes, HistoryList>();
  readonly #history = element("div.history-place");
  readonly #mark = choices(this.#looks, LOOKS, (look) => this.#setLook(look), "look");
  readonly #touched = button({ class: "touched", "aria-pressed": "false" }, () => {
    this.#touched.ariaPressed = String(this.#touched.ariaPressed !== "true");
    this.refilter();
  });
  #kept: ReadonlySet<number> | undefined;

  /** The changes of several recordings, those that changed something. */
  constructor(
    recorded: Passes[],
    private readonly around: Around,
  ) {
    this.#steps = recorded.flatMap((passes) => passes.shown.map((pass) => ({ pass, passes })));
    this.#slider.addEventListener("input", () => this.#go(Number(this.#slider.value)));
    onKey(this.root, (event) => this.#key(event));
    this.#slider.max = String(Math.max(this.#steps.length - 1, 0));
    this.#strip.reset(this.#steps.map(({ pass }) => pass));
    const back = tool("◂", "the pass before (←)", () => this.#step(-1));
    const forth = tool("▸", "the next pass (→)", () => this.#step(1));
    const shown = [this.#title, element("span.stretch"), this.#looks];
    this.root.classList.toggle("few", this.#steps.length <= FEW);
    this.#text.root.addEventListener("pointerover", (event) => this.#over(event));
    this.#text.root.addEventListener("pointerleave", () => around.over?.());
    this.root.replaceChildren(
      element("div.pass-list", ...(around.chosen ? [this.#touched] : []), this.#strip.root),
      element("div.controls", back, this.#slider, forth, ...shown),
      element("div.change", this.#text.root, this.#graph.root),
      this.#history,
    );
  }

  /** Draw a change, the one chosen before if not given; at first once the pane has its size. */
  show(position = this.#position): void {
    this.#go(position);
  }

  /** Look at one instruction of a change, by their names. */
  reveal(change: string, instruction: string): void {
    const at = this.#steps.findIndex(({ pass }) => pass.name === change);
    if (at < 0) return;
    const key = this.#steps[at]!.passes.versions.c.names.indexOf(instruction);
    this.#go(at);
    this.#choose(key);
    if (this.#look !== "graph") this.#text.light(true);
  }

  /** Mark the instructions of some names, and those that come from some lines of the source. */
  hover(names: ReadonlySet<string>, lines: ReadonlySet<string>): void {
    const { c } = this.#steps[this.#position]!.passes.versions;
    const isOfLine = linesOf(c, lines);
    this.#text.hover((row) => names.has(c.names[c.key[row]!] ?? "") || isOfLine(row));
  }

  #over(event: Event): void {
    const { c } = this.#steps[this.#position]!.passes.versions;
    const row = this.#text.rowAt(event.target as Element);
    this.around.over?.(c.names[c.key[row]!], c.frames[c.own[c.frame[row]!] ?? -1]);
  }

  /** Leave out the passes that did nothing to what is chosen, here or elsewhere, where that is asked for. */
  refilter(): void {
    if (!this.around.chosen || !this.#steps.length) return;
    const { names, lines } = this.around.chosen();
    const isAny = this.#chosen >= 0 || names.size > 0 || lines.size > 0;
    const isAsked = this.#touched.ariaPressed === "true";
    this.#touched.disabled = !isAny && !isAsked;
    this.#touched.title = isAny ? "" : "select an instruction, a box or a line of the source first";
    this.#kept = undefined;
    if (isAsked && isAny) {
      const history = this.#historyOf(this.#steps[this.#position]!.passes);
      const keys = this.#chosen >= 0 ? [this.#chosen] : history.keys(names, lines);
      this.#kept = new Set(keys.flatMap((key) => history.touched(key)));
    }
    this.#strip.filter(this.#kept);
    const shown = this.#kept && this.#steps.filter((_, i) => this.#kept!.has(i)).length;
    this.#touched.textContent = shown === undefined ? "touched what I chose" : `${number(shown)} touched what I chose`;
  }

  dispose(): void {
    this.#layouter.dispose();
  }

  #step(by: number, from = this.#position): void {
    let next = from + by;
    while (this.#kept && this.#steps[next] && !this.#kept.has(next)) next += by;
    if (this.#steps[next]) this.#go(next);
  }

  #go(position: number): void {
    if (!this.#steps.length) return void (this.#title.textContent = "nothing changed");
    const before = this.#steps[this.#position]!.passes;
    this.#position = Math.min(Math.max(position, 0), this.#steps.length - 1);
    const { pass, passes } = this.#steps[this.#position]!;
    if (passes !== before) this.#chosen = -1;
    this.#slider.value = String(this.#position);
    this.#slider.setAttribute("aria-valuetext", pass.name);
    this.#strip.mark(this.#position);
    this.#title.replaceChildren(...this.#describe(pass, passes));
    this.#draw();
  }

  #describe(pass: Pass, passes: Passes): Node[] {
    const counted = (kind: string, sign: string, amount: number, word: string) =>
      amount ? [element("span", { class: kind, title: word }, `${sign}${number(amount)}`)] : [];
    const facts = [
      ...(this.around.sides ? [] : [`${number(pass.instructions)} instructions left`]),
      ...(pass.seconds === undefined ? [] : [secondsText(pass.seconds)]),
      ...(pass.moved ? ["reordered"] : []),
      this.around.ran(this.#position),
    ].filter(Boolean);
    return [
      element("b", pass.name),
      ...counted("new", "+", pass.born, "made"),
      ...counted("gone", "−", pass.died, "removed"),
      ...counted("changed", "~", pass.changed, "rewritten"),
      element("small", { title: passes.omitted }, [...facts, ...(passes.omitted ? [passes.omitted] : [])].join(" · ")),
    ];
  }

  #setLook(look: Look): void {
    this.#look = look;
    this.#draw();
  }

  #draw(): void {
    const { pass, passes } = this.#steps[this.#position]!;
    const { versions } = passes;
    this.#mark(this.#look);
    this.root.dataset.look = this.#look === "graph" ? "graph" : "text";
    this.#text.chosen = this.#graph.chosen = this.#chosen;
    if (this.#look === "graph") void this.#graph.show(versions, pass.first, pass.snapshot);
    else {
      this.#text.split = this.#look === "split";
      this.#text.show(versions, pass.first, pass.snapshot);
      this.#text.light(true);
    }
    this.#notify();
    this.refilter();
  }

  /** What happened to the chosen instruction. */
  #notify(): void {
    this.root.classList.toggle("has-history", this.#chosen >= 0);
    if (this.#chosen < 0) return;
    const { passes } = this.#steps[this.#position]!;
    const history = this.#historyOf(passes);
    history.show(this.#chosen, this.#position - this.#steps.findIndex((step) => step.passes === passes));
    this.#history.replaceChildren(history.root);
  }

  #historyOf(passes: Passes): HistoryList {
    const first = this.#steps.findIndex((step) => step.passes === passes);
    const go = (position: number, key: Key) => {
      this.#chosen = key;
      this.#go(first + position);
    };
    return made(this.#histories, passes, () => new HistoryList(passes, this.around, go));
  }

  #choose(key: Key): void {
    this.#chosen = key;
    this.refilter();
    if (this.#look === "graph") this.#draw();
    else {
      this.#text.chosen = key;
      this.#text.light(false);
      this.#notify();
    }
  }

  #key({ key, target }: KeyboardEvent): (() => void) | undefined {
    const acts: Record<string, () => void> = {
      ArrowLeft: () => this.#step(-1),
      ArrowRight: () => this.#step(1),
      Home: () => this.#step(1, -1),
      End: () => this.#step(-1, this.#steps.length),
    };
    if (target === this.#strip.root) Object.assign(acts, { ArrowUp: acts.ArrowLeft, ArrowDown: acts.ArrowRight });
    if (this.#chosen >= 0) acts.Escape = () => this.#choose(-1);
    return target === this.#slider ? undefined : acts[key];
  }
}

const LONGEST = 26; // pixels of one bar

class Strip {
  readonly root = element("div", {
    class: "pass-steps",
    role: "listbox",
    tabindex: "0",
    "aria-label": "what changed, step by step",
  });
  #cells: HTMLElement[] = [];

  constructor(private readonly choose: (position: number) => void) {
    this.root.addEventListener("click", (event) => {
      const position = dataAt(event, "position");
      if (position !== undefined) this.choose(Number(position));
    });
  }

  reset(passes: Pass[]): void {
    const most = Math.log1p(Math.max(1, ...passes.map((pass) => Math.max(pass.born, pass.died, pass.changed))));
    this.#cells = passes.map((pass, i) => cell(pass, i, most));
    const groups: HTMLElement[] = [];
    passes.forEach((pass, i) => {
      const { pipeline } = pass;
      const title = element("small", { title: pipeline }, pipeline);
      if (passes[i - 1]?.pipeline !== pipeline)
        groups.push(element("div.pipeline", { role: "group", "aria-label": pipeline }, title, element("div.cells")));
      groups[groups.length - 1]!.lastElementChild!.append(this.#cells[i]!);
    });
    this.root.replaceChildren(...groups);
  }

  /** Leave out those that are not among some; undefined for all. */
  filter(kept: ReadonlySet<number> | undefined): void {
    for (const [i, cell] of this.#cells.entries()) cell.hidden = kept !== undefined && !kept.has(i);
    for (const group of this.root.children as Iterable<Element> & HTMLCollection)
      (group as HTMLElement).hidden = !group.querySelector(".cell:not([hidden])");
  }

  mark(position: number): void {
    for (const [i, cell] of this.#cells.entries()) cell.setAttribute("aria-selected", String(i === position));
    const [cell, strip] = [this.#cells[position]?.getBoundingClientRect(), this.root.getBoundingClientRect()];
    if (!cell) return;
    // Not by scrollIntoView: it scrolls the page too, to a view that nobody looks at yet.
    this.root.scrollLeft += Math.min(cell.left - strip.left, 0) + Math.max(cell.right - strip.right, 0);
    this.root.scrollTop += Math.min(cell.top - strip.top, 0) + Math.max(cell.bottom - strip.bottom, 0);
  }
}

function cell(pass: Pass, position: number, most: number): HTMLElement {
  const bar = (kind: string, amount: number) => {
    const width = amount ? Math.max((LONGEST * Math.log1p(amount)) / most, 2) : 0;
    return element("span", { class: kind, style: `width: ${width}px` });
  };
  const about = { title: summary(pass), "aria-label": summary(pass), "aria-selected": "false" };
  return element(
    "div.cell.pick",
    { role: "option", "data-position": position, ...about },
    element("b", pass.name),
    element("div.gone-bars", ...(pass.moved ? ["↕"] : [bar("gone", pass.died)])),
    element("div.new-bars", bar("new", pass.born), bar("changed", pass.changed)),
  );
}

export function summary(pass: Pass): string {
  const parts = [
    pass.born ? `+${count(pass.born, "instruction")}` : "",
    pass.died ? `−${count(pass.died, "instruction")}` : "",
    pass.changed ? `~${pass.changed} rewritten` : "",
    pass.moved ? "reordered" : "",
  ].filter(Boolean);
  return `${pass.name}: ${parts.join(", ")}${pass.seconds === undefined ? "" : `, ${secondsText(pass.seconds)}`}`;
}

const MOST = 2000; // instructions that are followed

export class PassesPane {
  readonly root: HTMLElement;
  readonly #changes: ChangesPane;
  #nodeOf?: Map<string, number>;

  constructor(
    private readonly session: Session,
    passes: Passes,
  ) {
    const of = `${number(passes.all.length)} ${passes.isComplete ? "that ran" : "recorded"}`;
    const all = `${number(passes.shown.length)} that changed something, of ${of}`;
    this.#changes = new ChangesPane([passes], {
      goLine: (place) => session.focusLine(place.file, place.line),
      over: (name, place) => this.#over(name, place),
      chosen: () => this.#chosen(),
      ran: (position) => `${position + 1} of ${all}`,
    });
    this.root = this.#changes.root;
  }

  /** There is one timeline, whatever stage was shown before. */
  reset(): void {
    this.#changes.show();
  }

  light(): void {
    // The timeline has a choice of its own: instructions that died are in no stage.
    const pass = this.session.takePass();
    if (pass !== undefined) this.#changes.show(pass);
    else this.#changes.refilter();
  }

  hover(): void {
    const { preview, stage } = this.session;
    this.#changes.hover(new Set(Array.from(preview.nodes).slice(0, MOST).map(stage.graph.name)), preview.lines);
  }

  /** Snapshots are many: an instruction is that of the last stage while it bears its name, else its line. */
  #over(name?: string, place?: Frame): void {
    const { session } = this;
    this.#nodeOf ??= new Map(session.stage.graph.c.names.map((name, node) => [name, node]));
    const node = this.#nodeOf.get(name ?? "");
    if (node === undefined && place) session.previewLine(place.file, place.line);
    else session.previewNode(node);
  }

  #chosen() {
    const { focus, stage } = this.session;
    // A line's nodes come along with it: the line alone finds what left no node too.
    const nodes = focus.line ? [] : [...focus.nodes].slice(0, MOST);
    const names = new Set(stage.name === "hlo" ? nodes.map(stage.graph.name) : []);
    return { names, lines: names.size ? new Set<string>() : focus.lines };
  }

  dispose(): void {
    this.#changes.dispose();
  }
}
