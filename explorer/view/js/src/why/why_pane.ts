// Why an equation left no instruction: which pass took it away, with the line before and after; and the other way
// round, what each pass did to the user's lines.

import { push } from "../core/buckets";
import type { Stage } from "../core/capture";
import { button, choices, dataAt, element, onKey, onParts } from "../core/dom";
import { number, opText, units } from "../core/labels";
import { type Fates, lineKey, NO_PASS, type SourceLine } from "../core/links";
import type { Session } from "../core/session";
import { addSheet } from "../core/theme";
import sheet from "./why.css";

addSheet(sheet);

const MOST = 2000; // rows
const TABS: [isByPass: boolean, title: string][] = [
  [false, "By line"],
  [true, "By pass"],
];

export class WhyPane {
  readonly root: HTMLElement;
  #endings: Endings;
  #isByPass = false;
  #chosen = -1;
  readonly #rows = new Map<number, HTMLElement>();
  readonly #switch = element("div.switch", { role: "tablist", "aria-label": "question" });
  readonly #mark = choices(this.#switch, TABS, (byPass) => this.#show(byPass));
  readonly #sentence = element("p");
  readonly #list = element("div.why-list");
  readonly #answer = element("div.why-answer", { role: "region", "aria-label": "the answer", "aria-live": "polite" });

  constructor(private readonly session: Session) {
    this.#endings = new Endings(session);
    const head = element("div.why-head", this.#switch, this.#sentence);
    this.root = element("div.explorer-why", head, element("div.why-body", this.#list, this.#answer));
    onKey(this.#list, (event) => this.#key(event));
    onParts(
      this.#list,
      (event) => dataAt(event, "at"),
      (at) => this.#pick(Number(at)),
      (at) => session.previewNodes(this.#endings.stage.name, at === undefined ? [] : [Number(at)]),
    );
  }

  reset(): void {
    this.#endings = new Endings(this.session);
    this.#show(this.#isByPass);
  }

  light(): void {
    const { chosenNode, focus, stage } = this.session;
    const { all, stage: own } = this.#endings;
    const asked =
      chosenNode === undefined
        ? focus.line && all.find(({ place }) => place?.line === focus.line!.line && place.file === focus.line!.file)
        : stage === own && all.find(({ node }) => node === chosenNode);
    if (asked && asked.node !== this.#chosen) this.#answerTo(asked.node);
  }

  hover(): void {
    const { nodes, lines } = this.session.preview;
    const isSame = this.#endings.stage === this.session.stage;
    for (const { node, place } of this.#endings.all) {
      const isOver = (isSame && nodes.has(node)) || (place !== undefined && lines.has(lineKey(place.file, place.line)));
      this.#rows.get(node)?.classList.toggle("over", isOver);
    }
  }

  scroll(): void {
    this.#rows.get(this.#chosen)?.scrollIntoView({ block: "nearest" });
  }

  #show(byPass: boolean): void {
    this.#isByPass = byPass;
    this.#mark(byPass);
    const { all, stage, fates } = this.#endings;
    const total = fates?.counts().reduce((sum, [, nodes]) => sum + nodes.length, 0) ?? 0;
    const kinds = all.length ? `: ${counted(all)}` : "";
    this.#sentence.textContent = fates
      ? `${number(all.length)} of ${units(stage.name, total)} left no instruction of their own${kinds}.` +
        (this.session.capture.passes ? "" : " This capture does not say which passes did it.")
      : "What happened to the equations is unknown: this capture has no optimized program.";
    this.#rows.clear();
    const titles = ["equation", "what happened", byPass ? "line" : "by"];
    const rows = this.#endings.groups(byPass).flatMap((group) => [this.#head(group), ...group.map(this.#row)]);
    const head = element("thead", element("tr", ...titles.map((title) => element("th", { scope: "col" }, title))));
    const about = { "aria-label": "the equations without an instruction of their own" };
    const more = rows.length > MOST ? `and ${number(rows.length - MOST)} more` : "";
    this.#list.replaceChildren(element("table", about, head, element("tbody", ...rows.slice(0, MOST))), more);
    this.#answerTo(this.#rows.has(this.#chosen) ? this.#chosen : ([...this.#rows.keys()][0] ?? -1));
    this.light();
    this.scroll();
  }

  /** Of a group of rows: the line of the source, or the pass with what it did. */
  #head = (group: Ending[]): HTMLElement => {
    const [{ place, step }] = group as [Ending];
    const { lines } = this.session;
    const parts = this.#isByPass
      ? [element("b", this.#by(step)), ` ${counted(group)}`]
      : [element("i", { class: `k${lines.colour(place)}` }), ...this.#line(place)];
    return element("tr", element("th", { colspan: 3, scope: "rowgroup" }, ...parts));
  };

  #row = ({ node, kind, step, place }: Ending): HTMLElement => {
    const { graph } = this.#endings.stage;
    const row = element(
      "tr.pick",
      { "data-at": node, tabindex: -1 },
      element("td", opText(graph.op(node)), " ", element("code", graph.name(node))),
      element("td", kind),
      element("td", ...(this.#isByPass ? this.#line(place) : [this.#by(step)])),
    );
    this.#rows.set(node, row);
    return row;
  };

  #by = (step: number): string => this.#endings.fates!.stepText(step) || "not known";

  #line(place: SourceLine | undefined): Node[] {
    const source = this.session.lines.sources.find(({ file }) => file === place?.file);
    const text = source?.text.split("\n")[place!.line - 1]?.trim() ?? "";
    return [element("em", place ? String(place.line) : "no line"), element("code", text)];
  }

  #answerTo(at: number): void {
    this.#chosen = at;
    for (const [key, row] of this.#rows) {
      row.setAttribute("aria-selected", String(key === at));
      row.tabIndex = key === at ? 0 : -1;
    }
    this.#answer.replaceChildren(...(this.#rows.has(at) ? this.#describe(at) : []));
    this.#answer.scrollTop = 0;
  }

  #describe(at: number): Node[] {
    const { session } = this;
    const { stage } = this.#endings;
    const fates = this.#endings.fates!;
    const [step, kind, before] = [fates.step(at), fates.kind(at), fates.before(at)];
    const by = fates.stepText(step);
    const own = (stage.lines[stage.graph.c.line[at]!] ?? "").replace(/ loc\(.*$/, "").trim();
    const link = (text: string, act: () => void) => button({}, act, text);
    const found = kind === "unknown" ? "perhaps" : "now";
    const kernels = fates.kernels(at).slice(0, 3);
    const links = kernels.map((of) =>
      link(`${found} in ${session.capture.stage("hlo").graph.name(of)}`, () => this.#choose("hlo", of)),
    );
    if (step > 0 && session.capture.passes) links.push(link(`open ${by}`, () => session.showPass(step - 1)));
    if (by) links.push(link("what else it did to your lines", () => this.#show(true)));
    return [
      element("h3", `${kind}${by && ` by ${by}`}${fates.isInferred(at) ? " (inferred)" : ""}`),
      element("p.formula", fates.why(at)),
      ...change("the equation", own),
      ...change("before", before, "gone"),
      ...change("after", before && (fates.after(at) || "nothing replaced it"), "new"),
      element("div.links", ...links),
    ];
  }

  #choose(stage: string, node: number): void {
    this.session.setStage(stage);
    this.session.focusNode(node);
  }

  #pick(at: number): void {
    this.#answerTo(at);
    this.#choose(this.#endings.stage.name, at);
    this.#rows.get(at)?.focus({ preventScroll: true });
    this.scroll();
  }

  #key(event: KeyboardEvent): (() => void) | undefined {
    const keys = [...this.#rows.keys()];
    const at = keys.indexOf(this.#chosen);
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: keys.length - 1 };
    const to = keys[steps[event.key] ?? -1];
    return to === undefined ? undefined : () => this.#pick(to);
  }
}

const change = (title: string, line: string, kind = ""): Node[] =>
  line ? [element("div", { class: `change-line ${kind}` }, element("em", title), element("code", line))] : [];

/** The fates of which one asks "why": other equations run, or are the calls around them. */
const KINDS = ["eliminated", "merged", "folded", "folded into", "moved", "rewritten", "split", "unknown"];

interface Ending {
  node: number;
  kind: string;
  /** Of the pass; what isn't known comes after all passes. */
  step: number;
  place: SourceLine | undefined;
}

/** Those of the stage that is shown, else of the first one that has fates. */
class Endings {
  readonly stage: Stage;
  readonly fates: Fates | undefined;
  readonly all: Ending[] = [];

  constructor({ capture, stage, lines }: Session) {
    this.stage = stage.fates ? stage : capture.stages[0]!;
    const { fates, graph } = this.stage;
    this.fates = fates;
    for (let node = 0; fates && node < graph.size; node++) {
      const kind = fates.kind(node);
      const step = fates.step(node);
      if (KINDS.includes(kind))
        this.all.push({ node, kind, step: step === NO_PASS ? 1e9 : step, place: lines.place(graph, node) });
    }
    const order = new Map(lines.sources.map(({ file }, i) => [file, i]));
    const at = ({ place }: Ending) => (place ? (order.get(place.file) ?? 1e4) * 1e6 + place.line : 1e12);
    // In the order of the source, then of the program; what has no line comes last.
    this.all.sort((a, b) => at(a) - at(b) || a.node - b.node);
  }

  /** By line of the source, or by pass in the order in which they ran. */
  groups(byPass: boolean): Ending[][] {
    const groups = new Map<string, Ending[]>();
    const all = byPass ? [...this.all].sort((a, b) => a.step - b.step) : this.all;
    for (const ending of all) {
      const key = byPass ? String(ending.step) : `${ending.place?.line} ${ending.place?.file}`;
      push(groups, key, ending);
    }
    return [...groups.values()];
  }
}

/** `9 eliminated, 2 rewritten`. */
const counted = (endings: Ending[]): string =>
  KINDS.map((kind): [string, number] => [kind, endings.filter((ending) => ending.kind === kind).length])
    .filter(([, n]) => n)
    .map(([kind, n]) => `${number(n)} ${kind}`)
    .join(", ");
