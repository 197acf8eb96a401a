// Time to the right, a row for each function: when it was traced, lowered and compiled, and in which cell.

import { element, hasFocus, onKey, svg, svgText } from "../core/dom";
import { count, cut, number, secondsText } from "../core/labels";
import { bands, Clock, type Lane, lanes, lasting, type Mark, marksOf } from "./clock";
import type { Call, Data, Group } from "./data";
import { box, flag, placeText, STEPS, stepOf, stepsText, sumOf, total, whyText } from "./format";

const ROW = 26;
const BAR = 13;
const TOP = 20; // the cells' names
const BOTTOM = 20; // the ticks
const MOST = 9; // rows
const LETTER = 7.3;

export class Timeline {
  readonly root = box("timeline");
  readonly #tip = element("div.lg-tip", { role: "tooltip", "aria-hidden": "true" });
  readonly #place = box("plot");
  #rows: { mark: Mark; node: SVGElement }[][] = [];
  #at: [row: number, index: number] = [0, 0];
  #groups: readonly Group[] = [];
  #calls: readonly Call[] = [];
  #width = 0;
  chosen?: Call;

  constructor(
    private readonly data: Data,
    private readonly choose: (call: Call) => void,
    private readonly open: (group: Group) => void,
  ) {
    const key = STEPS.map(([step, name]) => element("span", element("i", stepOf(step)), name));
    const again = element("span", flag(), "compiled again");
    this.root.append(this.#place, box("key", ...key, again), this.#tip);
    onKey(this.#place, (event) => this.#key(event));
    for (const leaves of ["pointerleave", "focusout"]) this.#place.addEventListener(leaves, () => this.#point());
    new ResizeObserver(() => {
      if (this.#place.clientWidth !== this.#width) this.draw();
    }).observe(this.#place);
  }

  show(calls: readonly Call[], groups: readonly Group[]): void {
    [this.#calls, this.#groups] = [calls, groups];
    this.draw();
  }

  draw(): void {
    this.#width = this.#place.clientWidth;
    this.root.hidden = !this.#calls.length && !this.data.status.running.length;
    if (this.#width < 80 || this.root.hidden) return;
    const had = hasFocus(this.#place);
    const names = Math.min(Math.max(this.#width * 0.22, 110), 230);
    const { running, now } = this.data.status;
    const later = now + (performance.now() - this.data.received) / 1000;
    const spans = running.map(({ since }): [number, number] => [since, later]);
    const clock = new Clock(this.#calls, this.#width - names - 10, spans);
    const runs = running.map((call) => call.function);
    const all = lanes(this.#groups, MOST, runs);
    const height = TOP + ROW * all.length + BOTTOM;
    const label = "timeline: arrow keys go from compile to compile";
    const parts = [this.#ground(clock, height), ...this.#lanes(all, clock, names), this.#now(all, clock, later)];
    const plot = svg("g", { transform: `translate(${names} 0)` }, ...parts);
    this.#place.replaceChildren(svg("svg", { width: this.#width, height, role: "group", "aria-label": label }, plot));
    this.#point();
    this.#focusable(had);
  }

  #ground(clock: Clock, height: number): SVGElement {
    const ground = svg("g.lg-ground");
    for (const [i, band] of bands(this.#calls, clock, this.data.status.cells).entries()) {
      if (!band.label) continue;
      const [kind, width] = [i % 2 ? "lg-band odd" : "lg-band", Math.max(band.width, 1)];
      ground.append(svg("rect", { class: kind, x: band.x, y: 0, width, height: height - BOTTOM }));
      const fits = (label: string) => label.length * 6 + 6 < band.width;
      const label = [band.label, band.label.replace(/^cell /, ""), cut(band.label, 16)].find(fits);
      if (label) ground.append(svgText(label, band.x + 3, 13, "lg-cell"));
    }
    for (const { x, width, seconds } of clock.breaks) {
      ground.append(svg("rect.lg-break", { x, y: 0, width, height: height - BOTTOM }));
      if (width <= 14) continue;
      const slant = svg("path.lg-slant", { d: `M${x + width / 2 - 6} ${height - BOTTOM + 3}l4-8m4 8l4-8` });
      ground.append(slant, svgText(`+${lasting(seconds)}`, x + width / 2, height - 5, "lg-when"));
    }
    const waits = clock.breaks.filter(({ width }) => width > 14);
    for (const { x, seconds } of clock.ticks()) {
      if (waits.some((wait) => Math.abs(wait.x + wait.width / 2 - x) < 60)) continue;
      ground.append(
        svg("line.lg-tick", { x1: x, x2: x, y1: TOP, y2: height - BOTTOM }),
        svgText(seconds ? lasting(seconds) : "0", x, height - 5, "lg-when"),
      );
    }
    return ground;
  }

  #lanes(all: readonly Lane[], clock: Clock, names: number): SVGElement[] {
    this.#rows = [];
    return all.map((lane, row) => {
      const y = TOP + row * ROW;
      const compiles = lane.groups.reduce((sum, group) => sum + group.compiles, 0);
      const cost = `×${number(compiles)} ${secondsText(total(lane.groups))}`;
      const room = Math.floor((names - 12) / LETTER) - cost.length - 1;
      const hasCost = compiles > 0 && room >= Math.min(lane.name.length, 11);
      const name = cut(lane.name, hasCost ? room : Math.floor((names - 16) / LETTER));
      const title = svgText(name, -names + 8, y + ROW / 2 + 4, "lg-name");
      const node = svg("g.lg-lane", svg("line.lg-rule", { x1: -names, x2: clock.width + 10, y1: y, y2: y }), title);
      if (hasCost) node.append(svgText(cost, -10, y + ROW / 2 + 4, "lg-cost"));
      const marks = marksOf(lane.calls, clock);
      const dearest = Math.max(...marks.map(({ calls }) => (calls.length > 1 ? total(calls) : 0)));
      const drawn = marks.map((mark) => ({ mark, node: this.#mark(mark, y, lane, dearest) }));
      const flags = marks
        .filter(({ calls }) => calls.some((call) => call.isAgain))
        .map((mark) => `M${(mark.x - 3).toFixed(1)} ${y + 3}h7l-3.5 5z`);
      node.append(...drawn.map(({ node }) => node), svg("path.lg-again", { d: flags.join("") }));
      this.#rows.push(drawn);
      const [only] = lane.groups;
      if (only && lane.groups.length === 1) title.addEventListener("click", () => this.open(only));
      return node;
    });
  }

  /** A call as long as it took; several as high as what they took together, of the lane's dearest such mark. */
  #mark(mark: Mark, y: number, lane: Lane, dearest: number): SVGElement {
    const { calls, x, width } = mark;
    const node = svg("g", {
      class: "lg-mark",
      role: "button",
      tabindex: "-1",
      "aria-label": describe(mark, lane.name).join(", "),
      transform: `translate(${x.toFixed(1)} ${y + 9})`,
    });
    const sum = sumOf(calls);
    const whole = sum.trace + sum.lower + sum.compile;
    const isMany = calls.length > 1;
    const size = isMany ? Math.max((BAR * whole) / (dearest || 1), 2) : width;
    let at = 0;
    for (const [step] of STEPS) {
      const part = whole ? (size * sum[step]) / whole : step === "trace" ? size : 0;
      const along = { x: at, y: 0, width: Math.max(part - (part > 8 ? 0.6 : 0), 0.4), height: BAR };
      const up = { x: 0, y: BAR - at - part, width: Math.max(width - 0.5, 2), height: part };
      const kind = whole ? stepOf(step) : { class: "lg-none" };
      if (part > 0) node.append(svg("rect", { ...kind, ...(isMany ? up : along) }));
      at += part;
    }
    node.append(svg("rect.lg-hit", { x: -1, y: -7, width: Math.max(width, 5) + 2, height: BAR + 9 }));
    node.classList.toggle("chosen", this.chosen !== undefined && calls.includes(this.chosen));
    node.dataset.call = String(calls[0]!.index);
    for (const comes of ["pointerenter", "focus"]) node.addEventListener(comes, () => this.#point(mark, lane));
    node.addEventListener("click", () => this.#take(mark));
    return node;
  }

  /** What compiles now: open to the right. */
  #now(all: readonly Lane[], clock: Clock, later: number): SVGElement {
    const group = svg("g.lg-now");
    for (const call of this.data.status.running) {
      const row = all.findIndex((lane) => lane.name === call.function);
      const y = TOP + (row < 0 ? all.length - 1 : row) * ROW + 9;
      const x = clock.x(call.since);
      group.append(svg("rect", { x, y, width: Math.max(clock.x(later) - x, 4), height: BAR }));
    }
    return group;
  }

  #take({ calls }: Mark): void {
    const dearest = calls.reduce((a, b) => (b.seconds > a.seconds ? b : a));
    this.choose(calls.length === 1 ? calls[0]! : dearest);
  }

  /** Mark the call that is shown below. */
  light(call?: Call): void {
    this.chosen = call;
    for (const row of this.#rows)
      for (const { mark, node } of row)
        node.classList.toggle("chosen", call !== undefined && mark.calls.includes(call));
  }

  #point(mark?: Mark, lane?: Lane): void {
    this.#tip.hidden = !mark;
    if (!mark || !lane) return;
    const [title, ...lines] = describe(mark, lane.name);
    this.#tip.replaceChildren(element("b", title!), ...lines.map((text) => element("div", text)));
    const node = this.#rows.flat().find((drawn) => drawn.mark === mark)?.node;
    if (!node) return;
    const box = node.getBoundingClientRect();
    const around = this.root.getBoundingClientRect();
    const left = Math.min(Math.max(box.left - around.left, 4), around.width - this.#tip.offsetWidth - 4);
    this.#tip.style.transform = `translate(${Math.max(left, 4)}px, ${box.bottom - around.top + 4}px)`;
  }

  #focusable(had: boolean): void {
    const row = Math.min(this.#at[0], this.#rows.length - 1);
    const index = Math.min(this.#at[1], (this.#rows[row]?.length ?? 0) - 1);
    const node = this.#rows[row]?.[index]?.node ?? this.#rows.flat()[0]?.node;
    node?.setAttribute("tabindex", "0");
    if (had) node?.focus({ preventScroll: true });
  }

  #key({ key, target }: KeyboardEvent): (() => void) | undefined {
    const row = this.#rows.findIndex((marks) => marks.some(({ node }) => node === target));
    if (row < 0) return undefined;
    const marks = this.#rows[row]!;
    const index = marks.findIndex(({ node }) => node === target);
    const { mark } = marks[index]!;
    if (key === "Enter" || key === " ") return () => this.#take(mark);
    const last = marks.length - 1;
    const along: Record<string, number> = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: last };
    const across = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (!across && along[key] === undefined) return undefined;
    return () => {
      const others = this.#rows[row + (across ?? 0)] ?? [];
      const away = (i: number) => Math.abs(others[i]!.mark.x - mark.x);
      const to = along[key] ?? others.reduce((best, _, i) => (away(i) < away(best) ? i : best), 0);
      if (!others[to]) return;
      (target as Element).setAttribute("tabindex", "-1");
      this.#at = [row + (across ?? 0), to];
      this.#focusable(true);
    };
  }
}

/** A mark in words: what it is, why, where, and what it cost. */
function describe({ calls }: Mark, name: string): string[] {
  const [call] = calls as [Call, ...Call[]];
  const again = calls.filter(({ isAgain }) => isAgain).length;
  const parts =
    calls.length > 1
      ? [
          `${name}: ${count(calls.length, "compile")}`,
          again && `${number(again)} of them again`,
          stepsText(sumOf(calls)),
        ]
      : [
          call.id || call.family.name,
          whyText(call),
          placeText(call.stack[0]),
          stepsText(call, call.isHit),
          call.error && `ended by ${call.error}`,
        ];
  return parts.filter((part) => part) as string[];
}
