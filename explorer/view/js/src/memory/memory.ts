// What is in memory at each step of the schedule: the columns of explorer/analysis/live_memory.py, read by
// index.

import type { Graph } from "../core/graph";
import { arrays } from "../core/labels";

/** One row a buffer: what makes it, which of that node's arrays it is, and the first and last step it is alive in. */
type Buffer = "node" | "array" | "kind" | "space" | "start" | "end";

export interface MemoryColumns extends Record<Buffer, Int32Array> {
  /** `argument`, `temp`, …: the names of the codes of `kind`. */
  kinds: string[];
  /** True if the text is marked as being in the order of the schedule. */
  scheduled: boolean;
  /** The node that runs at each step; nothing runs yet in the first. */
  order: Int32Array;
  size: Float64Array;
  /** Parameters that could be donated and are not. */
  donations: Int32Array;
}

export class Memory {
  readonly steps: number;
  readonly total: Float64Array;
  readonly peakStep: number = 0;
  /** Where the largest buffers come first. */
  readonly #bySize: Int32Array;

  constructor(readonly c: MemoryColumns) {
    this.steps = c.order.length;
    this.total = this.sum(() => true);
    for (let step = 1; step < this.steps; step++)
      if (this.total[step]! > this.total[this.peakStep]!) this.peakStep = step;
    this.#bySize = Int32Array.from(c.node.keys()).sort((a, b) => c.size[b]! - c.size[a]! || a - b);
  }

  get peak(): number {
    return this.total[this.peakStep] ?? 0;
  }

  /** Bytes alive at each step of the buffers that pass `has`, in one memory space; the device's own is 0. */
  sum(has: (row: number) => boolean, of = 0): Float64Array {
    const { start, end, size, space } = this.c;
    const change = new Float64Array(this.steps + 1);
    for (let row = 0; row < size.length; row++)
      if (space[row] === of && has(row)) {
        change[start[row]!]! += size[row]!;
        change[end[row]! + 1]! -= size[row]!;
      }
    for (let step = 1; step < this.steps; step++) change[step]! += change[step - 1]!;
    return change.subarray(0, this.steps);
  }

  /** The fullest step of each memory space but the device's own: the space, and bytes. */
  get besides(): [space: number, bytes: number][] {
    const { space } = this.c;
    const spaces = [...new Set(space)].filter((one) => one !== 0).sort((a, b) => a - b);
    return spaces.map((one) => [one, this.sum(() => true, one).reduce((most, bytes) => Math.max(most, bytes), 0)]);
  }

  /** The buffers alive at a step, the largest first. */
  at(step: number): number[] {
    const { start, end } = this.c;
    return Array.from(this.#bySize).filter((row) => start[row]! <= step && step <= end[row]!);
  }

  /** The type of a buffer: of one array of what its node gives. */
  type(graph: Graph, row: number): string {
    const array = arrays(graph.type(this.c.node[row]!))[this.c.array[row]!];
    return array ? `${array.dtype}[${array.dims.join(",")}]` : "";
  }
}

/**
 * Steps joined so that each gets a pixel or more: for each column its first step, and in it the step that holds most.
 * A peak of a single step among a hundred thousand stays in sight.
 */
export function columns(total: Float64Array, most: number): { first: Int32Array; top: Int32Array } {
  const count = Math.min(total.length, Math.max(Math.floor(most), 1));
  const first = new Int32Array(count + 1);
  const top = new Int32Array(count);
  for (let i = 0; i <= count; i++) first[i] = Math.floor((i * total.length) / count);
  for (let i = 0; i < count; i++) {
    let best = first[i]!;
    for (let step = best + 1; step < first[i + 1]!; step++) if (total[step]! > total[best]!) best = step;
    top[i] = best;
  }
  return { first, top };
}

/** A round number below `highest` that, counted up, gives two to five lines. */
export function gridStep(highest: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(highest, 1) / 2));
  return [5, 2, 1].map((factor) => factor * power).find((step) => highest / step >= 2) ?? power;
}
