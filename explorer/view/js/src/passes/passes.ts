// What each pass of the compiler did: the module from snapshot to snapshot, as explorer/model/text_versions.py keeps
// it.

import { push } from "../core/buckets";
import { type Column, decoded, numbers, type Place, type Places, rows, textAt } from "../core/capture";
import type { Frame } from "../core/graph";

/** One run of a pass; the counts are of instructions. */
export interface Pass extends Record<"born" | "died" | "changed" | "instructions", number> {
  name: string;
  pipeline: string;
  moved: boolean;
  /** The snapshots before and after it. */
  first: number;
  snapshot: number;
  seconds: number | undefined;
}

/** What became of an instruction in a pass; see explorer/analysis/pass_history.py. */
export type Link = { position: number; old: number; kind: string; new: number; inferred: boolean };

export type Names = "names" | "computations" | "ops" | "types";
type OfRow = "key" | "op" | "type" | "frame" | "operandStart" | "operand" | "computation";

export interface VersionColumns
  extends Record<Names, string[]>,
    Record<OfRow | "runs" | "runCounts" | "firsts", Int32Array> {
  frames: Frame[];
  /** For each frame, the innermost of its stack that is in the user's own code. */
  own: Int32Array;
}

export type Row = number;
export type Key = number;

/** A line of each side, -1 where a side has none. */
export type Pair = [before: Row, after: Row];

export type Effect = { born: Row[]; died: Row[]; changed: Pair[] };

export class Versions {
  #text_?: string[];
  readonly #replayed = new Map<number, Int32Array>();

  constructor(
    readonly c: VersionColumns,
    private readonly readText: () => string,
  ) {}

  get lines(): string[] {
    return (this.#text_ ??= this.readText().split("\n"));
  }

  /** The rows of a snapshot in the order of its text; made from the one before it. */
  rows(snapshot: number): Int32Array {
    let from = snapshot;
    while (from > 0 && !this.#replayed.has(from)) from--;
    let rows = this.#replayed.get(from) ?? this.#replay(new Int32Array(0), 0);
    for (let at = from + 1; at <= snapshot; at++) rows = this.#replay(rows, at);
    this.#replayed.set(snapshot, rows);
    if (this.#replayed.size > REMEMBERED) this.#replayed.delete(this.#replayed.keys().next().value!);
    return rows;
  }

  #replay(before: Int32Array, snapshot: number): Int32Array {
    const { runs, runCounts, firsts } = this.c;
    let at = 0;
    for (let i = 0; i < snapshot; i++) at += runCounts[i]!;
    const end = at + runCounts[snapshot]!;
    let size = 0;
    for (let i = at; i < end; i += 2) size += runs[i + 1]!;
    const rows = new Int32Array(size);
    let used = 0;
    let fresh = firsts[snapshot]!;
    for (let i = at; i < end; i += 2) {
      const [start, length] = [runs[i]!, runs[i + 1]!];
      if (start < 0) for (let k = 0; k < length; k++) rows[used + k] = fresh++;
      else rows.set(before.subarray(start, start + length), used);
      used += length;
    }
    return rows;
  }

  name = (key: Key): string => this.c.names[key]!;
  op = (row: Row): string => this.c.ops[this.c.op[row]!] ?? "";
  type = (row: Row): string => this.c.types[this.c.type[row]!] ?? "";
  operands = (row: Row): Int32Array =>
    this.c.operand.subarray(this.c.operandStart[row]!, this.c.operandStart[row + 1]!);

  /** What turned one snapshot into another, as in explorer/model/passes.py. */
  effect(first: number, snapshot: number): Effect {
    const { key, names } = this.c;
    const [before, after] = [new Set(this.rows(first)), new Set(this.rows(snapshot))];
    const died = new Map<Key, Row>();
    const born = new Map<Key, Row>();
    for (const row of before) if (!after.has(row) && key[row]! >= 0) died.set(key[row]!, row);
    for (const row of after) if (!before.has(row) && key[row]! >= 0) born.set(key[row]!, row);
    const left = new Map([...died.keys()].filter((k) => !born.has(k)).map((k) => [names[k]!, k]));
    const effect: Effect = { born: [], died: [], changed: [] };
    const kept = new Set<Key>();
    for (const [k, row] of born) {
      const old = left.get(names[k]!) ?? k;
      if (died.has(old)) {
        kept.add(old);
        effect.changed.push([died.get(old)!, row]);
      } else effect.born.push(row);
    }
    for (const [k, row] of died) if (!kept.has(k)) effect.died.push(row);
    return effect;
  }
}

const REMEMBERED = 8;

export class Passes {
  /** Those that changed something. */
  readonly shown: Pass[];
  readonly #ofKey = new Map<Key, Link[]>();

  constructor(
    readonly all: Pass[],
    readonly versions: Versions,
    readonly links: Link[],
    readonly isComplete: boolean,
    readonly omitted: string,
  ) {
    this.shown = all.filter((pass) => pass.born || pass.died || pass.changed || pass.moved);
    for (const link of links)
      for (const key of link.new >= 0 && link.kind !== "with" ? [link.old, link.new] : [link.old])
        push(this.#ofKey, key, link);
  }

  linksOf = (key: Key): Link[] => this.#ofKey.get(key) ?? [];
}

/** Two snapshots side by side: what both have stays put as far as its order does, the rest is removed and added. */
export function aligned(before: Int32Array, after: Int32Array): Pair[] {
  const place = new Map<Row, number>();
  for (const [at, row] of before.entries()) place.set(row, at);
  const shared: [number, number][] = [];
  after.forEach((row, at) => {
    const old = place.get(row);
    if (old !== undefined) shared.push([old, at]);
  });
  const pairs: Pair[] = [];
  let [i, j] = [0, 0];
  for (const [at, to] of [...increasing(shared), [before.length, after.length] as const]) {
    while (i < at) pairs.push([before[i++]!, -1]);
    while (j < to) pairs.push([-1, after[j++]!]);
    if (at < before.length && to < after.length) pairs.push([before[i++]!, after[j++]!]);
  }
  return pairs;
}

/** The longest subsequence of pairs, sorted by their second, whose firsts rise too. */
function increasing(pairs: [number, number][]): [number, number][] {
  const ends: number[] = []; // the pair that a subsequence of each length ends in, with the least first
  const previous = new Int32Array(pairs.length);
  pairs.forEach(([first], i) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]!]![0] < first) low = middle + 1;
      else high = middle;
    }
    previous[i] = low ? ends[low - 1]! : -1;
    ends[low] = i;
  });
  const chain: [number, number][] = [];
  for (let at = ends[ends.length - 1] ?? -1; at >= 0; at = previous[at]!) chain.push(pairs[at]!);
  return chain.reverse();
}

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
