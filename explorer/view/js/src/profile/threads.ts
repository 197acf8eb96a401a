// When each thread worked for which kernel, in one of the calls: work, waiting, and the gaps of the device.

import { element } from "../core/dom";
import { count, number, secondsText } from "../core/labels";
import { THEMED } from "../core/theme";
import type { Chosen, Data, Kernel } from "./data";
import { box, hostText, shareText, strength } from "./format";

/** Columns by start; seconds from the beginning of the call; `kernel` -1 for one that is not among those shown. */
export interface Timeline extends Record<"start" | "end" | "thread" | "kernel" | "waits", number[]> {
  threads: string[];
  seconds: number;
  more: number;
}

const MOST = 12; // threads
const LANE = 13;
const DEVICE = 20;
const LEFT = 118;
const AXIS = 18;
const TICKS = 6;

export class Threads {
  readonly root = box("threads");
  private readonly canvas = element("canvas", { role: "img" });
  readonly #tip = element("div.pf-tip", { hidden: "" });
  readonly #lanes: number;
  #chosen?: Chosen;

  constructor(
    private readonly data: Data,
    private readonly timeline: Timeline,
    private readonly choose: (kernel: Kernel) => void,
  ) {
    const { threads, seconds, more } = timeline;
    this.#lanes = Math.min(threads.length, MOST);
    const busy = this.#spans().reduce((sum, [from, to]) => sum + to - from, 0);
    const was = `the device was busy for ${shareText(busy / seconds)} of it, with ${count(threads.length, "thread")}`;
    this.canvas.setAttribute("aria-label", `one call of ${secondsText(seconds)}: ${was}`);
    const rest = [
      threads.length > MOST ? `${threads.length - MOST} more threads` : "",
      more ? `${number(more)} shorter stretches are not drawn` : "",
    ];
    const title = element("b", "one call, thread by thread");
    this.root.append(
      box("tools", title, element("span.pf-mute", rest.filter(Boolean).join(", "))),
      box("lanes", this.canvas, this.#tip),
      ...hostText(data.message.host),
    );
    new ResizeObserver(() => this.draw()).observe(this.root);
    this.canvas.addEventListener(THEMED, () => this.draw());
    this.#listen();
  }

  light(chosen: Chosen, preview: Chosen): void {
    this.#chosen = preview.kernels.size ? preview : chosen.kernels.size ? chosen : undefined;
    this.draw();
  }

  /** The stretches in which at least one thread worked; gaps below the least are none. */
  #spans(least = 0, module?: string): [number, number][] {
    const { start, end, waits, kernel } = this.timeline;
    const spans: [number, number][] = [];
    start.forEach((from, i) => {
      if (waits[i] || (module && this.data.kernels[kernel[i]!]?.module !== module)) return;
      const last = spans.at(-1);
      if (last && from <= last[1] + least) last[1] = Math.max(last[1], end[i]!);
      else spans.push([from, end[i]!]);
    });
    return spans;
  }

  draw(): void {
    const { canvas, timeline } = this;
    const width = this.root.clientWidth;
    if (!width || !this.root.isConnected) return;
    const height = DEVICE + 8 + this.#lanes * LANE + AXIS;
    const scale = window.devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
    const to = canvas.getContext("2d")!;
    to.scale(scale, scale);
    const style = getComputedStyle(this.root);
    const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const [ink, mute, rule] = [colour("ink"), colour("mute"), colour("line")];
    const [hot, ground] = [colour("hot"), colour("bg")];
    const x = (seconds: number) => LEFT + ((width - LEFT - 12) * seconds) / (timeline.seconds || 1);
    const label = (text: string, y: number) => to.fillText(text.length > 17 ? `${text.slice(0, 16)}…` : text, 12, y);
    const names = named(timeline.threads);
    to.font = "11px system-ui, sans-serif";
    to.textBaseline = "middle";
    this.#axis(to, x, height, mute, rule);
    to.fillStyle = ink;
    label("device", 4 + DEVICE / 2 - 2);
    to.fillStyle = rule;
    to.fillRect(x(0), 4, x(timeline.seconds) - x(0), DEVICE - 4);
    const modules = this.data.modules.length > 1 ? this.data.modules : [undefined];
    modules.forEach((module, i) => {
      to.fillStyle = mix(ink, ground, i % 2 ? 0.22 : 0.4);
      const spans = this.#spans(timeline.seconds / width, module);
      for (const [from, till] of spans) to.fillRect(x(from), 4, Math.max(x(till) - x(from), 0.5), DEVICE - 4);
      const [from, till] = spans.reduce((a, b) => (b[1] - b[0] > a[1] - a[0] ? b : a), [0, 0]);
      to.fillStyle = ink;
      if (module && to.measureText(module).width + 8 < x(till) - x(from))
        to.fillText(module, x(from) + 4, 4 + DEVICE / 2 - 2);
    });
    to.fillStyle = mute;
    for (let lane = 0; lane < this.#lanes; lane++) label(names[lane]!, DEVICE + 8 + lane * LANE + LANE / 2 - 1);
    timeline.start.forEach((from, i) => {
      const lane = timeline.thread[i]!;
      if (lane >= this.#lanes) return;
      const kernel = this.data.kernels[timeline.kernel[i]!];
      const isOff = this.#chosen !== undefined && !(kernel && this.#chosen.kernels.has(kernel));
      const part = kernel ? strength(this.data.heat("kernel", kernel.seconds)) / 100 : 0.1;
      to.globalAlpha = isOff ? 0.35 : 1;
      to.fillStyle = timeline.waits[i] ? rule : mix(hot, ground, part);
      to.fillRect(x(from), DEVICE + 8 + lane * LANE, Math.max(x(timeline.end[i]!) - x(from), 0.5), LANE - 3);
    });
    to.globalAlpha = 1;
  }

  #axis(to: CanvasRenderingContext2D, x: (at: number) => number, height: number, mute: string, rule: string): void {
    const { seconds } = this.timeline;
    const raw = seconds / TICKS || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * ([1, 2, 5, 10].find((times) => times * power >= raw) ?? 10);
    for (let at = 0; at <= seconds; at += step) {
      to.fillStyle = rule;
      to.fillRect(Math.round(x(at)), 2, 1, height - AXIS);
      to.fillStyle = mute;
      to.textAlign = at === 0 ? "left" : "center";
      if (x(at) < this.root.clientWidth - 20)
        to.fillText(at === 0 ? "0" : secondsText(at).replace(/\.0+ /, " "), x(at), height - AXIS / 2);
    }
    to.textAlign = "left";
  }

  #listen(): void {
    const at = (event: PointerEvent | MouseEvent): number => {
      const { left, top, width } = this.canvas.getBoundingClientRect();
      const seconds = ((event.clientX - left - LEFT) * this.timeline.seconds) / (width - LEFT - 12);
      const lane = Math.floor((event.clientY - top - DEVICE - 8) / LANE);
      const { start, end, thread } = this.timeline;
      const slack = this.timeline.seconds / width;
      return start.findIndex((from, i) => thread[i] === lane && from - slack <= seconds && seconds <= end[i]! + slack);
    };
    this.canvas.addEventListener("pointermove", (event) => {
      const i = at(event);
      this.#tip.hidden = i < 0;
      if (i < 0) return;
      const { start, end, kernel, waits } = this.timeline;
      const its = this.data.kernels[kernel[i]!];
      const name = `${waits[i] ? "waits for others at " : ""}${its?.computes || its?.name || "a small kernel"}`;
      const line = its?.lines[0] ? `, line ${its.lines[0].line.number}` : "";
      this.#tip.textContent = `${name}: ${secondsText(end[i]! - start[i]!)}${line}`;
      const { left, top, width } = this.canvas.getBoundingClientRect();
      const x = Math.min(event.clientX - left + 10, width - 280);
      this.#tip.style.transform = `translate(${x}px, ${event.clientY - top + 14}px)`;
    });
    this.canvas.addEventListener("pointerleave", () => (this.#tip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const kernel = this.data.kernels[this.timeline.kernel[at(event)] ?? -1];
      if (kernel) this.choose(kernel);
    });
  }
}

/** Threads by what they are of; their numbers have no meaning, so those of one kind are counted. */
export function named(threads: readonly string[]): string[] {
  const kinds = threads.map((thread) => thread.replace(/^(tf_)?(XLA)?/, "").replace(/\/-?\d+$/, "") || thread);
  return kinds.map((kind, i) =>
    kinds.indexOf(kind) === kinds.lastIndexOf(kind)
      ? kind
      : `${kind} ${kinds.slice(0, i + 1).filter((other) => other === kind).length}`,
  );
}

/** A colour over another; a canvas knows no color-mix everywhere. */
function mix(over: string, under: string, part: number): string {
  const read = (hex: string) =>
    [1, 3, 5].map((i) => parseInt((hex.length === 4 ? hex.replace(/[^#]/g, "$&$&") : hex).slice(i, i + 2), 16));
  const [a, b] = [read(over), read(under)];
  return `rgb(${a.map((value, i) => Math.round(value * part + b[i]! * (1 - part))).join(" ")})`;
}
