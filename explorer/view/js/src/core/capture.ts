// A capture in the browser: the stages of one program, each read when it is first needed.

import type { AskHeader } from "../ask/answers";
import { Memory, type MemoryColumns } from "../memory/memory";
import { type Passes, type PassesHeader, readPasses } from "../passes/passes";
import type { Finding } from "../source/source_pane";
import type { DiffHeader } from "../viewer/diff_viewer";
import { Attributes, type CodeColumns, type Frame, Graph, type Group } from "./graph";
import { Attribution, EquationSets, Fates, type Grade, type SourceLine } from "./links";

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

const PREFIX = 44; // magic, version, sizes and checksum: Python checks them, the browser only reads on
const VERSION = 3;

export type Place = [offset: number, size: number];
export type Column = Place | { strings: string[]; codes: Place };

export type Places = Record<string, Place>;
type Table = Record<string, Column>;

type Texts = "names" | "ops" | "types" | "scopes" | "attribute_keys" | "attribute_values";
type Single = "text" | "tree_of" | "unread" | "repeat" | "differ" | "twin" | "one_iteration";
type Several = "columns" | "measures" | "attribution" | "attribute_columns";
type Tables = "frames" | "places" | "tree";
type Columns = Record<Texts, string[]> & Record<Single, Place> & Record<Several, Places> & Record<Tables, Table>;

interface StageHeader extends Columns {
  name: string;
  coverage: number;
  difference: string[];
  /** Of the nodes that do something, the share that is linked so surely. */
  grades?: Record<Grade, number>;
  sets?: Places;
  fates?: { kinds: string[]; texts: string[]; passes: Record<string, string>; columns: Places };
  /** What fusions compute, in words, as indices into `kernel_texts`; explorer/analysis/kernel_costs.py. */
  kernel_words?: Record<"node" | "text", Place>;
  kernel_texts?: string[];
  memory?: MemoryHeader | null;
  /** Of the optimised program of several devices; of each node, its place in `texts` and `ways`. */
  shardings?: { mesh: Shardings["mesh"]; texts: string[]; ways: string[]; text: Place; way: Place };
}

/** What a line of the source costs: explorer/analysis/line_costs.py. */
export interface LineCost extends Record<"line" | "equations" | "kernels" | "flops" | "bytes", number> {
  file: string;
  seconds: number | null;
  /** Some of it is in a loop whose length nobody knows: one iteration of that is counted. */
  one_iteration?: boolean;
}

interface MemoryHeader {
  kinds: string[];
  scheduled: boolean;
  /** Low bits that all sizes have lost, of a module with arrays of 2**55 bytes and more. */
  shift: number;
  columns: Places;
  donations: Place;
}

export interface Header
  extends Record<"function" | "file" | "signature" | "failure", string>,
    Record<"durations" | "cost" | "memory", Record<string, number>> {
  line: number;
  /** The steps whose result JAX had already. */
  reused?: string[];
  environment: Record<string, string>;
  /** Why there are no exact links, in a few words. */
  recording_note?: string;
  constants: { name: string; type: string; bytes: number }[];
  findings: { findings: Finding[] };
  sources: Source[];
  /** The files among them that are no code of the user's. */
  libraries: string[];
  stages: StageHeader[];
  passes?: PassesHeader | null;
  machine_code?: MachineCodeHeader | null;
  lines: LineCost[];
  /** What each kernel costs on each line, an index into `lines`: explorer/analysis/line_costs.py. */
  kernel_lines?: { kernel: Place; line: Place; amounts: Places } | null;
  /** What the counts leave open, a sentence each. */
  limits?: string[];
  /** Of hardware that isn't here: what instructions of the last stage are expected to take, and who expects it. */
  estimates?: [node: number, seconds: number, by: string][];
  /** What is most worth knowing, the most important first, each with the nodes that it speaks of. */
  ask?: AskHeader;
  summary?: { text: string; stage: string; nodes: number[] }[];
}

export async function unpack(packed: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function opened(wire: Uint8Array): Promise<{ header: Header | { diff: DiffHeader }; blobs: Uint8Array }> {
  const version = new DataView(wire.buffer, wire.byteOffset).getUint32(8, true);
  if (version !== VERSION) throw new Error(`this capture has format ${version}, this viewer reads ${VERSION}`);
  const raw = await unpack(wire.subarray(PREFIX));
  const size = new DataView(raw.buffer, raw.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + size))) as Header;
  return { header, blobs: raw.subarray(4 + size) };
}

export function captureOf(header: Header, blobs: Uint8Array): Capture {
  const { kernel_lines: costs, machine_code: code } = header;
  const stages = header.stages.map((stage, i) => readStage(stage, i === 0, blobs));
  return new Capture(header, stages, {
    passes: () => (header.passes ? readPasses(header.passes, blobs) : undefined),
    kernelLines: () =>
      costs && {
        ...decoded<KernelLines>({ kernel: costs.kernel, line: costs.line }, blobs),
        amounts: measures(costs.amounts, blobs),
      },
    machineCode: () => (code ? new MachineCode(code, blobs) : undefined),
  });
}

function readStage(header: StageHeader, isFirst: boolean, blobs: Uint8Array): Stage {
  const { name, names, ops, types, scopes, coverage, sets, fates, memory, shardings } = header;
  const { unread, repeat, differ, twin, one_iteration } = header;
  const grades = isFirst ? undefined : header.grades;
  const stage: Stage = lazily({ name, size: names.length, coverage, grades } as Stage, {
    lines: () => textAt(header.text, blobs).split("\n"),
    frames: () => rows<Frame>(header.frames, blobs),
    attribution: () => new Attribution(rows<SourceLine>(header.places, blobs), decoded(header.attribution, blobs)),
    graph: () =>
      new Graph({
        ...{ names, ops, types, scopes, frames: stage.frames, attribution: stage.attribution },
        ...decoded<CodeColumns>(header.columns, blobs),
        measures: measures(header.measures, blobs),
        groups: rows<Group>(header.tree, blobs),
        ...decoded<Record<"groupOf" | "unread" | "repeat" | "differ" | "twin" | "oneIteration", Int32Array>>(
          { unread, repeat, differ, twin, one_iteration, group_of: header.tree_of },
          blobs,
        ),
        difference: header.difference,
        readKernelWords: header.kernel_words && (() => readKernelWords(header, blobs)),
        readAttributes: () =>
          new Attributes(header.attribute_keys, header.attribute_values, decoded(header.attribute_columns, blobs)),
      }),
    sets: () => sets && new EquationSets(decoded(sets, blobs)),
    fates: () => fates && new Fates({ ...fates, ...decoded(fates.columns, blobs) }),
    memory: () => (memory ? readMemory(memory, blobs) : undefined),
    shardings: () => shardings && readShardings(shardings, blobs),
  });
  return stage;
}

function readKernelWords({ kernel_words, kernel_texts }: StageHeader, blobs: Uint8Array): Map<number, string> {
  const [nodes, texts] = [column(kernel_words!.node, blobs), column(kernel_words!.text, blobs)];
  return new Map(Array.from(nodes, (node, i) => [node, kernel_texts![texts[i]!]!]));
}

function readShardings(
  { mesh, texts, ways, text, way }: NonNullable<StageHeader["shardings"]>,
  blobs: Uint8Array,
): Shardings {
  const [textOf, wayOf] = [column(text, blobs), column(way, blobs)];
  return { mesh, text: (node) => texts[textOf[node]!]!, way: (node) => ways[wayOf[node]!]! };
}

function readMemory({ columns, donations, ...others }: MemoryHeader, blobs: Uint8Array): Memory {
  const { low, high, ...read } = decoded<Omit<MemoryColumns, "size"> & Record<"low" | "high", Int32Array>>(
    columns,
    blobs,
  );
  const size = Float64Array.from(low, (bytes, row) => (high[row]! * 0x1000000 + bytes) * 2 ** others.shift);
  return new Memory({ ...others, ...read, size, donations: column(donations, blobs) });
}

export const textAt = ([offset, size]: Place, blobs: Uint8Array): string =>
  new TextDecoder().decode(blobs.subarray(offset, offset + size));

const mapped = <T>(places: Places, read: (place: Place) => T, named = (name: string) => name): Record<string, T> =>
  Object.fromEntries(Object.entries(places).map(([name, place]) => [named(name), read(place)]));

/** Columns by their names, in this language's spelling: `operand_start` is `operandStart`. */
export const decoded = <T = Record<string, Int32Array>>(places: Places, blobs: Uint8Array): T =>
  mapped(
    places,
    (place) => column(place, blobs),
    (name) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
  ) as T;

const measures = (places: Places, blobs: Uint8Array) => mapped(places, (place) => numbers(place, blobs));

/** Byte planes of zigzag differences, back to the numbers. */
export function column([offset, size]: Place, blobs: Uint8Array): Int32Array {
  const count = size / 4;
  const values = new Int32Array(count);
  const plane = (n: number) => blobs.subarray(offset + n * count, offset + (n + 1) * count);
  const [p0, p1, p2, p3] = [plane(0), plane(1), plane(2), plane(3)];
  let value = 0;
  for (let i = 0; i < count; i++) {
    const zigzag = p0[i]! | (p1[i]! << 8) | (p2[i]! << 16) | (p3[i]! << 24);
    value = (value + ((zigzag >>> 1) ^ -(zigzag & 1))) | 0;
    values[i] = value;
  }
  return values;
}

/** Byte planes of single-precision numbers. */
export function numbers([offset, size]: Place, blobs: Uint8Array): Float32Array {
  const count = size / 4;
  const bytes = new Uint8Array(size);
  for (let plane = 0; plane < 4; plane++)
    for (let i = 0; i < count; i++) bytes[4 * i + plane] = blobs[offset + plane * count + i]!;
  return new Float32Array(bytes.buffer);
}

export function rows<Row>(table: Record<string, Column>, blobs: Uint8Array): Row[] {
  const names = Object.keys(table);
  const columns = names.map((name) => {
    const from = table[name]!;
    if (Array.isArray(from)) return Array.from(column(from, blobs));
    return Array.from(column(from.codes, blobs), (code) => from.strings[code]!);
  });
  return (columns[0] ?? []).map((_, i) => Object.fromEntries(names.map((name, k) => [name, columns[k]![i]])) as Row);
}

interface Row {
  function: string;
  /** The instructions that run it. */
  kernels: string[];
  texts: Record<string, Place>;
  /** What is known of it, in words. */
  facts: [name: string, text: string][];
}

export type MachineCodeHeader = { platform: string; notes: string[]; languages: Record<string, string>; rows: Row[] };

export class MachineCode {
  constructor(
    readonly header: MachineCodeHeader,
    private readonly blobs: Uint8Array,
  ) {}

  /** The languages of a row, what is nearest to the hardware first. */
  languages(row: number): string[] {
    const { texts } = this.header.rows[row]!;
    return Object.keys(this.header.languages)
      .filter((language) => texts[language])
      .reverse();
  }

  lines(row: number, language: string): string[] {
    const [offset, size] = this.header.rows[row]!.texts[language]!;
    return new TextDecoder().decode(this.blobs.subarray(offset, offset + size)).split("\n");
  }
}
