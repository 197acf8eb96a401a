// The recorded passes of a capture, as explorer/files/passes.py writes them.

import type { Frame } from "../core/graph";
import { type Column, column, numbers, type Place, rows } from "../core/wire";
import { type Link, type Pass, Passes, Versions } from "./passes";

export interface PassesHeader {
  complete: boolean;
  omitted: string;
  passes: Record<string, Column>;
  counts: Record<string, Place>;
  seconds: Place;
  lines: Place;
  columns: Record<string, Place>;
  names: string[];
  computations: string[];
  ops: string[];
  types: string[];
  frames: Record<string, Column>;
  own: Place;
  runs: Place;
  run_counts: Place;
  firsts: Place;
  links: Record<string, Place>;
}

const KINDS = ["rewritten", "merged", "fused", "duplicated", "with", "unused", "unknown", "replaced", "inlined"];

export function readPasses(header: PassesHeader, blobs: Uint8Array): Passes {
  const read = (name: string) => column(header.columns[name]!, blobs);
  const versions = new Versions(
    {
      key: read("key"),
      op: read("op"),
      type: read("type"),
      frame: read("frame"),
      operandStart: read("operand_start"),
      operand: read("operand"),
      computation: read("computation"),
      names: header.names,
      computations: header.computations,
      ops: header.ops,
      types: header.types,
      frames: rows<Frame>(header.frames, blobs),
      own: column(header.own, blobs),
      runs: column(header.runs, blobs),
      runCounts: column(header.run_counts, blobs),
      firsts: column(header.firsts, blobs),
    },
    () => new TextDecoder().decode(blobs.subarray(header.lines[0], header.lines[0] + header.lines[1])),
  );
  const counts = Object.fromEntries(Object.entries(header.counts).map(([name, place]) => [name, column(place, blobs)]));
  const seconds = numbers(header.seconds, blobs);
  const all = rows<{ name: string; pipeline: string }>(header.passes, blobs).map(
    (named, i): Pass => ({
      ...named,
      born: counts.born![i]!,
      died: counts.died![i]!,
      changed: counts.changed![i]!,
      moved: counts.moved![i]! > 0,
      instructions: counts.instructions![i]!,
      first: counts.first![i]!,
      snapshot: counts.snapshot![i]!,
      seconds: Number.isNaN(seconds[i]!) ? undefined : seconds[i]!,
    }),
  );
  const columns = Object.fromEntries(Object.entries(header.links).map(([name, place]) => [name, column(place, blobs)]));
  const links = Array.from(
    columns.old!,
    (old, i): Link => ({
      position: columns.position![i]!,
      old,
      kind: KINDS[columns.kind![i]!] ?? "unknown",
      new: columns.new![i]!,
      inferred: columns.inferred![i]! > 0,
    }),
  );
  return new Passes(all, versions, links, header.complete, header.omitted);
}
