// The binary form of a capture, as explorer/model/wire.py writes it.

import { Capture, type Frame, Graph, type Group, type Source, Stage } from "./model";

const PREFIX = 44; // magic, version, sizes and checksum: Python checks them, the browser only reads on
const VERSION = 2;

type Place = [offset: number, size: number];
type Column = Place | { strings: string[]; codes: Place };

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
  placed: Place;
  keys: Place;
  tree: Record<string, Column>;
  tree_of: Place;
}

export interface Header {
  function: string;
  file: string;
  line: number;
  signature: string;
  durations: Record<string, number>;
  environment: Record<string, string>;
  failure: string;
  cost: Record<string, number>;
  memory: Record<string, number>;
  constants: { name: string; type: string; bytes: number }[];
  sources: Source[];
  stages: StageHeader[];
}

export async function unpack(packed: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function decode(wire: Uint8Array): Promise<Capture> {
  const version = new DataView(wire.buffer, wire.byteOffset).getUint32(8, true);
  if (version !== VERSION) throw new Error(`this capture has format ${version}, this viewer reads ${VERSION}`);
  const raw = await unpack(wire.subarray(PREFIX));
  const size = new DataView(raw.buffer, raw.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + size))) as Header;
  const blobs = raw.subarray(4 + size);
  return new Capture(header, header.stages.map((stage) => readStage(stage, blobs)));
}

function readStage(header: StageHeader, blobs: Uint8Array): Stage {
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
        keys: column(header.keys, blobs),
        placed: column(header.placed, blobs),
        measures: Object.fromEntries(Object.entries(header.measures).map(([name, place]) => [name, numbers(place, blobs)])),
        groups: rows<Group>(header.tree, blobs),
        groupOf: column(header.tree_of, blobs),
      }),
    () => rows<Frame>(header.frames, blobs),
    header.names.length,
    header.coverage,
  );
  return stage;
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
function numbers([offset, size]: Place, blobs: Uint8Array): Float32Array {
  const count = size / 4;
  const bytes = new Uint8Array(size);
  for (let plane = 0; plane < 4; plane++) for (let i = 0; i < count; i++) bytes[4 * i + plane] = blobs[offset + plane * count + i]!;
  return new Float32Array(bytes.buffer);
}

function rows<Row>(table: Record<string, Column>, blobs: Uint8Array): Row[] {
  const names = Object.keys(table);
  const columns = names.map((name) => {
    const from = table[name]!;
    if (Array.isArray(from)) return Array.from(column(from, blobs));
    return Array.from(column(from.codes, blobs), (code) => from.strings[code]!);
  });
  return (columns[0] ?? []).map((_, i) => Object.fromEntries(names.map((name, k) => [name, columns[k]![i]])) as Row);
}
