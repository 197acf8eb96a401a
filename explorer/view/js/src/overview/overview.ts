// Above the panes: what the program costs as one picture, each box of which leads to what it is of.

import { button, dataAt, element, onKey, onParts } from "../core/dom";
import { nodeItem } from "../core/graph";
import { count, cutMiddle, kernelTitle, labelOf } from "../core/labels";
import { lineKey, type SourceLine } from "../core/links";
import type { Focus, Session } from "../core/session";
import { amountOf, Costs, OF_WHOLE, percent } from "../lines/line_costs";
import { type Icicle, icicle, type Part, type Target } from "./icicle";

const ROW = 25; // pixels
const LEVELS = 2; // rows of groups
const NARROW = 700; // pixels, below which there is one
const LEAST = 11; // pixels of a box; two of the gap are not seen
const LETTER = 7.3; // pixels, on average
const EDGE = 14; // pixels of a box that its text leaves

interface Drawn {
  part: Part;
  box: HTMLElement;
  /** As it is marked: a class that doesn't change isn't touched, as the pointer moves over hundreds of boxes. */
  isLit?: boolean;
  isOver?: boolean;
}

export class Overview {
  // A group, for a page may have many views: each landmark of a page wants a name of its own.
  readonly root = element("section.overview", { role: "group", "aria-label": "what it costs" });
  readonly #boxes: Drawn[] = [];
  readonly #picture = element("div.icicle", { role: "group", "aria-label": "cost by phase, line and kernel" });
  readonly #costs: Costs;
  #expected?: Map<number, number>;
  #width = 0;
  #at = 0; // the box that the keyboard is on

  constructor(
    private readonly session: Session,
    private readonly reveal: (node: number) => void,
  ) {
    this.#costs = new Costs(session.capture.header.lines);
    this.#listen();
    new ResizeObserver(() => {
      if (Math.abs(this.#picture.clientWidth - this.#width) > 4) this.fill();
    }).observe(this.root);
  }

  /** Draw it, for the width that there is now. */
  fill(): void {
    const { session } = this;
    const { measures } = this.#costs;
    const hasKernels = measures.length > 0 && session.capture.stages.some(({ name }) => name === "hlo");
    this.root.hidden = !hasKernels;
    if (!hasKernels) return;
    if (!this.#picture.isConnected) this.root.replaceChildren(this.#picture);
    this.#width = this.#picture.clientWidth || this.root.clientWidth || 1000;
    const levels = this.#width < NARROW ? 1 : LEVELS;
    const drawn = icicle(session.capture, session.costBy, levels, LEAST / this.#width);
    // One kernel of one line has no parts worth a picture.
    this.root.hidden = drawn.parts.length < 4;
    this.#picture.style.height = `${drawn.rows * ROW}px`;
    this.#boxes.length = 0;
    for (const part of drawn.parts) this.#boxes.push({ part, box: this.#box(part, this.#boxes.length) });
    this.#at = 0;
    this.#picture.replaceChildren(...this.#boxes.map(({ box }) => box));
    this.root.replaceChildren(this.#head(drawn), this.#picture);
    this.light();
  }

  #head({ total, unknown }: Icicle): HTMLElement {
    const { costBy } = this.session;
    const { measures } = this.#costs;
    const next = measures[(measures.indexOf(costBy) + 1) % measures.length]!;
    const what = `% ${OF_WHOLE[costBy]}`;
    const title = `show % ${OF_WHOLE[next]} instead`;
    const turn = button({ title }, () => this.session.setCostBy(next), `${what} ▾`);
    return element(
      "header",
      element("h3", "what it costs"),
      measures.length > 1 ? turn : element("span", what),
      element("span", `100% is ${amountOf[costBy](total)}`),
      ...(unknown ? [element("span", `${count(unknown, "kernel")} of unknown cost not drawn`)] : []),
      element("span.stretch"),
      element("span.key", "kernels, grouped under the lines that produced them"),
    );
  }

  #box(part: Part, index: number): HTMLElement {
    const { session } = this;
    const { from, share, top, bottom } = part;
    const { text, number, tip, colour } = this.#words(part);
    const wide = share * this.#width - EDGE;
    const estimate = this.#estimate(part);
    const figure = [percent(share), estimate && `≈ ${amountOf.seconds(estimate)}`].filter(Boolean).join(" · ");
    const hasFigure = wide > LETTER * (figure.length + 4 + (number?.length ?? 0));
    const letters = Math.floor((wide - (hasFigure ? LETTER * (figure.length + 1) : 0)) / LETTER);
    const expected = estimate ? `, ${amountOf.seconds(estimate)} estimated, not measured` : "";
    const title = cutMiddle(text, letters - (number ? number.length + 1 : 0));
    const hasNumber = number !== undefined && letters >= number.length;
    const hasText = letters > (number ? number.length + 3 : 2);
    const cost = `${percent(share)} ${OF_WHOLE[session.costBy]}${expected}`;
    const height = (bottom - top) * ROW - 2;
    return element(
      "button",
      {
        class: `part ${hasText || hasNumber ? "" : "bare "}${part.target.kind}${colour >= 0 ? ` k${colour}` : ""}`,
        ...{ type: "button", tabindex: index ? "-1" : "0", "data-part": index },
        ...{ title: `${tip}: ${cost}`, "aria-label": `${tip}, ${cost}` },
        style: `left:${100 * from}%;width:calc(${100 * share}% - 2px);top:${top * ROW}px;height:${height}px`,
      },
      ...(hasNumber ? [element("b", number)] : []),
      ...(hasText ? [element("span", title)] : []),
      ...(hasFigure ? [element("i", figure)] : []),
    );
  }

  /** Seconds that whole kernels are expected to take on hardware that isn't here; 0 where nothing is known. */
  #estimate({ target }: Part): number {
    const { capture } = this.session;
    this.#expected ??= new Map((capture.header.estimates ?? []).map(([node, seconds]) => [node, seconds]));
    const expected = this.#expected;
    if (!expected.size) return 0;
    const sum = (nodes: ArrayLike<number> | Iterable<number>) =>
      Array.from(nodes, (node) => expected.get(node) ?? 0).reduce((a, b) => a + b, 0);
    if (target.kind === "whole") return sum(expected.keys());
    if (target.kind === "item") return sum(capture.stage("hlo").graph.nodesOf(target.item));
    if (target.kind !== "kernel") return 0; // a line has parts of kernels, and nobody says what a part takes
    return this.#ofOtherLine(target) ? 0 : sum([target.kernel]);
  }

  /** The line that a kernel is named for, where the box is of another. */
  #ofOtherLine({ kernel, of }: Target & { kind: "kernel" }): SourceLine | undefined {
    const place = this.session.lines.place(this.session.capture.stage("hlo").graph, kernel);
    return of?.file && place && lineKey(place.file, place.line) !== lineKey(of.file, of.line) ? place : undefined;
  }

  #words({ target, kernels }: Part): { text: string; number?: string; tip: string; colour: number } {
    const { capture, lines } = this.session;
    const { graph } = capture.stage("hlo");
    const of = count(kernels.length, "kernel");
    switch (target.kind) {
      case "whole":
      case "item": {
        const text = target.kind === "item" ? labelOf(graph, "hlo", target.item).title : capture.header.function;
        return { text, tip: `${text}, ${of}`, colour: -1 };
      }
      case "line": {
        const { file, line } = target;
        const text = lines.textOf(file, line);
        const tip = `line ${line}: ${text || file}, in ${of}`;
        return { text: text || file, number: String(line), tip, colour: lines.colourOf(file, line) };
      }
      case "unlinked":
        return { text: "no line", tip: `no line is known for this, ${of}`, colour: -1 };
      case "kernel": {
        const { kernel } = target;
        const title = kernelTitle(graph, kernel);
        const other = this.#ofOtherLine(target);
        const part = other ? `, this line's part of the kernel of line ${other.line}` : "";
        const tip = `${title} (${graph.name(kernel)})${part}`;
        return { text: title, tip, colour: lines.colour(lines.place(graph, kernel)) };
      }
      default: {
        const isLine = target.of.kind === "line";
        const text = isLine || target.of.kind === "unlinked" ? of : `${target.parts} parts`;
        const colour = target.of.kind === "line" ? lines.colourOf(target.of.file, target.of.line) : -1;
        return { text, tip: `${isLine ? of : `${target.parts} parts, ${of}`}, each too small for a box`, colour };
      }
    }
  }

  light(): void {
    for (const drawn of this.#boxes) {
      const isLit = this.#isIn(drawn.part, this.session.focus);
      if (isLit !== (drawn.isLit ?? false)) drawn.box.classList.toggle("lit", (drawn.isLit = isLit));
    }
    this.hover();
  }

  hover(): void {
    for (const drawn of this.#boxes) {
      const isOver = this.#isIn(drawn.part, this.session.preview);
      if (isOver !== (drawn.isOver ?? false)) drawn.box.classList.toggle("over", (drawn.isOver = isOver));
    }
  }

  #isIn({ target }: Part, { lines, nodes, item }: Focus): boolean {
    if (target.kind === "line") return lines.size > 0 && lines.has(lineKey(target.file, target.line));
    if (target.kind === "item") return item === target.item;
    return target.kind === "kernel" && this.session.stage.name === "hlo" && nodes.has(target.kernel);
  }

  #choose({ target, kernels }: Part): void {
    const { session } = this;
    if (target.kind === "whole") session.focusItem(undefined);
    else if (target.kind === "line") session.focusLine(target.file, target.line);
    else if (target.kind === "kernel" || target.kind === "item") {
      session.setStage("hlo");
      session.focusItem(target.kind === "item" ? target.item : nodeItem(target.kernel));
    } else session.focusNodes("hlo", kernels, target.kind === "rest" ? "smaller parts" : "of no line");
    if (target.kind !== "whole" && kernels.length && session.stage.name === "hlo") this.reveal(kernels[0]!);
  }

  #preview(part: Part | undefined): void {
    const { session } = this;
    const target = part?.target;
    if (target?.kind === "line") session.previewLine(target.file, target.line);
    else if (session.stage.name !== "hlo") session.previewItem(undefined);
    else if (target?.kind === "kernel") session.previewItem(nodeItem(target.kernel));
    else session.previewItem(target?.kind === "item" ? target.item : undefined);
  }

  #listen(): void {
    const choose = (part: Part) => {
      this.#moveTo(this.#boxes.findIndex((box) => box.part === part));
      this.#choose(part);
    };
    const at = (event: Event) => this.#boxes[Number(dataAt(event, "part") ?? -1)]?.part;
    onParts(this.root, at, choose, (part) => this.#preview(part));
    onKey(this.#picture, ({ key }) => {
      const next = this.#next(key);
      if (next === undefined) return undefined;
      return () => {
        this.#moveTo(next);
        this.#boxes[next]!.box.focus({ preventScroll: true });
        this.#preview(this.#boxes[next]!.part);
      };
    });
  }

  /** The box beside, above or below the one that the keyboard is on. */
  #next(key: string): number | undefined {
    const at = this.#boxes[this.#at]?.part;
    if (!at) return undefined;
    const middle = at.from + at.share / 2;
    const covers = (part: Part, x: number) => part.from <= x && x < part.from + part.share;
    const of: Record<string, (part: Part) => boolean> = {
      ArrowRight: (part) => part.top === at.top && part.from > at.from,
      ArrowLeft: (part) => part.top === at.top && part.from < at.from,
      ArrowDown: (part) => part.top === at.bottom && part.from >= at.from && part.from < at.from + at.share,
      ArrowUp: (part) => part.bottom === at.top && covers(part, middle),
    };
    const fits = of[key];
    if (!fits) return undefined;
    const all = this.#boxes.flatMap(({ part }, i) => (fits(part) ? [i] : []));
    // Boxes stand depth first, so in a row from left to right.
    return (key === "ArrowLeft" ? all.at(-1) : all[0]) ?? this.#at;
  }

  #moveTo(index: number): void {
    this.#boxes[this.#at]!.box.tabIndex = -1;
    this.#at = index;
    this.#boxes[index]!.box.tabIndex = 0;
  }
}
