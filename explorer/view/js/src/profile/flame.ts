// The flame graph, its root on top: each box is as wide as the time of what is inside it. A click shows one box alone.

import { element } from "../core/dom";
import { button } from "../core/parts";
import { secondsText } from "../core/units";
import type { Box, By, Chosen, Data } from "./data";
import { box, part, shareText, strength } from "./format";

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
  readonly #tools = element("div.pf-tools", { role: "group", "aria-label": "flame graph" });
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
    const kinds = [...data.flames.keys()];
    const tabs = element(
      "div.pf-switch",
      ...kinds.map((by) =>
        button({ "data-by": by, "aria-pressed": "false" }, () => this.#turn(by), `by ${TITLES[by]}`),
      ),
    );
    this.#tools.append(
      element("b", "flame graph"),
      button({ class: "pf-link pf-whole" }, () => this.#zoom(this.#whole), "show all"),
      element("span.stretch"),
      ...(kinds.length > 1 ? [tabs] : []),
    );
    this.root.append(this.#tools, this.#canvas, this.#summary);
    this.#listen();
    this.#turn(this.#by);
    new ResizeObserver(() => {
      if (Math.abs(this.#canvas.clientWidth - this.#width) > 1) this.#draw();
    }).observe(this.#canvas);
  }

  get #all(): Box[] {
    return this.data.flames.get(this.#by) ?? [];
  }

  get #whole(): Box {
    return this.#all[0]!;
  }

  #turn(by: By): void {
    this.#by = by;
    for (const tab of this.#tools.querySelectorAll<HTMLElement>("[data-by]"))
      tab.setAttribute("aria-pressed", String(tab.dataset.by === by));
    this.zoomed = this.#whole;
    this.#draw();
    this.#summarize();
  }

  #zoom(to: Box): void {
    this.zoomed = to;
    const had = this.#canvas.contains((this.root.getRootNode() as Document).activeElement);
    this.#draw();
    if (had) this.#focus(to);
  }

  #draw(): void {
    this.#width = this.#canvas.clientWidth || 600;
    this.#shown.clear();
    const { zoomed } = this;
    (this.#tools.querySelector(".pf-whole") as HTMLElement).hidden = zoomed === this.#whole;
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
    const heated = entry.kind === "kernel" ? `;--heat:${strength(this.data.heat("kernel", entry.seconds))}%` : "";
    const [from, wide] = [left, width].map((part) => (100 * part).toFixed(4));
    const place = `left:${from}%;width:calc(${wide}% - 1px);top:${entry.depth * ROW}px${heated}`;
    const label = [KINDS[entry.kind], entry.name, secondsText(entry.seconds), shareText(share)]
      .filter(Boolean)
      .join(", ");
    const made = element("div", {
      role: "treeitem",
      class: `pf-box ${kind}${isOuter ? " outer" : ""}`,
      style: place,
      tabindex: -1,
      "aria-label": label,
      "aria-level": entry.depth + 1,
      "aria-selected": "false",
      "data-box": entry.index,
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

  #chosen: Chosen = { kernels: new Set(), lines: new Set() };
  #previewed: Chosen = { kernels: new Set(), lines: new Set() };

  light(chosen: Chosen, preview: Chosen): void {
    [this.#chosen, this.#previewed] = [chosen, preview];
    const isAny = chosen.kernels.size > 0 || chosen.lines.size > 0;
    this.#canvas.classList.toggle("some", isAny);
    const has = (of: Chosen, entry: Box) =>
      entry.kernel
        ? of.kernels.has(entry.kernel) && (!of.line || !entry.at || entry.at === of.line)
        : of.line !== undefined && entry.line === of.line;
    for (const [entry, node] of this.#shown) {
      const isLit = has(chosen, entry) || chosen.box === entry;
      node.classList.toggle("lit", isLit);
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

  #at(event: Event): Box | undefined {
    const node = (event.target as Element).closest?.<HTMLElement>("[data-box]");
    return node ? this.#all[Number(node.dataset.box)] : undefined;
  }

  #take(entry: Box): void {
    this.choose(entry);
    if (entry.inside.length) this.#zoom(entry === this.zoomed && entry.parent ? entry.parent : entry);
    this.#summarize(entry);
  }

  #listen(): void {
    this.#canvas.addEventListener("click", (event) => {
      const entry = this.#at(event);
      if (entry) this.#take(entry);
    });
    this.#canvas.addEventListener("pointerover", (event) => {
      const entry = this.#at(event);
      this.preview(entry);
      this.#summarize(entry);
    });
    this.#canvas.addEventListener("pointerleave", () => {
      this.preview();
      this.#summarize();
    });
    this.#canvas.addEventListener("focusin", (event) => this.#summarize(this.#at(event)));
    this.#canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event: KeyboardEvent): void {
    const entry = this.#at(event);
    if (!entry || event.ctrlKey || event.metaKey || event.altKey) return;
    const beside = (step: number) => {
      const all = (entry.parent?.inside ?? []).filter((other) => this.#shown.has(other));
      return all[all.indexOf(entry) + step];
    };
    const moves: Record<string, () => Box | undefined> = {
      ArrowDown: () => entry.inside.find((inner) => this.#shown.has(inner)),
      ArrowUp: () => entry.parent,
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      Home: () => this.#whole,
    };
    if (event.key === "Enter" || event.key === " ") this.#take(entry);
    else if (event.key === "Escape") {
      this.#zoom(this.#whole);
      this.#focus(entry);
    } else if (moves[event.key]) {
      const next = moves[event.key]!();
      if (next) this.#focus(next);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #focus(entry: Box): void {
    const node = this.#shown.get(entry);
    if (!node) return;
    for (const other of this.#shown.values()) other.tabIndex = -1;
    node.tabIndex = 0;
    node.focus({ preventScroll: true });
  }
}
