// Two captures held against each other: the facts and kernels that differ, and each stage's change.

import { push } from "../core/buckets";
import { button, element } from "../core/dom";
import { amount, bytesText, count, secondsText } from "../core/labels";
import { addSheet, followTheme } from "../core/theme";
import { type Passes, type PassesHeader, readPasses } from "../passes/passes";
import type { ChangesPane } from "../passes/passes_pane";
import sheet from "./diff.css";

addSheet(sheet);

type Value = [name: string, a: string, b: string, ratio: number | null];
type Fusion = [name: string, holds: string, lines: string];

/** The content that explorer/files/capture_writing.py writes. */
export interface DiffHeader {
  titles: [string, string];
  headline: string;
  functions: [string, string];
  values: Value[];
  durations: Value[];
  fusions: Record<"gained" | "lost" | "changed", Fusion[]>;
  stages: PassesHeader[];
}

const LONG = 26; // letters of a value that gets a line of its own
const SHORT = 10; // letters of one that is never broken
const MOST = 300; // fusions of a kind that are listed
const KINDS = [
  ["gained", "new", "+"],
  ["lost", "gone", "−"],
  ["changed", "changed", "~"],
] as const;

export class DiffViewer {
  readonly root: HTMLElement;
  readonly #middle = element("div.middle");
  readonly #stages: Passes[];
  readonly #sides: [string, string];
  #changes?: ChangesPane;
  readonly #stop: () => void;

  constructor(
    private readonly header: DiffHeader,
    blobs: Uint8Array,
    id: string,
  ) {
    this.#stages = header.stages.map((stage) => readPasses(stage, blobs));
    const [a, b] = header.functions;
    this.#sides = a === b ? ["before", "after"] : [a, b];
    const [from, to] = header.titles;
    const title = element("h2.function", { title: `${from} → ${to}` }, element("b", `${a} → ${b}`));
    const panes = element("div.panes.diff-panes", this.#facts(), this.#middle);
    this.root = element(
      "section.explorer",
      { "data-diff": id, "aria-label": `${a} → ${b}`, "data-mode": "passes", "data-lm-suppress-shortcuts": "true" },
      element("div.bar", title, element("b.verdict", header.headline)),
      panes,
    );
    this.root.addEventListener("keydown", (event) => event.stopPropagation());
    this.#stop = followTheme(this.root);
  }

  async start(): Promise<void> {
    const { ChangesPane } = await import("../passes/passes_pane");
    this.#changes = new ChangesPane(this.#stages, { ran: () => "", sides: this.#sides });
    this.#changes.root.classList.add("shown");
    this.#middle.append(this.#changes.root);
    this.#changes.show(this.#telling());
    requestAnimationFrame(() => requestAnimationFrame(() => (this.root.dataset.ready = "true")));
  }

  /** The first stage where more than shapes differs: other operations, or equal ones that say something else. */
  #telling(): number {
    const isTelling = ({ versions, shown }: Passes) =>
      shown.some(({ first, snapshot }) => {
        const { born, died, changed } = versions.effect(first, snapshot);
        const ops = (rows: number[]) => rows.map(versions.op).sort().join();
        return (
          ops(born) !== ops(died) ||
          changed.some(([a, b]) => versions.op(a) !== versions.op(b) || versions.type(a) === versions.type(b))
        );
      });
    const steps = this.#stages.flatMap((stage) => stage.shown.map(() => stage));
    return Math.max(steps.findIndex(isTelling), 0);
  }

  dispose(): void {
    this.#stop();
    this.#changes?.dispose();
  }

  #facts(): HTMLElement {
    const { values, durations, fusions } = this.header;
    const parts: Node[] = [];
    if (values.length) parts.push(element("h3", "facts and figures"), table(values));
    for (const [kind, style, sign] of KINDS)
      if (fusions[kind].length) {
        const all = grouped(fusions[kind]).slice(0, MOST);
        parts.push(element("h3", `${count(fusions[kind].length, "fusion")} ${kind}`));
        parts.push(...all.map(([fusion, amount]) => this.#fusion(fusion, amount, style, sign)));
      }
    parts.push(element("h3", "what compiling took"), table(durations));
    return element("div.diff-facts", ...parts);
  }

  #fusion([name, holds, lines]: Fusion, amount: number, style: string, sign: string): HTMLElement {
    const more = [holds, lines].filter(Boolean).map((text) => element("small", text));
    const title = element("b", name + (amount > 1 ? `  ×${amount}` : ""));
    const reveal = () => this.#changes?.reveal("hlo", name);
    return button({ class: style }, reveal, element("i", sign), element("span", title, ...more));
  }
}

/** One of each kind with how many there are, as repeated layers make them; the most frequent first. */
function grouped(fusions: Fusion[]): [Fusion, number][] {
  const kinds = new Map<string, Fusion[]>();
  for (const fusion of fusions) push(kinds, `${fusion[1]}\n${fusion[2]}`, fusion);
  const all = [...kinds.values()].map((alike): [Fusion, number] => [alike[0]!, alike.length]);
  return all.sort((a, b) => b[1] - a[1]);
}

/** A figure with three digits and its unit, as anywhere else; the whole of it is its tip. */
function cell(name: string, text: string): HTMLElement {
  const figure = /^([\d,.]+)( s)?$/.exec(text);
  if (!figure) return element(text.length > SHORT ? "td" : "td.figure", text || "–");
  const value = Number(figure[1]!.replaceAll(",", ""));
  const unit = figure[2] ? secondsText : name.includes("bytes") ? bytesText : amount;
  return element("td.figure", { title: text }, unit(value));
}

function table(values: Value[]): HTMLElement {
  const rows = values.map(([name, a, b, ratio]) => {
    const times = ratio && Math.abs(ratio - 1) >= 0.005 ? `×${Number(ratio.toPrecision(3))}` : "";
    const long = [element("div", a || "–"), element("div", `→ ${b || "–"}`)];
    const cells =
      Math.max(a.length, b.length) > LONG
        ? [element("td.long", { colspan: 3 }, ...long)]
        : [cell(name, a), cell(name, b), element("td.figure", times)];
    return element("tr", element("th", { scope: "row" }, name), ...cells);
  });
  return element("table", ...rows);
}
