// The flame graph, its root on top: each box is as wide as the time of what is inside it. A click shows one box alone.

import { element } from "../core/dom";
import type { Box, By, Chosen, Data } from "./data";
import { box, button, part, shareText, strength, timeText } from "./format";

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
  readonly #told = element("p.pf-told");
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
    this.root.append(this.#tools, this.#canvas, this.#told);
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
    this.#tell();
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
    for (const one of this.#around(zoomed)) {
      const left = Math.max((one.left - zoomed.left) * scale, 0);
      const right = Math.min((one.left + one.seconds - zoomed.left) * scale, 1);
      if ((right - left) * this.#width < LEAST) continue;
      deepest = Math.max(deepest, one.depth);
      made.push(this.#box(one, left, right - left));
    }
    this.#canvas.style.height = `${(deepest + 1) * ROW}px`;
    this.#canvas.replaceChildren(...made);
    const first = this.#shown.get(zoomed);
    if (first) first.tabIndex = 0;
    this.light(this.#chosen, this.#previewed);
  }

  /** What a box is in, itself, and all inside it. */
  #around(zoomed: Box): Box[] {
    const found: Box[] = [];
    for (let at = zoomed.parent; at; at = at.parent) found.unshift(at);
    const waiting = [zoomed];
    for (let at = waiting.pop(); at; at = waiting.pop()) {
      found.push(at);
      for (let i = at.inside.length - 1; i >= 0; i--) waiting.push(at.inside[i]!);
    }
    return found;
  }

  #box(one: Box, left: number, width: number): HTMLElement {
    const share = this.data.share(one.seconds);
    const isOuter = one.depth < this.zoomed.depth;
    const kind = one.kind === "kernel" ? "pf-kernel" : one.kind === "more" ? "pf-more" : "pf-frame";
    const heated = one.kind === "kernel" ? `;--heat:${strength(this.data.heat("kernel", one.seconds))}%` : "";
    const [from, wide] = [left, width].map((part) => (100 * part).toFixed(4));
    const place = `left:${from}%;width:calc(${wide}% - 1px);top:${one.depth * ROW}px${heated}`;
    const label = [KINDS[one.kind], one.name, timeText(one.seconds), shareText(share)].filter(Boolean).join(", ");
    const made = element("div", {
      role: "treeitem",
      class: `pf-box ${kind}${isOuter ? " outer" : ""}`,
      style: place,
      tabindex: -1,
      "aria-label": label,
      "aria-level": one.depth + 1,
      "aria-selected": "false",
      "data-box": one.index,
    });
    if (one.inside.length) made.setAttribute("aria-expanded", "true");
    if (width * this.#width > 24) made.append(this.#short(one));
    this.#shown.set(one, made);
    return made;
  }

  /** `attention:24`, where one knows the file. */
  #short = ({ name, kind }: Box): string =>
    kind === "frame" && this.data.files.length <= 1 ? name.replace(/ \(.*:(\d+)\)$/, ":$1") : name;

  // What is chosen ----------------------------------------------------------------------------------------------------

  #chosen: Chosen = { kernels: new Set(), lines: new Set() };
  #previewed: Chosen = { kernels: new Set(), lines: new Set() };

  light(chosen: Chosen, preview: Chosen): void {
    [this.#chosen, this.#previewed] = [chosen, preview];
    const isAny = chosen.kernels.size > 0 || chosen.lines.size > 0;
    this.#canvas.classList.toggle("some", isAny);
    const has = (of: Chosen, one: Box) =>
      one.kernel
        ? of.kernels.has(one.kernel) && (!of.line || !one.at || one.at === of.line)
        : of.line !== undefined && one.line === of.line;
    for (const [one, node] of this.#shown) {
      const isLit = has(chosen, one) || chosen.box === one;
      node.classList.toggle("lit", isLit);
      node.classList.toggle("over", has(preview, one));
      node.setAttribute("aria-selected", String(chosen.box === one));
    }
  }

  /** One line on what the mouse or the keyboard is at. */
  #tell(one?: Box): void {
    const at = one ?? this.#chosen.box ?? this.zoomed;
    const path: string[] = [];
    for (let up = at.parent; up?.parent; up = up.parent) path.unshift(up.name);
    this.#told.replaceChildren(
      element("b", at.name),
      ` ${timeText(at.seconds)}, ${shareText(this.data.share(at.seconds))} of the device's time`,
      ...(path.length ? [part("mute", ` in ${path.join(" › ")}`)] : []),
    );
  }

  // Mouse and keyboard ------------------------------------------------------------------------------------------------

  #at(event: Event): Box | undefined {
    const node = (event.target as Element).closest?.<HTMLElement>("[data-box]");
    return node ? this.#all[Number(node.dataset.box)] : undefined;
  }

  #take(one: Box): void {
    this.choose(one);
    if (one.inside.length) this.#zoom(one === this.zoomed && one.parent ? one.parent : one);
    this.#tell(one);
  }

  #listen(): void {
    this.#canvas.addEventListener("click", (event) => {
      const one = this.#at(event);
      if (one) this.#take(one);
    });
    this.#canvas.addEventListener("pointerover", (event) => {
      const one = this.#at(event);
      this.preview(one);
      this.#tell(one);
    });
    this.#canvas.addEventListener("pointerleave", () => {
      this.preview();
      this.#tell();
    });
    this.#canvas.addEventListener("focusin", (event) => this.#tell(this.#at(event)));
    this.#canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event: KeyboardEvent): void {
    const one = this.#at(event);
    if (!one || event.ctrlKey || event.metaKey || event.altKey) return;
    const beside = (step: number) => {
      const all = (one.parent?.inside ?? []).filter((other) => this.#shown.has(other));
      return all[all.indexOf(one) + step];
    };
    const moves: Record<string, () => Box | undefined> = {
      ArrowDown: () => one.inside.find((inner) => this.#shown.has(inner)),
      ArrowUp: () => one.parent,
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      Home: () => this.#whole,
    };
    if (event.key === "Enter" || event.key === " ") this.#take(one);
    else if (event.key === "Escape") {
      this.#zoom(this.#whole);
      this.#focus(one);
    } else if (moves[event.key]) {
      const next = moves[event.key]!();
      if (next) this.#focus(next);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #focus(one: Box): void {
    const node = this.#shown.get(one);
    if (!node) return;
    for (const other of this.#shown.values()) other.tabIndex = -1;
    node.tabIndex = 0;
    node.focus({ preventScroll: true });
  }
}
