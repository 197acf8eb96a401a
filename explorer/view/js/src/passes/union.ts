// What was there before a change and what is there after it, as one graph; of a large one, the parts that changed.

import { push } from "../core/buckets";
import { cut, opText, shortType } from "../core/labels";
import type { Effect, Key, Row, Versions } from "./passes";

const MOST = 160; // boxes: more can't be read
const HUB = 8; // neighbours: what has more of them connects nothing
const READ_WHOLE = 40; // instructions of a part that is a good picture
const FEW = 3; // unchanged readers of one instruction

export type State = "kept" | "new" | "gone" | "changed";

export type Box = { key: Key; row: Row; state: State; title: string; sub: string };

export interface Edge {
  from: number;
  to: number;
  state: State;
  /** From what a kernel holds to the kernel. */
  inside?: boolean;
}

const CALLS = /\bcalls=%?([\w.-]+)/;
const ROOT = /^\s*ROOT /;

/** The instructions of both sides, each once, and what reads what on either side. */
export class Union {
  readonly #before = new Map<Key, Row>();
  readonly #after = new Map<Key, Row>();
  readonly #states = new Map<Key, State>();
  readonly #readers = new Map<Key, Key[]>();
  readonly #roots: [Map<string, Key>, Map<string, Key>];
  /** A key that was renamed or moved, under the key it has after. */
  readonly #now = new Map<Key, Key>();

  constructor(
    private readonly versions: Versions,
    before: Int32Array,
    after: Int32Array,
    effect: Effect,
  ) {
    const { key } = versions.c;
    this.#roots = [this.#rootsOf(before), this.#rootsOf(after)];
    for (const [old, row] of effect.changed) {
      this.#now.set(key[old]!, key[row]!);
      this.#states.set(key[row]!, "changed");
    }
    for (const row of effect.born) this.#states.set(key[row]!, "new");
    for (const row of effect.died) this.#states.set(key[row]!, "gone");
    for (const row of before) if (key[row]! >= 0) this.#before.set(this.#keyOf(key[row]!), row);
    for (const row of after) if (key[row]! >= 0) this.#after.set(key[row]!, row);
    for (const [rows, old] of this.#sides)
      for (const [reader, row] of rows)
        for (const operand of this.#operands(row, old)) push(this.#readers, operand, reader);
  }

  get #sides(): [rows: Map<Key, Row>, isOld: boolean][] {
    return [
      [this.#before, true],
      [this.#after, false],
    ];
  }

  #keyOf = (key: Key): Key => this.#now.get(key) ?? key;

  #operands(row: Row, old: boolean): Key[] {
    const keys = Array.from(this.versions.operands(row));
    if (this.versions.op(row) === "fusion") {
      const root = this.#roots[old ? 0 : 1].get(CALLS.exec(this.versions.lines[row]!)?.[1] ?? "");
      if (root !== undefined) keys.push(root);
    }
    return old ? keys.map(this.#keyOf) : keys;
  }

  /** By computation, what it gives: what a kernel that runs it holds. */
  #rootsOf(rows: Int32Array): Map<string, Key> {
    const { key, computation, computations } = this.versions.c;
    const roots = new Map<string, Key>();
    for (const row of rows)
      if (key[row]! >= 0 && ROOT.test(this.versions.lines[row]!))
        roots.set(computations[computation[key[row]!]!]!, key[row]!);
    return roots;
  }

  /** What it reads, and who reads it: of those that stayed as they were, only a few. */
  #near(key: Key): Key[] {
    const readers = [...new Set(this.#readers.get(key))];
    const changed = readers.filter((reader) => this.#states.has(reader));
    const kept = readers.filter((reader) => !this.#states.has(reader));
    const [old, row] = [this.#before.get(key), this.#after.get(key)];
    return [
      ...changed,
      ...kept.slice(0, FEW),
      ...(old === undefined ? [] : this.#operands(old, true)),
      ...(row === undefined ? [] : this.#operands(row, false)),
    ];
  }

  /** What changed and what is beside it; where that is too much, one connected part of it. */
  around(chosen: Key, place: number): { boxes: Box[]; edges: Edge[]; place: number; places: number; cut: number } {
    const changed = [...this.#states.keys()];
    const beside = (keys: Key[]) => [...new Set([...keys, ...keys.flatMap((key) => this.#near(key))])];
    let keys = beside(changed);
    let [places, cut] = [1, 0];
    if (keys.length > MOST) {
      const parts = this.#parts(changed);
      places = parts.length;
      const of = parts.findIndex((part) => part.includes(chosen));
      if (of >= 0) place = of;
      keys = beside(parts[place]!);
      if (keys.length > MOST) {
        const near = this.#reached(of >= 0 ? chosen : parts[place]![0]!);
        cut = keys.length - near.length;
        keys = near;
      }
    }
    const when = (key: Key) => this.#after.get(key) ?? this.#before.get(key) ?? 0;
    const at = new Map(keys.sort((a, b) => when(a) - when(b)).map((key, i) => [key, i]));
    return { boxes: keys.map((key) => this.#box(key)), edges: this.#edges(at), place, places, cut };
  }

  /** The connected parts of what changed: the largest that can be read whole comes first. */
  #parts(changed: Key[]): Key[][] {
    const seen = new Set<Key>();
    const parts: Key[][] = [];
    const grow = (start: Key) => {
      if (seen.has(start)) return;
      seen.add(start);
      const part = [start];
      for (let i = 0; i < part.length; i++) {
        const near = this.#near(part[i]!).filter((other) => this.#states.has(other));
        // A constant that many read connects nothing.
        if (near.length > HUB) continue;
        for (const other of near) {
          if (seen.has(other)) continue;
          seen.add(other);
          part.push(other);
        }
      }
      parts.push(part);
    };
    const isHub = (key: Key) => this.#near(key).filter((other) => this.#states.has(other)).length > HUB;
    changed.filter((key) => !isHub(key)).forEach(grow);
    changed.forEach(grow);
    // An edge of both sides is more telling than one that only came or went.
    const weightOf = (part: Key[]) =>
      part.length <= READ_WHOLE ? new Set(part.map((key) => this.#states.get(key))).size : 0;
    const weights = new Map(parts.map((part) => [part, weightOf(part)]));
    return parts.sort((x, y) => weights.get(y)! - weights.get(x)! || y.length - x.length);
  }

  /** What is nearest to one, as much as can be read. */
  #reached(start: Key): Key[] {
    const part = new Set([start]);
    for (const key of part) for (const other of this.#near(key)) if (part.size < MOST) part.add(other);
    return [...part];
  }

  #box(key: Key): Box {
    const { versions } = this;
    const row = this.#after.get(key) ?? this.#before.get(key)!;
    const name = versions.name(key);
    const op = opText(versions.op(row));
    const type = shortType(versions.type(row));
    const sub = name.startsWith(op) && op !== "fusion" ? type : `${op} ${type}`;
    return { key, row, state: this.#states.get(key) ?? "kept", title: cut(name, 34), sub: cut(sub, 34) };
  }

  #edges(at: Map<Key, number>): Edge[] {
    const { computation } = this.versions.c;
    const states = new Map<string, Edge>();
    for (const [rows, old] of this.#sides)
      for (const [key, to] of at) {
        const row = rows.get(key);
        if (row === undefined) continue;
        for (const operand of this.#operands(row, old)) {
          const from = at.get(operand);
          if (from === undefined) continue;
          const edge = states.get(`${from} ${to}`);
          const inside = computation[operand] !== computation[key];
          if (!edge) states.set(`${from} ${to}`, { from, to, state: old ? "gone" : "new", inside });
          else if (!old && edge.state === "gone") edge.state = "kept";
        }
      }
    return [...states.values()];
  }
}
