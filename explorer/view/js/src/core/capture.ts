// A capture in the browser: the stages of one program, each read when it is first needed.

import type { MachineCode } from "../machine_code/machine_code";
import type { Memory } from "../memory/memory";
import type { Passes } from "../passes/passes";
import type { Attribution } from "./attribution";
import type { Fates } from "./fates";
import type { Frame, Graph } from "./graph";
import type { EquationSets, Grade } from "./links";
import type { Header } from "./wire";

export type Source = { file: string; label: string; text: string };

/** How the values of a program of several devices lie on them; see explorer/model/shardings.py. */
export interface Shardings {
  mesh: [axis: string, size: number][];
  /** `f32[1024@data,512]`. */
  text(node: number): string;
  /** `whole on each device`, `split along data`. */
  way(node: number): string;
}

/** What is read at first use; the lines alone are enough for the source pane's colours. */
export interface Stage {
  readonly name: string;
  readonly size: number;
  readonly coverage: number;
  /** How surely its nodes are linked to the first stage: shares, 1 together. */
  readonly grades?: Record<Grade, number> | undefined;
  readonly lines: string[];
  readonly frames: Frame[];
  readonly attribution: Attribution;
  readonly graph: Graph;
  /** What became of the equations; not of the last stage, which they became. */
  readonly fates?: Fates | undefined;
  /** The equations that its nodes come from; not of the first stage, which has these. */
  readonly sets?: EquationSets | undefined;
  /** Only of a program of several devices. */
  readonly shardings?: Shardings | undefined;
  /** What is in memory at each step; only of a stage that has a schedule. */
  readonly memory?: Memory | undefined;
}

/** Add what is read at first use. */
export function lazily<T extends object>(target: T, readers: { [Name in keyof T]?: () => T[Name] }): T {
  for (const [name, read] of Object.entries(readers) as [string, () => unknown][])
    Object.defineProperty(target, name, {
      configurable: true,
      get() {
        const value = read();
        Object.defineProperty(target, name, { value });
        return value;
      },
    });
  return target;
}

/** What kernels cost, split over the lines of what is in them: a row for each kernel and line. */
export interface KernelLines {
  kernel: Int32Array;
  /** Indices into the header's lines. */
  line: Int32Array;
  amounts: Partial<Record<string, ArrayLike<number>>>;
}

export class Capture {
  /** What each pass of the compiler did, where that was recorded. */
  declare readonly passes?: Passes | undefined;
  declare readonly kernelLines?: KernelLines | null | undefined;
  /** What lies below HLO, where that was compiled for. */
  declare readonly machineCode?: MachineCode | undefined;

  constructor(
    readonly header: Header,
    readonly stages: Stage[],
    readers: { [Name in "passes" | "kernelLines" | "machineCode"]?: () => Capture[Name] } = {},
  ) {
    lazily<Capture>(this, readers);
  }

  stage(name: string): Stage {
    return this.stages.find((stage) => stage.name === name) ?? this.stages[this.stages.length - 1]!;
  }

  /** The nodes of `to` that are the same operation as `node` of `from`; see explorer/model/links.py. */
  linked(from: Stage, node: number, to: Stage): number[] {
    if (from === to) return [node];
    const first = this.stages[0]!;
    if (to === first) return Array.from(from.sets?.of(node) ?? []);
    if (from === first) return to.sets?.comingFrom(node) ?? [];
    return [...new Set(this.linked(from, node, first).flatMap((at) => this.linked(first, at, to)))].sort(
      (a, b) => a - b,
    );
  }
}
