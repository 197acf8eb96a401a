// The ledger's tables, as explorer/view/ledger/message.py writes them: they only grow, and each message is a slice of
// each.

import { made } from "../core/buckets";
import { type Sentence, words } from "../core/dom";

export type Place = { line: number; file: string; label: string; text: string; function: string };

export type Reason = { kind: string; leaf: string; before: string; after: string; fix: string; text: string };

export type Family = { name: string; file: string; line: number; eager: boolean };

export type Steps = Record<"trace" | "lower" | "compile", number>;

/** One call that left the fast path: what it had to do, in seconds. */
export interface Call
  extends Steps,
    Record<"index" | "number" | "start" | "saved" | "seconds", number>,
    Record<"isHit" | "isMiss" | "isAgain", boolean>,
    Record<"id" | "thread" | "device" | "error" | "process", string> {
  family: Family;
  stack: Place[];
  reason: Reason;
}

/** What is the case now, whole in every message; explorer/view/ledger/message.py. */
export interface Status {
  verdict: { kind: string; text: Sentence; cause: Sentence; cure: string; function: string };
  storms: { text: Sentence; cause: Sentence; cure: string; function: string }[];
  /** Recompiles that will come if a result is passed in again. */
  foreseen: { text: string; cure: string; function: string }[];
  running: { function: string; place: string; stage: string; since: number }[];
  varying: { function: string; rows: Varying[] }[];
  /** When cells ran, by a clock; empty if nobody noted it. */
  cells: [label: string, from: number, to: number][];
  notes: string[];
  now: number;
  watching: boolean;
}

/** An aspect of an argument over all calls, as `shape[0]`: its most frequent values with their counts. */
export type Varying = { path: string; aspect: string; values: [text: string, count: number][]; distinct: number };

type Sizes = Record<(typeof TABLES)[number], number>;
const TABLES = ["strings", "places", "reasons", "functions", "stacks", "calls"] as const;
const HIT = 1;
const MISS = 2;
const AGAIN = 4;

export interface Message {
  version: number;
  /** Tables of another epoch were begun anew: nothing of the former fits. */
  epoch?: number;
  from: Partial<Sizes>;
  strings: string[];
  places: [number, number, number, number, number][];
  reasons: [number, number, number, number, number, number][];
  functions: [number, number, number, number][];
  stacks: number[][];
  calls: Record<string, number[]>;
  status: Status;
}

export const VERSION = 1;

export class Data {
  readonly calls: Call[] = [];
  status!: Status;
  /** When the last message came, by this page's clock: what runs goes on from there. */
  received = 0;
  epoch = 0;
  private readonly strings: string[] = [];
  private readonly places: Place[] = [];
  private readonly reasons: Reason[] = [];
  private readonly families: Family[] = [];
  private readonly stacks: Place[][] = [];

  constructor(message: Message) {
    if (message.version !== VERSION)
      throw new Error(`this ledger's format is ${message.version}, and ${VERSION} can be read`);
    this.take(message);
  }

  get sizes(): Sizes {
    const { strings, places, reasons, families, stacks, calls } = this;
    const tables = { strings, places, reasons, functions: families, stacks, calls };
    return Object.fromEntries(TABLES.map((table) => [table, tables[table].length])) as Sizes;
  }

  /** Take in what is new; false if something before it is missing. What is here already is passed over. */
  take(message: Message): boolean {
    const epoch = message.epoch ?? 0;
    if (epoch !== this.epoch) {
      if (TABLES.some((table) => message.from[table])) return false;
      for (const rows of [this.calls, this.strings, this.places, this.reasons, this.families, this.stacks])
        rows.length = 0;
      this.epoch = epoch;
    }
    const mine = this.sizes;
    if (TABLES.some((table) => (message.from[table] ?? 0) > mine[table])) return false;
    const fresh = <T>(table: Exclude<keyof Sizes, "calls">): T[] =>
      (message[table] as T[]).slice(mine[table] - (message.from[table] ?? 0));
    this.strings.push(...fresh<string>("strings"));
    const text = (i: number) => this.strings[i]!;
    for (const [line, file, label, code, name] of fresh<Message["places"][0]>("places"))
      this.places.push({ line, file: text(file), label: text(label), text: text(code), function: text(name) });
    for (const [kind, leaf, before, after, fix, sentence] of fresh<Message["reasons"][0]>("reasons"))
      this.reasons.push({
        ...{ kind: text(kind), leaf: text(leaf), before: text(before), after: text(after) },
        ...{ fix: text(fix), text: text(sentence) },
      });
    for (const [name, file, line, eager] of fresh<Message["functions"][0]>("functions"))
      this.families.push({ name: text(name), file: text(file), line, eager: eager === 1 });
    for (const stack of fresh<number[]>("stacks")) this.stacks.push(stack.map((place) => this.places[place]!));
    this.#takeCalls(message.calls, mine.calls - (message.from.calls ?? 0));
    this.status = message.status;
    this.received = performance.now();
    return true;
  }

  #takeCalls(columns: Message["calls"], skipped: number): void {
    let start = 0;
    for (let i = 0; i < columns.number!.length; i++) {
      const of = (name: string) => columns[name]![i]!;
      start += of("start");
      if (i < skipped) continue;
      const seconds = (name: string) => of(name) / 1e6;
      const [trace, lower, compile] = [seconds("trace"), seconds("lower"), seconds("compile")];
      const flags = of("flags");
      const text = (name: string) => this.strings[of(name)]!;
      this.calls.push({
        index: this.calls.length,
        number: of("number"),
        family: this.families[of("function")]!,
        stack: this.stacks[of("stack")]!,
        start: start / 1000,
        ...{ trace, lower, compile, saved: seconds("saved"), seconds: trace + lower + compile },
        reason: this.reasons[of("reason")]!,
        ...{ isHit: (flags & HIT) > 0, isMiss: (flags & MISS) > 0, isAgain: (flags & AGAIN) > 0 },
        ...{ id: text("id"), thread: text("thread"), device: text("device"), error: text("error") },
        process: text("process"),
      });
    }
  }
}

/** All calls of one family; eager operations are one group together. */
export interface Group extends Record<"compiles" | "again" | "seconds" | "first", number> {
  key: string;
  name: string;
  eager: boolean;
  family: Family;
  calls: Call[];
  /** Why it compiled again, the most expensive first. */
  reasons: { reason: Reason; calls: Call[]; seconds: number }[];
}

const EAGER = "eager operations";

/** By family, the most expensive first. */
export function grouped(calls: readonly Call[]): Group[] {
  const groups = new Map<Family | string, Group>();
  for (const call of calls) {
    const { family, start: first } = call;
    const { eager } = family;
    const of = eager ? EAGER : family;
    const group = made(groups, of, (): Group => {
      const name = eager ? EAGER : family.name;
      const key = eager ? EAGER : `${name}\n${family.file}\n${family.line}`;
      return { key, name, eager, family, calls: [], compiles: 0, again: 0, seconds: 0, first, reasons: [] };
    });
    group.calls.push(call);
    group.seconds += call.seconds;
    if (!call.isMiss) group.compiles++;
    if (call.isAgain) group.again += call.seconds;
  }
  const all = [...groups.values()];
  for (const group of all) group.reasons = reasonsOf(group.calls);
  return all.sort((a, b) => b.seconds - a.seconds || (a.name < b.name ? -1 : 1));
}

function reasonsOf(calls: readonly Call[]): Group["reasons"] {
  const rows = new Map<string, Group["reasons"][0]>();
  for (const call of calls) {
    if (!call.isAgain) continue;
    const { reason } = call;
    const row = made(rows, `${reason.kind}\n${reason.leaf}`, () => ({ reason, calls: [], seconds: 0 }));
    row.reason = call.reason; // the newest: its advice has seen most values
    row.calls.push(call);
    row.seconds += call.seconds;
  }
  return [...rows.values()].sort((a, b) => b.seconds - a.seconds);
}

/** The values that a leaf had: `32 … 40` for numbers, else the first few. */
export function varied(calls: readonly Call[]): string {
  const values = new Set<string>();
  for (const { reason } of calls) for (const value of [reason.before, reason.after]) if (value) values.add(value);
  const all = [...values];
  if (all.length > 2 && all.every((value) => /^-?\d+$/.test(value))) {
    const numbers = all.map(Number).sort((a, b) => a - b);
    return `${numbers[0]} … ${numbers.at(-1)}`;
  }
  return all.slice(0, 3).join(" → ") + (all.length > 3 ? " …" : "");
}

/** What a filter keeps: every word must stand in the function's name, a place, or the reason. */
export function matching(calls: readonly Call[], filter: string): readonly Call[] {
  const wanted = words(filter);
  if (!wanted.length) return calls;
  const seen = new Map<object, string>();
  const lower = (thing: object, text: () => string): string => made(seen, thing, () => text().toLowerCase());
  const placed = (at: Place) => `${at.label} line ${at.line} ${at.function} ${at.text}`;
  return calls.filter(({ family, stack, reason, id, process }) => {
    const place = lower(stack, () => stack.map(placed).join("\n"));
    const why = lower(reason, () => `${reason.kind} ${reason.leaf} ${reason.before} → ${reason.after} ${reason.text}`);
    const what = lower(family, () => `${family.name} ${family.eager ? EAGER : ""}`);
    return wanted.every((word) => [what, why, place, id, process].some((text) => text.includes(word)));
  });
}
