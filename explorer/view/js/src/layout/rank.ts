// Which layer each node goes to. Every forward edge leads to a lower layer (a larger number).

import { type Buckets, buckets, rowOf } from "../core/buckets";

/** A connected graph: edge e leads from `from[e]` to `to[e]`; no edge occurs twice. */
export type Dag = { width: Float64Array; height: Float64Array; from: Int32Array; to: Int32Array };

export interface Ranks {
  layer: Int32Array;
  layers: number;
  back: Uint8Array; // per edge: 1 where it closes a cycle (or a self loop) and so leads upwards
}

export function rank(dag: Dag, rowWidth: number, gap: number): Ranks {
  const { from, to, width } = dag;
  const n = width.length;
  const users = buckets(n, from);
  const operands = buckets(n, to);
  const back = cycles(n, users, to);
  const order = topological(n, users, to, back);
  const floats = floating(order, users, operands, from, back);

  // A layer holds only so much width, so later nodes move on to the next one with room. In program order that puts
  // many parallel chains into bands below each other, each chain whole, rather than into one endless row.
  const layer = new Int32Array(n);
  const rows = new Rows(n, rowWidth);
  for (const node of order) {
    if (floats[node]) continue;
    let first = n; // rows are counted from the middle: those that float may need some above
    for (const edge of rowOf(operands, node))
      if (!back[edge] && !floats[from[edge]!]) first = Math.max(first, layer[from[edge]!]! + 1);
    layer[node] = rows.take(first, 1, width[node]! + gap);
  }
  rows.turn();
  for (let i = n - 1; i >= 0; i--) {
    const node = order[i]!;
    if (!floats[node]) continue;
    let last = 2 * n;
    for (const edge of rowOf(users, node)) if (!back[edge]) last = Math.min(last, layer[to[edge]!]! - 1);
    layer[node] = rows.take(last === 2 * n ? n : last, -1, width[node]! + gap);
  }
  return { layer, layers: compress(layer, 2 * n + 1), back };
}

/** The edges that close a cycle, met while walking depth first in program order. */
function cycles(n: number, users: Buckets, to: Int32Array): Uint8Array {
  const back = new Uint8Array(to.length);
  walk(n, users, to, (edge, open) => {
    if (open) back[edge] = 1;
    return true;
  });
  return back;
}

/** Every edge but the skipped ones leads forward in it. Where the program's order does that, it is the program's. */
function topological(n: number, users: Buckets, to: Int32Array, skip: Uint8Array): Int32Array {
  return walk(n, users, to, (edge) => !skip[edge], true).reverse();
}

/** Depth first from every node in turn; returns the nodes in the order in which they were left. */
function walk(
  n: number,
  users: Buckets,
  to: Int32Array,
  follow: (edge: number, open: boolean) => boolean,
  backwards = false,
): Int32Array {
  const state = new Uint8Array(n); // 0 unseen, 1 on the stack, 2 left
  const cursor = users.start.slice();
  const left = new Int32Array(n);
  const stack: number[] = [];
  let count = 0;
  for (let i = 0; i < n; i++) {
    const root = backwards ? n - 1 - i : i;
    if (state[root]) continue;
    state[root] = 1;
    stack.push(root);
    while (stack.length > 0) {
      const node = stack[stack.length - 1]!;
      if (cursor[node]! === users.start[node + 1]!) {
        state[node] = 2;
        left[count++] = node;
        stack.pop();
        continue;
      }
      const edge = users.list[cursor[node]!++]!;
      const next = to[edge]!;
      if (follow(edge, state[next] === 1) && state[next] === 0) {
        state[next] = 1;
        stack.push(next);
      }
    }
  }
  return left;
}

/** Constants, parameters and what is made from them alone for one user: drawn next to that user, not at the top. */
function floating(
  order: Int32Array,
  users: Buckets,
  operands: Buckets,
  from: Int32Array,
  back: Uint8Array,
): Uint8Array {
  const floats = new Uint8Array(order.length);
  for (const node of order) {
    let free = 1;
    for (const edge of rowOf(operands, node))
      if (!back[edge] && !(floats[from[edge]!] && rowOf(users, from[edge]!).length === 1)) free = 0;
    floats[node] = free;
  }
  return floats;
}

/** Rows that fill up; finding the next one with room takes nearly constant time (union-find over full rows). */
class Rows {
  readonly #used: Float64Array;
  readonly #full: Uint8Array;
  readonly #next: Int32Array;

  constructor(
    n: number,
    private readonly limit: number,
  ) {
    this.#used = new Float64Array(2 * n + 2);
    this.#full = new Uint8Array(2 * n + 2);
    this.#next = Int32Array.from(this.#full, (_, row) => row);
  }

  /** From now on look for room upwards. */
  turn(): void {
    for (let row = 0; row < this.#next.length; row++) this.#next[row] = this.#full[row] && row > 0 ? row - 1 : row;
  }

  take(row: number, step: 1 | -1, width: number): number {
    row = this.#open(row);
    while (this.#used[row]! > 0 && this.#used[row]! + width > this.limit) {
      this.#full[row] = 1;
      this.#next[row] = row + step;
      row = this.#open(row);
    }
    this.#used[row]! += width;
    return row;
  }

  #open(row: number): number {
    while (this.#next[row] !== row) row = this.#next[row] = this.#next[this.#next[row]!]!;
    return row;
  }
}

/** Numbers the layers that are used 0, 1, 2, … in place, and returns how many there are. */
function compress(layer: Int32Array, rows: number): number {
  const number = new Int32Array(rows + 1);
  for (const row of layer) number[row] = 1;
  let count = 0;
  for (let row = 0; row <= rows; row++) if (number[row]) number[row] = count++;
  for (let i = 0; i < layer.length; i++) layer[i] = number[layer[i]!]!;
  return count;
}
