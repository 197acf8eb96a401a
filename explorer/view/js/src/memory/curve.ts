// The bytes alive over the schedule as a stacked curve, with a moment that can be moved along it.

import { tallied } from "../core/buckets";
import { element, onKey, svg, svgText } from "../core/dom";
import type { Graph } from "../core/graph";
import { bytesText, cut, number } from "../core/labels";
import { columns, gridStep, type Memory } from "./memory";

const TOP = 16; // room for the peak's label
const STRIP = 15; // the phases below
const LETTER = 6; // pixels, about, of a small letter
const CELL = 14; // pixels: phases that take turns more quickly than that are summarized by the most frequent

/** From the bottom of the stack: what is there throughout first. */
export const STACK = ["argument", "constant", "donated", "output", "aliased", "temp"];

export class MemoryCurve {
  readonly root = element("div.memory-curve", {
    role: "slider",
    tabindex: "0",
    "aria-label": "moment of the schedule",
  });
  moment = 0;
  private memory?: Memory;
  #graph?: Graph;
  private width = 0;
  #height = 150;
  #layers: [kind: string, bytes: Float64Array][] = [];
  readonly #marks = svg("g");
  readonly #share = svg("g");
  #lit?: { bytes: Float64Array; colour: number };
  #joined?: ReturnType<typeof columns>;

  /**
   * @param moved the moment is another one
   * @param over the pointer is over a step that it doesn't choose; without one, it left
   */
  constructor(
    private readonly moved: () => void,
    over: (step?: number) => void,
  ) {
    this.root.addEventListener("pointerdown", (event) => {
      this.root.setPointerCapture(event.pointerId);
      this.move(this.#stepAt(event));
    });
    this.root.addEventListener("pointermove", (event) => {
      const step = this.#stepAt(event);
      if (event.buttons & 1) this.move(step);
      else over(step);
    });
    this.root.addEventListener("pointerleave", () => over());
    onKey(this.root, ({ key, shiftKey }) => {
      const step = this.#steps(shiftKey)[key];
      return step === undefined ? undefined : () => this.move(step);
    });
    new ResizeObserver(() => {
      if (this.root.clientWidth !== this.width) this.#draw();
    }).observe(this.root);
  }

  reset(memory: Memory, graph: Graph): void {
    [this.memory, this.#graph] = [memory, graph];
    const { kinds, kind } = memory.c;
    const codes = STACK.map((name) => [name, kinds.indexOf(name)] as const).filter(([, code]) => kind.includes(code));
    this.#layers = codes.map(([name, code]) => [name, memory.sum((row) => kind[row] === code)]);
    this.#lit = undefined;
    this.moment = memory.peakStep;
    this.#draw();
  }

  /** Draw a share of what is alive over the rest: of what is in focus, in its line's colour. */
  light(bytes?: Float64Array, colour = -1): void {
    this.#lit = bytes && { bytes, colour };
    this.#drawShare();
  }

  move(step: number): void {
    const last = (this.memory?.steps ?? 1) - 1;
    const next = Math.min(Math.max(Math.round(step), 0), last);
    if (next === this.moment) return;
    this.moment = next;
    this.#mark();
    this.moved();
  }

  #stepAt(event: PointerEvent): number {
    const { left, width } = this.root.getBoundingClientRect();
    return Math.floor(((event.clientX - left) / Math.max(width, 1)) * (this.memory?.steps ?? 1));
  }

  /** Where keys lead to; with shift, in large steps. */
  #steps(isLarge: boolean): Record<string, number> {
    const { memory, moment } = this;
    if (!memory) return {};
    const page = Math.max(Math.round(memory.steps / 20), 1);
    const [less, more] = [moment - (isLarge ? page : 1), moment + (isLarge ? page : 1)];
    const arrows = { ArrowLeft: less, ArrowDown: less, ArrowRight: more, ArrowUp: more };
    const ends = { Home: 0, End: memory.steps - 1, p: memory.peakStep };
    return { ...arrows, PageDown: moment - page, PageUp: moment + page, ...ends };
  }

  #draw(): void {
    const { memory, root } = this;
    const width = (this.width = root.clientWidth);
    if (!memory || !width) return;
    this.#height = Math.min(Math.max(Math.round((root.parentElement?.clientHeight ?? 0) * 0.28), 90), 210);
    const joined = (this.#joined = columns(memory.total, width));
    const picture = svg("svg", { width, height: TOP + this.#height + STRIP, "aria-hidden": "true" });
    picture.append(...this.#stack(joined), this.#share, ...this.#grid(width), ...this.#phases(), this.#marks);
    root.replaceChildren(picture);
    this.#drawShare();
    this.#mark();
  }

  #runs = (step: number): string => (step === 0 ? "the call" : this.#graph!.name(this.memory!.c.order[step]!));
  #x = (step: number): number => (step / Math.max(this.memory!.steps, 1)) * this.width;
  #y = (bytes: number): number => TOP + this.#height - (bytes / Math.max(this.memory!.peak, 1)) * this.#height;

  #stack({ first, top }: ReturnType<typeof columns>): Node[] {
    const below = new Float64Array(top.length);
    const areas: Node[] = [];
    for (const [name, own] of this.#layers) {
      const above = below.map((base, i) => base + own[top[i]!]!);
      areas.push(svg("path.area", { d: this.#area(first, above, below), style: `--c: var(--${name})` }));
      below.set(above);
    }
    return areas;
  }

  /** It changes with every move of the pointer: the rest of the picture stays. */
  #drawShare(): void {
    this.#share.replaceChildren();
    if (!this.#lit || !this.#joined) return;
    const { bytes, colour } = this.#lit;
    const { first, top } = this.#joined;
    const high = Float64Array.from(top, (step) => bytes[step]!);
    this.#share.append(svg(`path.area.lit.k${colour}`, { d: this.#area(first, high) }));
  }

  /** Each column as wide as its steps, flat on top: bytes don't change within a step. */
  #area(first: Int32Array, above: Float64Array, below?: Float64Array): string {
    const there: string[] = [];
    const back: string[] = [];
    for (let i = 0; i < above.length; i++) {
      const [from, to] = [this.#x(first[i]!).toFixed(1), this.#x(first[i + 1]!).toFixed(1)];
      const [high, low] = [this.#y(above[i]!).toFixed(1), this.#y(below?.[i] ?? 0).toFixed(1)];
      there.push(`${from} ${high}L${to} ${high}`);
      back.push(`${to} ${low}L${from} ${low}`);
    }
    return `M${there.join("L")}L${back.reverse().join("L")}Z`;
  }

  #grid(width: number): Node[] {
    const { peak } = this.memory!;
    const lines: Node[] = [];
    const step = gridStep(peak);
    for (let bytes = step; bytes < peak * 0.95; bytes += step) {
      const y = this.#y(bytes);
      lines.push(
        svg("line.grid", { x1: 0, x2: width, y1: y, y2: y }),
        svgText(bytesText(bytes).replace(".0 ", " "), 4, y - 3, "scale"),
      );
    }
    return lines;
  }

  /** The part of the program that each stretch of the schedule belongs to; what runs, where there are no parts. */
  #phases(): Node[] {
    const { order } = this.memory!.c;
    const phase = phaseOf(this.#graph!);
    const cells = Math.min(Math.floor(this.width / CELL), order.length);
    const edge = (cell: number) => Math.floor((cell * order.length) / cells);
    const names = Array.from({ length: cells }, (_, cell) =>
      prevailing(order.subarray(edge(cell), edge(cell + 1)), phase),
    );
    if (!names.some(Boolean)) return this.#kernels();
    const drawn: Node[] = [];
    for (let from = 0, cell = 1; cell <= cells; cell++) {
      if (cell < cells && names[cell] === names[from]) continue;
      drawn.push(...this.#stretch(edge(from), edge(cell), names[from]!, names[from]!));
      from = cell;
    }
    return drawn;
  }

  #kernels(): Node[] {
    const { order } = this.memory!.c;
    if (order.length * 3 * LETTER > this.width) return [];
    return Array.from(order).flatMap((_, step) => this.#stretch(step, step + 1, step ? this.#runs(step) : "", ""));
  }

  #stretch(from: number, to: number, name: string, kind: string): Node[] {
    const [x, width] = [this.#x(from), this.#x(to) - this.#x(from)];
    const top = TOP + this.#height + 2;
    const fits = Math.floor((width - 6) / LETTER);
    const at = { x, y: top, height: name ? STRIP - 2 : 0 };
    return [
      svg("rect", { ...at, class: `phase ${kind.split(" ")[0]}`, width: Math.max(width - 1, 0.5) }),
      ...(fits > 3 ? [svgText(cut(name, fits), x + 4, top + STRIP - 5, "part")] : []),
    ];
  }

  /** The peak and the moment: all that changes while one moves along. */
  #mark(): void {
    const { memory, root, width, moment } = this;
    if (!memory) return;
    const bytes = memory.total[moment] ?? 0;
    const value = `step ${number(moment)}, ${this.#runs(moment)}, ${bytesText(bytes)}`;
    const values = { min: 0, max: memory.steps - 1, now: moment, text: value };
    for (const [name, of] of Object.entries(values)) root.setAttribute(`aria-value${name}`, String(of));
    const [peak, now] = [this.#x(memory.peakStep + 0.5), this.#x(moment + 0.5)];
    const isRight = peak > width - 130;
    const most = `${memory.c.scheduled ? "peak" : "most"} ${bytesText(memory.peak)}`;
    const text = svgText(most, peak + (isRight ? -6 : 6), TOP - 4, "peak");
    text.setAttribute("text-anchor", isRight ? "end" : "start");
    this.#marks.replaceChildren(
      svg("circle.peak", { cx: peak, cy: TOP, r: 3.5 }),
      text,
      svg("line.moment", { x1: now, x2: now, y1: 2, y2: TOP + this.#height + STRIP }),
      svg("circle.moment", { cx: now, cy: this.#y(bytes), r: 4 }),
    );
  }
}

/** The phase that holds a node: forward, backward, update; empty for none. */
function phaseOf(graph: Graph): (node: number) => string {
  const { groups, groupOf } = graph.c;
  const names = new Map<number, string>([[-1, ""]]);
  const find = (group: number): string => {
    let name = names.get(group);
    if (name === undefined) {
      names.set(group, ""); // a group within itself, in damaged input, has none
      const { kind, parent, name: own } = groups[group]!;
      names.set(group, (name = kind === "phase" ? own : find(parent)));
    }
    return name;
  };
  return (node) => find(groupOf[node]!);
}

const prevailing = (nodes: Int32Array, phase: (node: number) => string): string =>
  tallied(Array.from(nodes, phase))[0]?.[0] ?? "";
