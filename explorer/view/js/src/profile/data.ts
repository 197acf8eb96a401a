// A profile, as explorer/view/measure/profile/message.py sends it: lines, kernels, who has what of whom, and the flame
// graphs.

import type { Sentence } from "../core/dom";
import type { Timeline } from "./threads";

export type By = "stack" | "scope";

export interface Message
  extends Record<"version" | "runs" | "wall" | "device" | "gap" | "unattributed", number>,
    Record<"function" | "signature", string> {
  headline: { text: Sentence; waits: Sentence; facts: string[] };
  files: { file: string; label: string; rows: [line: number, text: string][] }[];
  lines: [file: number, line: number, text: string, seconds: number, wasted: number | null, ops: number][];
  moreLines: [count: number, seconds: number];
  kernels: [
    name: string,
    op: string,
    module: string,
    program: number,
    seconds: number,
    total: number,
    count: number,
    flops: number | null,
    bytes: number | null,
    wasted: number | null,
    scope: string,
    computes?: string,
  ][];
  moreKernels: [count: number, seconds: number];
  parts: [kernel: number, line: number, seconds: number][];
  flames: Partial<Record<By, Boxes>>;
  host: [name: string, seconds: number][];
  notes: string[];
  captures: [program: number, name: string][];
  timeline: Timeline | null;
}

interface Boxes extends Record<"parent" | "name" | "seconds" | "kernel", number[]>, Record<"kind" | "names", string[]> {
  frame: (0 | [file: string, line: number])[];
}

export type File = { file: string; label: string; rows: [line: number, text: string][] };

export interface Line extends Record<"index" | "number" | "seconds" | "ops", number> {
  file: File;
  text: string;
  wasted: number | null;
  /** What of which kernel comes from it, the longest first. */
  kernels: { kernel: Kernel; seconds: number }[];
}

export interface Kernel
  extends Record<"name" | "op" | "module" | "scope", string>,
    Record<"index" | "program" | "seconds" | "total" | "count", number>,
    Record<"flops" | "bytes" | "wasted", number | null> {
  /** What it computes, in words; empty where that is in its name, or isn't known. */
  computes: string;
  lines: { line: Line; seconds: number }[];
}

/** One box of a flame graph; `left` is where it begins, in seconds. */
export interface Box extends Record<"index" | "seconds" | "left" | "depth", number>, Record<"name" | "kind", string> {
  parent?: Box;
  kernel?: Kernel;
  line?: Line;
  /** The innermost line around it. */
  at?: Line;
  inside: Box[];
}

export const VERSION = 1;
const COOL = 0.1; // of the device's time: where nothing takes as much, nothing is hot

export class Data {
  readonly files: File[];
  readonly lines: Line[];
  readonly kernels: Kernel[];
  readonly flames = new Map<By, Box[]>();
  /** Several executables: then each kernel names its own. */
  readonly modules: string[];
  readonly hasWasted: boolean;
  readonly #hottest: { line: number; kernel: number };

  constructor(readonly message: Message) {
    if (message.version !== VERSION)
      throw new Error(`this profile's format is ${message.version}, and ${VERSION} can be read`);
    this.files = message.files;
    this.lines = message.lines.map(([of, number, text, seconds, wasted, ops], index) => {
      const file = this.files[of]!;
      return { index, file, number, text, seconds, wasted, ops, kernels: [] };
    });
    this.kernels = message.kernels.map(([name, op, module, program, seconds, total, count, ...others], index) => {
      const [flops, bytes, wasted, scope, computes = ""] = others;
      const what = { index, name, op, module, program, scope, computes, lines: [] };
      return { ...what, seconds, total, count, flops, bytes, wasted };
    });
    for (const [kernel, line, seconds] of message.parts) {
      this.lines[line]!.kernels.push({ kernel: this.kernels[kernel]!, seconds });
      this.kernels[kernel]!.lines.push({ line: this.lines[line]!, seconds });
    }
    for (const { kernels } of this.lines) kernels.sort((a, b) => b.seconds - a.seconds);
    for (const { lines } of this.kernels) lines.sort((a, b) => b.seconds - a.seconds);
    for (const by of ["stack", "scope"] as const)
      if (message.flames[by]) this.flames.set(by, this.#boxes(message.flames[by]));
    const most = (all: readonly { seconds: number }[]) =>
      all.reduce((most, { seconds }) => Math.max(most, seconds), COOL * message.device);
    this.#hottest = { line: most(this.lines), kernel: most(this.kernels) };
    this.modules = [...new Set(this.kernels.map(({ module }) => module))];
    this.hasWasted = [...this.lines, ...this.kernels].some(({ wasted }) => wasted !== null);
  }

  /** How hot a line or a kernel is, 0 to 1: as a part of the hottest one. */
  heat = (of: "line" | "kernel", seconds: number): number => (this.#hottest[of] > 0 ? seconds / this.#hottest[of] : 0);

  share = (seconds: number): number => (this.message.device > 0 ? seconds / this.message.device : 0);

  lineAt(file: string, number: number): Line | undefined {
    return this.lines.find((line) => line.number === number && line.file.file === file);
  }

  #boxes(columns: Boxes): Box[] {
    const boxes: Box[] = [];
    const used: number[] = [];
    columns.parent.forEach((above, index) => {
      const parent = boxes[above];
      const seconds = columns.seconds[index]!;
      const left = parent ? parent.left + used[above]! : 0;
      const [name, kind] = [columns.names[columns.name[index]!]!, columns.kind[index]!];
      const box: Box = { index, name, kind, seconds, left, depth: parent ? parent.depth + 1 : 0, inside: [] };
      const [kernel, frame] = [this.kernels[columns.kernel[index]!], columns.frame[index]];
      const line = frame ? this.lineAt(...frame) : undefined;
      if (parent) {
        box.parent = parent;
        parent.inside.push(box);
        used[above]! += seconds;
      }
      if (kernel) box.kernel = kernel;
      if (line) box.line = line;
      const at = frame ? line : parent?.at;
      if (at) box.at = at;
      boxes.push(box);
      used.push(0);
    });
    return boxes;
  }
}

export type Order = "source" | "time" | "wasted";

/** The lines, by their place, or the longest first. */
export function ordered(lines: readonly Line[], by: Order): Line[] {
  if (by === "source") return [...lines].sort((a, b) => (a.file === b.file ? a.number - b.number : a.index - b.index));
  return [...lines].sort((a, b) => (by === "time" ? b.seconds - a.seconds : (b.wasted ?? -1) - (a.wasted ?? -1)));
}

/** A file as it is shown: its lines, those with time marked, and how many are left out between them. */
export type Shown = { line: number; text: string; hot?: Line } | { folded: number };

export function folded(file: File, lines: readonly Line[]): Shown[] {
  const hot = new Map(lines.filter((line) => line.file === file).map((line) => [line.number, line]));
  const rows = file.rows.length
    ? file.rows
    : [...hot.values()].sort((a, b) => a.number - b.number).map(({ number, text }): [number, string] => [number, text]);
  const shown: Shown[] = [];
  let last = 0;
  for (const [line, text] of rows) {
    if (line > last + 1) shown.push({ folded: line - last - 1 });
    const its = hot.get(line);
    shown.push(its ? { line, text, hot: its } : { line, text });
    last = line;
  }
  return shown;
}

/** What is chosen, and what belongs to it in the other panes. */
export type Chosen = { line?: Line; kernel?: Kernel; box?: Box; kernels: Set<Kernel>; lines: Set<Line> };

export const nothing = (): Chosen => ({ kernels: new Set(), lines: new Set() });

export const chosenLine = (line: Line): Chosen => ({
  line,
  kernels: new Set(line.kernels.map(({ kernel }) => kernel)),
  lines: new Set([line]),
});

export const chosenKernel = (kernel: Kernel): Chosen => ({
  kernel,
  kernels: new Set([kernel]),
  lines: new Set(kernel.lines.map(({ line }) => line)),
});

export function chosenBox(box: Box): Chosen {
  const chosen: Chosen = { ...nothing(), box };
  const waiting = [box];
  for (let at = waiting.pop(); at; at = waiting.pop()) {
    if (at.kernel) chosen.kernels.add(at.kernel);
    waiting.push(...at.inside);
  }
  if (box.kernel) return { ...chosenKernel(box.kernel), box };
  for (const kernel of chosen.kernels) for (const { line } of kernel.lines) chosen.lines.add(line);
  return chosen;
}
