// The flame graph, its root on top: each box is as wide as the time of what is inside it. A click shows one box alone.

import { button, choices, dataAt, element, hasFocus, onKey, onParts } from "../core/dom";
import { secondsText } from "../core/labels";
import { type Box, type By, type Chosen, type Data, nothing } from "./data";
import { box, heated, part, shareText } from "./format";

const TITLES: Record<By, string> = { stack: "call stack", scope: "scope" };
const LEAST = 1.5; // pixels: what is narrower is not drawn
const ROW = 21;
const KINDS: Record<string, string> = {
  root: "the whole call",
  module: "executable",
  scope: "named scope",
  frame: "line",
  package: "library",
  none: "",
  kernel: "kernel",
  more: "small ones together",
};

export class FlamePane {
  readonly root = box("flame");
  readonly #all = button({ class: "pf-link pf-whole" }, () => this.#zoom(this.#whole), "show all");
  readonly #mark: (by: By) => void;
  readonly #summary = element("p.pf-summary");
  readonly #canvas = element("div", {
    class: "pf-boxes",
    role: "tree",
    "aria-label": "flame graph: arrows move, Enter shows a box alone, Escape shows all",
  });
  #by: By;
  private zoomed!: Box;
  #shown = new Map<Box, HTMLElement>();
  #width = 0;

  constructor(
    private readonly data: Data,
    private readonly choose: (box: Box) => void,
    private readonly preview: (box?: Box) => void,
  ) {
    this.#by = data.flames.has("stack") ? "stack" : "scope";
    const kinds = Array.from(data.flames.keys(), (by) => [by, `by ${TITLES[by]}`] as const);
    const tabs = element("div.pf-switch");
    this.#mark = choices(tabs, kinds, (by) => this.#turn(by), "by");
    const about = { role: "group", "aria-label": "flame graph" };
    const shown = [
      element("b", "flame graph"),
      this.#all,
      element("span.stretch"),
      ...(kinds.length > 1 ? [tabs] : []),
    ];
    this.root.append(element("div.pf-tools", about, ...shown), this.#canvas, this.#summary);
    this.#listen();
    this.#turn(this.#by);
    new ResizeObserver(() => {
      if (Math.abs(this.#canvas.clientWidth - this.#width) > 1) this.#draw();
    }).observe(this.#canvas);
  }

  get #boxes(): Box[] {
    return this.data.flames.get(this.#by) ?? [];
  }

  get #whole(): Box {
    return this.#boxes[0]!;
  }

  #turn(by: By): void {
    this.#by = by;
    this.#mark(by);
    this.zoomed = this.#whole;
    this.#draw();
    this.#summarize();
  }

  #zoom(to: Box): void {
    this.zoomed = to;
    const had = hasFocus(this.#canvas);
    this.#draw();
    if (had) this.#focus(to);
  }

  #draw(): void {
    this.#width = this.#canvas.clientWidth || 600;
    this.#shown.clear();
    const { zoomed } = this;
    this.#all.hidden = zoomed === this.#whole;
    const scale = zoomed.seconds > 0 ? 1 / zoomed.seconds : 0;
    const made: HTMLElement[] = [];
    let deepest = 0;
    for (const entry of this.#around(zoomed)) {
      const left = Math.max((entry.left - zoomed.left) * scale, 0);
      const right = Math.min((entry.left + entry.seconds - zoomed.left) * scale, 1);
      if ((right - left) * this.#width < LEAST) continue;
      deepest = Math.max(deepest, entry.depth);
      made.push(this.#box(entry, left, right - left));
    }
    this.#canvas.style.height = `${(deepest + 1) * ROW}px`;
    this.#canvas.replaceChildren(...made);
    const first = this.#shown.get(zoomed);
    if (first) first.tabIndex = 0;
    this.light(this.#chosen, this.#previewed);
  }

  /** What a box is in, itself, and all inside it. */
  #around(zoomed: Box): Box[] {
    const boxes: Box[] = [];
    for (let at = zoomed.parent; at; at = at.parent) boxes.unshift(at);
    const waiting = [zoomed];
    for (let at = waiting.pop(); at; at = waiting.pop()) {
      boxes.push(at);
      for (let i = at.inside.length - 1; i >= 0; i--) waiting.push(at.inside[i]!);
    }
    return boxes;
  }

  #box(entry: Box, left: number, width: number): HTMLElement {
    const share = this.data.share(entry.seconds);
    const isOuter = entry.depth < this.zoomed.depth;
    const kind = entry.kind === "kernel" ? "pf-kernel" : entry.kind === "more" ? "pf-more" : "pf-frame";
    const heat = entry.kind === "kernel" ? heated(this.data.heat("kernel", entry.seconds)) : "";
    const [from, wide] = [left, width].map((part) => (100 * part).toFixed(4));
    const place = `left:${from}%;width:calc(${wide}% - 1px);top:${entry.depth * ROW}px;${heat}`;
    const parts = [KINDS[entry.kind], entry.name, secondsText(entry.seconds), shareText(share)];
    const made = element("div", {
      class: `pf-box ${kind}${isOuter ? " outer" : ""}`,
      ...{ style: place, tabindex: -1, "data-box": entry.index, role: "treeitem", "aria-selected": "false" },
      ...{ "aria-label": parts.filter(Boolean).join(", "), "aria-level": entry.depth + 1 },
    });
    if (entry.inside.length) made.setAttribute("aria-expanded", "true");
    if (width * this.#width > 24) made.append(this.#short(entry));
    this.#shown.set(entry, made);
    return made;
  }

  /** `attention:24`, where the file is given. */
  #short = ({ name, kind }: Box): string =>
    kind === "frame" && this.data.files.length <= 1 ? name.replace(/ \(.*:(\d+)\)$/, ":$1") : name;

  // What is chosen ----------------------------------------------------------------------------------------------------

  #chosen = nothing();
  #previewed = nothing();

  light(chosen: Chosen, preview: Chosen): void {
    [this.#chosen, this.#previewed] = [chosen, preview];
    this.#canvas.classList.toggle("some", chosen.kernels.size > 0 || chosen.lines.size > 0);
    const has = (of: Chosen, entry: Box) =>
      entry.kernel
        ? of.kernels.has(entry.kernel) && (!of.line || !entry.at || entry.at === of.line)
        : of.line !== undefined && entry.line === of.line;
    for (const [entry, node] of this.#shown) {
      node.classList.toggle("lit", has(chosen, entry) || chosen.box === entry);
      node.classList.toggle("over", has(preview, entry));
      node.setAttribute("aria-selected", String(chosen.box === entry));
    }
  }

  /** One line on what the mouse or the keyboard is at. */
  #summarize(entry?: Box): void {
    const at = entry ?? this.#chosen.box ?? this.zoomed;
    const path: string[] = [];
    for (let up = at.parent; up?.parent; up = up.parent) path.unshift(up.name);
    this.#summary.replaceChildren(
      element("b", at.name),
      ` ${secondsText(at.seconds)}, ${shareText(this.data.share(at.seconds))} of the device's time`,
      ...(path.length ? [part("mute", ` in ${path.join(" › ")}`)] : []),
    );
  }

  // Mouse and keyboard ------------------------------------------------------------------------------------------------

  #at = (event: Event): Box | undefined => this.#boxes[Number(dataAt(event, "box") ?? -1)];

  #take(entry: Box): void {
    this.choose(entry);
    if (entry.inside.length) this.#zoom(entry === this.zoomed && entry.parent ? entry.parent : entry);
    this.#summarize(entry);
  }

  #listen(): void {
    const preview = (entry?: Box) => {
      this.preview(entry);
      this.#summarize(entry);
    };
    onParts(this.#canvas, this.#at, (entry) => this.#take(entry), preview);
    this.#canvas.addEventListener("focusin", (event) => this.#summarize(this.#at(event)));
    onKey(this.#canvas, (event) => this.#key(event));
  }

  #key(event: KeyboardEvent): (() => void) | undefined {
    const entry = this.#at(event);
    if (!entry) return undefined;
    const go = (next: Box | undefined) => () => next && this.#focus(next);
    const beside = (step: number) => {
      const all = (entry.parent?.inside ?? []).filter((other) => this.#shown.has(other));
      return go(all[all.indexOf(entry) + step]);
    };
    const moves: Record<string, () => void> = {
      ArrowDown: go(entry.inside.find((inner) => this.#shown.has(inner))),
      ArrowUp: go(entry.parent),
      ArrowLeft: beside(-1),
      ArrowRight: beside(1),
      Home: go(this.#whole),
      Enter: () => this.#take(entry),
      " ": () => this.#take(entry),
      Escape: () => {
        this.#zoom(this.#whole);
        this.#focus(entry);
      },
    };
    return moves[event.key];
  }

  #focus(entry: Box): void {
    const node = this.#shown.get(entry);
    if (!node) return;
    for (const other of this.#shown.values()) other.tabIndex = -1;
    node.tabIndex = 0;
    node.focus({ preventScroll: true });
  }
}
