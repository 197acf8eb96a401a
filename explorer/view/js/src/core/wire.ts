// The binary form of a capture, as explorer/files/capture.py writes it.

import type { AskHeader } from "../ask/answers";
import { MachineCode, type MachineCodeHeader } from "../machine_code/machine_code";
import { Memory } from "../memory/memory";
import { type PassesHeader, readPasses } from "../passes/wire";
import type { Finding } from "../source/finding_badge";
import type { DiffHeader } from "../viewer/diff_viewer";
import { Attributes } from "./attributes";
import { Attribution, type SourceLine } from "./attribution";
import { Capture, type KernelLines, type Shardings, type Source, Stage } from "./capture";
import { Fates } from "./fates";
import { type Frame, Graph, type Group } from "./graph";
import { EquationSets, type Grade } from "./links";

const PREFIX = 44; // magic, version, sizes and checksum: Python checks them, the browser only reads on
const VERSIONS = [2, 3]; // 2 had `keys` where 3 has `sets`

export type Place = [offset: number, size: number];
export type Column = Place | { strings: string[]; codes: Place };

interface StageHeader {
  name: string;
  text: Place;
  names: string[];
  ops: string[];
  types: string[];
  scopes: string[];
  columns: Record<string, Place>;
  measures: Record<string, Place>;
  groups: Record<string, Column>;
  frames: Record<string, Column>;
  coverage: number;
  /** Of the nodes that do something, the share that is linked so surely; files of format 2 have none. */
  grades?: Record<Grade, number>;
  /** From format 3 on. */
  places?: Record<string, Column>;
  attribution?: Record<"line" | "mark" | "by" | "equation" | "start" | "node", Place>;
  /** Links to the first stage; in format 2 `keys` instead, by the stage linked to, of the first to all. */
  sets?: Record<string, Place>;
  keys?: Record<string, Place>;
  fates?: FatesHeader;
  tree: Record<string, Column>;
  tree_of: Place;
  unread: Place;
  repeat: Place;
  differ: Place;
  difference?: string[];
  one_iteration?: Place;
  /** What fusions compute, in words, as indices into `kernel_texts`; explorer/analysis/kernel_costs.py. */
  kernel_words?: Record<"node" | "text", Place>;
  kernel_texts?: string[];
  twin: Place;
  attribute_keys?: string[];
  attribute_values?: string[];
  attribute_columns?: Record<string, Place>;
  memory?: MemoryHeader | null;
  /** Of the optimised program of several devices. */
  shardings?: ShardingsHeader;
}

interface ShardingsHeader {
  mesh: [axis: string, size: number][];
  texts: string[];
  ways: string[];
  /** Of each node, among `texts` and `ways`. */
  text: Place;
  way: Place;
}

interface FatesHeader {
  kinds: string[];
  texts: string[];
  passes: Record<string, string>;
  mapped: number;
  columns: Record<string, Place>;
}

/** What a line of the source costs: explorer/analysis/line_costs.py. */
export interface LineCost {
  file: string;
  line: number;
  equations: number;
  kernels: number;
  flops: number;
  flops_share: number;
  bytes: number;
  bytes_share: number;
  seconds: number | null;
  /** Some of it is in a loop whose length nobody knows: one iteration of that is counted. */
  one_iteration?: boolean;
}

/** What each kernel costs on each line: explorer/analysis/line_costs.py. */
interface KernelLinesHeader {
  kernel: Place;
  /** Indices into the header's lines. */
  line: Place;
  amounts: Record<string, Place>;
}

interface MemoryHeader {
  kinds: string[];
  scheduled: boolean;
  /** Low bits that all sizes have lost, of a module with arrays of 2**55 bytes and more. */
  shift: number;
  columns: Record<string, Place>;
  donations: Place;
}

export interface Header {
  function: string;
  file: string;
  line: number;
  signature: string;
  durations: Record<string, number>;
  /** The steps whose result JAX had already. */
  reused?: string[];
  environment: Record<string, string>;
  failure: string;
  /** Why there are no exact links, in a few words. */
  recording_note?: string;
  cost: Record<string, number>;
  memory: Record<string, number>;
  constants: { name: string; type: string; bytes: number }[];
  /** Files from before there were rules have none. */
  findings?: { findings: Finding[] };
  sources: Source[];
  /** The files among them that are no code of the user's; from format 3 on. */
  libraries?: string[];
  stages: StageHeader[];
  passes?: PassesHeader | null;
  machine_code?: MachineCodeHeader | null;
  lines: LineCost[];
  kernel_lines?: KernelLinesHeader | null;
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

/** What a file holds: its header, and the bytes that the header refers to. */
export async function opened(wire: Uint8Array): Promise<{ header: Header | { diff: DiffHeader }; blobs: Uint8Array }> {
  const version = new DataView(wire.buffer, wire.byteOffset).getUint32(8, true);
  if (!VERSIONS.includes(version))
    throw new Error(`this capture has format ${version}, this viewer reads ${VERSIONS.join(" and ")}`);
  const raw = await unpack(wire.subarray(PREFIX));
  const size = new DataView(raw.buffer, raw.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + size))) as Header;
  return { header, blobs: raw.subarray(4 + size) };
}

export function captureOf(header: Header, blobs: Uint8Array): Capture {
  const passes = header.passes ? () => readPasses(header.passes!, blobs) : undefined;
  const { kernel_lines: costs, machine_code: code } = header;
  return new Capture(
    header,
    header.stages.map((stage) => readStage(stage, header.stages[0]!, blobs)),
    passes,
    costs ? () => readKernelLines(costs, blobs) : undefined,
    code ? new MachineCode(code, blobs) : undefined,
  );
}

const readKernelLines = ({ kernel, line, amounts }: KernelLinesHeader, blobs: Uint8Array): KernelLines => ({
  kernel: column(kernel, blobs),
  line: column(line, blobs),
  amounts: Object.fromEntries(Object.entries(amounts).map(([name, place]) => [name, numbers(place, blobs)])),
});

function readStage(header: StageHeader, first: StageHeader, blobs: Uint8Array): Stage {
  const columns = (name: string) => column(header.columns[name]!, blobs);
  const stage: Stage = new Stage(
    header.name,
    () => new TextDecoder().decode(blobs.subarray(header.text[0], header.text[0] + header.text[1])),
    () =>
      new Graph({
        names: header.names,
        ops: header.ops,
        types: header.types,
        scopes: header.scopes,
        op: columns("op"),
        type: columns("type"),
        scope: columns("scope"),
        operandStart: columns("operand_start"),
        operand: columns("operand"),
        frame: columns("frame"),
        line: columns("line"),
        frames: stage.frames,
        attribution: stage.attribution,
        measures: Object.fromEntries(
          Object.entries(header.measures).map(([name, place]) => [name, numbers(place, blobs)]),
        ),
        groups: rows<Group>(header.tree, blobs),
        groupOf: column(header.tree_of, blobs),
        unread: column(header.unread, blobs),
        repeat: column(header.repeat, blobs),
        differ: column(header.differ, blobs),
        difference: header.difference ?? [],
        oneIteration: header.one_iteration && column(header.one_iteration, blobs),
        twin: column(header.twin, blobs),
        readKernelWords: header.kernel_words && (() => readKernelWords(header, blobs)),
        readAttributes: header.attribute_columns && (() => readAttributes(header, blobs)),
      }),
    () => rows<Frame>(header.frames, blobs),
    () => readAttribution(header, header.names.length, blobs),
    header.names.length,
    header.coverage,
    header.memory ? () => readMemory(header.memory!, blobs) : undefined,
    header.fates ? () => readFates(header.fates!, blobs) : undefined,
    () => readSets(header, first, blobs),
    header === first ? undefined : header.grades,
    header.shardings && (() => readShardings(header.shardings!, blobs)),
  );
  return stage;
}

function readSets(header: StageHeader, first: StageHeader, blobs: Uint8Array): EquationSets | undefined {
  if (header.sets) {
    const read = (name: string) => column(header.sets![name]!, blobs);
    return new EquationSets(read("code"), read("start"), read("node"), read("grade"));
  }
  const [here, there] = [first.keys?.[header.name], header.keys?.[first.name]];
  return here && there && EquationSets.ofKeys(column(here, blobs), column(there, blobs));
}

function readKernelWords({ kernel_words, kernel_texts }: StageHeader, blobs: Uint8Array): Map<number, string> {
  const [nodes, texts] = [column(kernel_words!.node, blobs), column(kernel_words!.text, blobs)];
  return new Map(Array.from(nodes, (node, i) => [node, kernel_texts![texts[i]!]!]));
}

function readAttributes({ attribute_keys, attribute_values, attribute_columns }: StageHeader, blobs: Uint8Array) {
  const read = (name: string) => column(attribute_columns![`attribute_${name}`]!, blobs);
  return new Attributes({
    start: read("start"),
    key: read("key"),
    value: read("value"),
    keys: attribute_keys ?? [],
    values: attribute_values ?? [],
  });
}

function readAttribution({ places, attribution }: StageHeader, size: number, blobs: Uint8Array): Attribution {
  const none = new Int32Array(size).fill(-1);
  const empty = new Int32Array(0);
  // Captures up to format 2 don't say which node belongs to which line.
  if (!places || !attribution)
    return new Attribution([], { line: none, mark: none, by: none, equation: none, start: empty, node: empty });
  const read = (name: keyof typeof attribution) => column(attribution[name], blobs);
  return new Attribution(rows<SourceLine>(places, blobs), {
    line: read("line"),
    mark: read("mark"),
    by: read("by"),
    equation: read("equation"),
    start: read("start"),
    node: read("node"),
  });
}

function readFates({ kinds, texts, passes, mapped, columns }: FatesHeader, blobs: Uint8Array): Fates {
  const read = (name: string) => column(columns[name]!, blobs);
  return new Fates({
    kinds,
    texts,
    passes,
    mapped,
    kind: read("kind"),
    inferred: read("inferred"),
    why: read("why"),
    before: read("before"),
    after: read("after"),
    step: read("step"),
    kernelStart: read("kernel_start"),
    kernel: read("kernel"),
  });
}

function readShardings({ mesh, texts, ways, text, way }: ShardingsHeader, blobs: Uint8Array): Shardings {
  const [textOf, wayOf] = [column(text, blobs), column(way, blobs)];
  return { mesh, text: (node) => texts[textOf[node]!]!, way: (node) => ways[wayOf[node]!]! };
}

function readMemory({ kinds, scheduled, shift, columns, donations }: MemoryHeader, blobs: Uint8Array): Memory {
  const read = (name: string) => column(columns[name]!, blobs);
  const [low, high] = [read("low"), read("high")];
  return new Memory({
    kinds,
    scheduled,
    order: read("order"),
    node: read("node"),
    array: read("array"),
    kind: read("kind"),
    space: read("space"),
    start: read("start"),
    end: read("end"),
    size: Float64Array.from(low, (bytes, row) => (high[row]! * 0x1000000 + bytes) * 2 ** shift),
    donations: column(donations, blobs),
  });
}

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
