// A capture in the browser: the stages of one program, each read when it is first needed.

import type { MachineCode } from "../machine_code/machine_code";
import type { Memory } from "../memory/memory";
import type { Passes } from "../passes/passes";
import type { Attribution } from "./attribution";
import type { Fates } from "./fates";
import type { Frame, Graph } from "./graph";
import type { EquationSets, Grade } from "./links";
import type { Header } from "./wire";

export interface Source {
  file: string;
  label: string;
  text: string;
}

/** How the values of a program of several devices lie on them; see explorer/model/shardings.py. */
export interface Shardings {
  /** The axes of the mesh with their sizes. */
  mesh: [axis: string, size: number][];
  /** `f32[1024@data,512]`. */
  text(node: number): string;
  /** `whole on each device`, `split along data`. */
  way(node: number): string;
}

export class Stage {
  /** Everything is read at first use; the lines alone are enough for the source pane's colours. */
  constructor(
    readonly name: string,
    private readonly readText: () => string,
    private readonly readGraph: () => Graph,
    private readonly readFrames: () => Frame[],
    private readonly readAttribution: () => Attribution,
    readonly size: number,
    readonly coverage: number,
    private readonly readMemory?: () => Memory,
    private readonly readFates?: () => Fates,
    private readonly readSets?: () => EquationSets | undefined,
    /** How surely its nodes are linked to the first stage: shares, 1 together. */
    readonly grades?: Record<Grade, number>,
    private readonly readShardings?: () => Shardings,
  ) {}
  #text_?: string[];
  #graph_?: Graph;
  #frames_?: Frame[];
  #attribution_?: Attribution;
  #memory_?: Memory | undefined;
  #fates_?: Fates | undefined;
  #sets_?: EquationSets | undefined;
  #shardings_?: Shardings | undefined;
  get frames(): Frame[] {
    return (this.#frames_ ??= this.readFrames());
  }
  /** Which line of the source each node belongs to. */
  get attribution(): Attribution {
    return (this.#attribution_ ??= this.readAttribution());
  }
  get lines(): string[] {
    return (this.#text_ ??= this.readText().split("\n"));
  }
  get graph(): Graph {
    return (this.#graph_ ??= this.readGraph());
  }
  /** What became of the equations; not of the last stage, which they became. */
  get fates(): Fates | undefined {
    return (this.#fates_ ??= this.readFates?.());
  }
  /** The equations that its nodes come from; not of the first stage, which has these. */
  get sets(): EquationSets | undefined {
    return (this.#sets_ ??= this.readSets?.());
  }
  /** Only of a program of several devices. */
  get shardings(): Shardings | undefined {
    return (this.#shardings_ ??= this.readShardings?.());
  }
  /** What is in memory at each step; only of a stage that has a schedule. */
  get memory(): Memory | undefined {
    return (this.#memory_ ??= this.readMemory?.());
  }
}

/** What kernels cost, split over the lines of what is in them: a row for each kernel and line. */
export interface KernelLines {
  kernel: Int32Array;
  /** Indices into the header's lines. */
  line: Int32Array;
  amounts: Partial<Record<string, ArrayLike<number>>>;
}

export class Capture {
  constructor(
    readonly header: Header,
    readonly stages: Stage[],
    private readonly readPasses?: () => Passes,
    private readonly readKernelLines?: () => KernelLines,
    /** What lies below HLO, where that was compiled for. */
    readonly machineCode?: MachineCode,
  ) {}

  #kernelLines_?: KernelLines | undefined;
  /** Absent from files of earlier versions. */
  get kernelLines(): KernelLines | undefined {
    return (this.#kernelLines_ ??= this.readKernelLines?.());
  }

  #passes_?: Passes | undefined;
  /** What each pass of the compiler did, where that was recorded. */
  get passes(): Passes | undefined {
    return (this.#passes_ ??= this.readPasses?.());
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
