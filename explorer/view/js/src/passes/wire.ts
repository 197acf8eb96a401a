// The recorded passes of a capture, as explorer/files/passes.py writes them.

import type { Frame } from "../core/graph";
import { type Column, decoded, numbers, type Place, type Places, rows, textAt } from "../core/wire";
import { type Link, type Names, type Pass, Passes, type VersionColumns, Versions } from "./passes";

export interface PassesHeader
  extends Record<Names, string[]>,
    Record<"counts" | "columns" | "links", Places>,
    Record<"seconds" | "lines" | "own" | "runs" | "run_counts" | "firsts", Place>,
    Record<"passes" | "frames", Record<string, Column>> {
  complete: boolean;
  omitted: string;
}

const KINDS = ["rewritten", "merged", "fused", "duplicated", "with", "unused", "unknown", "replaced", "inlined"];

export function readPasses(header: PassesHeader, blobs: Uint8Array): Passes {
  const { names, computations, ops, types, own, runs, run_counts, firsts } = header;
  const columns = { ...header.columns, own, runs, run_counts, firsts };
  const versions = new Versions(
    {
      ...decoded<Omit<VersionColumns, Names | "frames">>(columns, blobs),
      ...{ names, computations, ops, types, frames: rows<Frame>(header.frames, blobs) },
    },
    () => textAt(header.lines, blobs),
  );
  const counts = decoded(header.counts, blobs);
  const count = (name: string, i: number) => counts[name]![i]!;
  const seconds = numbers(header.seconds, blobs);
  const all = rows<{ name: string; pipeline: string }>(header.passes, blobs).map(
    (named, i): Pass => ({
      ...named,
      ...{ born: count("born", i), died: count("died", i), changed: count("changed", i) },
      moved: count("moved", i) > 0,
      ...{ instructions: count("instructions", i), first: count("first", i), snapshot: count("snapshot", i) },
      seconds: Number.isNaN(seconds[i]!) ? undefined : seconds[i]!,
    }),
  );
  const { old: olds, position, kind, new: news, inferred } = decoded(header.links, blobs);
  const links = Array.from(olds!, (old, i): Link => {
    const of = { position: position![i]!, old, new: news![i]! };
    return { ...of, kind: KINDS[kind![i]!] ?? "unknown", inferred: inferred![i]! > 0 };
  });
  return new Passes(all, versions, links, header.complete, header.omitted);
}
