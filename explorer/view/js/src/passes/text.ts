// Two snapshots of a module as text, side by side or one below the other, with what changed marked.

import { dataAt, element } from "../core/dom";
import { Rows } from "../core/row_list";
import { aligned, type Key, type Pair, type Row, type Versions } from "./passes";

const CONTEXT = 3; // lines around a change
const LONGEST = 500;
const MOST_CELLS = 20_000; // of the table that compares two lines word by word
const SIGNS = { same: "", gone: "−", new: "+", changed: "~", moved: "↕" };

type Kind = keyof typeof SIGNS;

/** A line of each side; -1 where a side has none; `skipped` stands for that many equal lines. */
interface Line {
  kind: Kind;
  old: Row;
  new: Row;
  skipped?: number;
  /** Only this side of a rewritten line. */
  half?: "gone" | "new";
}

export class ChangeText {
  /** Beside each other, or the old line above the new one. */
  split = false;
  chosen: Key = -1;
  readonly #rows = new Rows("change-text", (row) => this.#draw(row));
  readonly root = this.#rows.root;
  #lines: Line[] = [];
  private versions?: Versions;

  constructor(choose: (key: Key) => void) {
    this.root.role = "region";
    this.root.ariaLabel = "what changed, as text";
    this.root.addEventListener("click", (event) => {
      // A click of the keyboard is one on the row.
      const target = event.target as Element;
      const key = dataAt(event, "key") ?? target.querySelector<HTMLElement>("[data-key]")?.dataset.key;
      if (key !== undefined && target !== this.root && !String(getSelection())) choose(Number(key));
    });
  }

  show(versions: Versions, first: number, snapshot: number): void {
    this.versions = versions;
    const lines = folded(paired(versions, versions.rows(first), versions.rows(snapshot)));
    this.#lines = this.split ? lines : lines.flatMap(unfolded);
    this.root.classList.toggle("split", this.split);
    this.root.scrollTop = 0;
    this.#rows.reset(this.#lines.length);
  }

  /** Mark what is chosen; bring its first line into sight on request. */
  light(scroll: boolean): void {
    this.#rows.redraw();
    if (!scroll || this.chosen < 0 || !this.versions) return;
    const { key } = this.versions.c;
    const at = this.#lines.findIndex((line) => key[line.new] === this.chosen || key[line.old] === this.chosen);
    if (at >= 0) this.#rows.show(at);
  }

  /** Mark the drawn lines of instructions that pass. */
  hover(passes: (row: Row) => boolean): void {
    this.#rows.each((made, index) => {
      const { old, new: row } = this.#lines[index]!;
      made.classList.toggle("over", (row >= 0 && passes(row)) || (old >= 0 && passes(old)));
    });
  }

  /** The row of the instruction that an element shows, -1 for none. */
  rowAt(target: Element): Row {
    const line = this.#lines[Number(target.closest<HTMLElement>("[data-row]")?.dataset.row ?? -1)];
    return !line ? -1 : line.half === "gone" || line.new < 0 ? line.old : line.new;
  }

  #draw(index: number): HTMLElement {
    const line = this.#lines[index]!;
    if (line.skipped) return element("div.row.skipped", `⋯ ${line.skipped} equal lines`);
    const made = element("div", { class: `row ${line.kind}`, "data-row": index });
    const half = line.half ?? (line.new >= 0 ? "new" : "gone");
    if (this.split || half === "gone") made.append(this.#side(line, line.old, line.new, "gone"));
    if (this.split || half === "new") made.append(this.#side(line, line.new, line.old, "new"));
    return made;
  }

  #side(line: Line, row: Row, other: Row, as: "gone" | "new"): HTMLElement {
    const { versions } = this;
    if (row < 0 || !versions) return element("span.side.none");
    const { kind } = line;
    const sign = element("i", SIGNS[kind === "gone" || kind === "new" ? as : kind]);
    const [text, before] = [versions.lines[row]!, kind === "changed" ? versions.lines[other] : undefined];
    const code = element("span.code", this.split ? { title: text.trim() } : {}, ...marked(text, before));
    const look = kind === "same" ? "" : kind === "moved" ? "moved" : as;
    const made = element("span", { class: `side ${look}` }, sign, code);
    const key = versions.c.key[row]!;
    if (key >= 0) made.dataset.key = String(key);
    if (key >= 0 && key === this.chosen) made.classList.add("chosen");
    return made;
  }
}

/** A line; of one that was rewritten, the words that differ are in marks. */
function marked(text: string, other: string | undefined): (Node | string)[] {
  if (other === undefined) return [text.slice(0, LONGEST)];
  const [words, others] = [wordsOf(text), wordsOf(other)];
  const shared = common(words, others);
  const parts: (Node | string)[] = [];
  for (let i = 0; i < words.length; ) {
    let end = i + 1;
    while (end < words.length && shared[end] === shared[i]) end++;
    const piece = words.slice(i, end).join("");
    parts.push(shared[i] ? piece : element("mark", piece));
    i = end;
  }
  return parts;
}

const wordsOf = (line: string): string[] => line.slice(0, LONGEST).match(/[\w.\-%]+|\s+|./g) ?? [];

/** Which of the words a longest common subsequence has; of a long line, what both start and end with. */
function common(words: string[], others: string[]): Uint8Array {
  const shared = new Uint8Array(words.length);
  let [start, end] = [0, 0];
  while (start < words.length && words[start] === others[start]) shared[start++] = 1;
  while (
    end < Math.min(words.length, others.length) - start &&
    words[words.length - 1 - end] === others[others.length - 1 - end]
  )
    shared[words.length - ++end] = 1;
  const [n, m] = [words.length - start - end, others.length - start - end];
  if (n * m > MOST_CELLS) return shared;
  const wide = m + 1;
  const lengths = new Uint16Array((n + 1) * wide);
  const same = (i: number, j: number) => words[start + i] === others[start + j];
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--)
      lengths[i * wide + j] = same(i, j)
        ? lengths[(i + 1) * wide + j + 1]! + 1
        : Math.max(lengths[(i + 1) * wide + j]!, lengths[i * wide + j + 1]!);
  for (let i = 0, j = 0; i < n && j < m; ) {
    if (same(i, j)) {
      shared[start + i++] = 1;
      j++;
    } else if (lengths[(i + 1) * wide + j]! >= lengths[i * wide + j + 1]!) i++;
    else j++;
  }
  // A comma or a space alone between two that differ is no common ground.
  for (let i = start + 1; i < words.length - end - 1; i++)
    if (shared[i] && !/\w/.test(words[i]!) && !shared[i - 1] && !shared[i + 1]) shared[i] = 0;
  return shared;
}

/** Both sides' lines in order; a rewritten instruction's two lines are one. */
function paired(versions: Versions, before: Int32Array, after: Int32Array): Line[] {
  const { key, names } = versions.c;
  const [inBefore, inAfter] = [new Set(before), new Set(after)];
  const lines: Line[] = [];
  // A computation's header and the module's are rewritten under their names too.
  const title = (row: Row) => (key[row]! >= 0 ? names[key[row]!]! : (HEADER.exec(versions.lines[row]!)?.[0] ?? ""));
  const flush = (gap: Pair[]) => {
    const olds = gap.filter(([old]) => old >= 0).map(([old]) => old);
    const at = new Map(olds.map((row, i) => [title(row), i]));
    const news = gap.filter(([old]) => old < 0).map(([, row]) => row);
    let done = 0;
    // Which old line each new one rewrites, as far as they come in the same order.
    const matches = news.map((row) => {
      const match = title(row) ? (at.get(title(row)) ?? -1) : -1;
      if (match < done || inAfter.has(olds[match]!)) return -1;
      done = match + 1;
      return match;
    });
    done = 0;
    const nexts = new Array<number>(matches.length);
    for (let i = matches.length - 1, next = olds.length; i >= 0; i--)
      nexts[i] = next = matches[i]! >= 0 ? matches[i]! : next;
    const gone = (to: number) => {
      for (; done < to; done++)
        lines.push({ kind: inAfter.has(olds[done]!) ? "moved" : "gone", old: olds[done]!, new: -1 });
    };
    news.forEach((row, i) => {
      // What goes stands before what comes in its place.
      gone(nexts[i]!);
      if (matches[i]! < 0) lines.push({ kind: inBefore.has(row) ? "moved" : "new", old: -1, new: row });
      else lines.push({ kind: "changed", old: olds[done++]!, new: row });
    });
    gone(olds.length);
  };
  let gap: Pair[] = [];
  for (const [olds, news] of blockwise(versions, before, after)) {
    for (const pair of aligned(olds, news)) {
      if (pair[0] < 0 || pair[1] < 0) gap.push(pair);
      else {
        flush(gap);
        gap = [];
        lines.push({ kind: "same", old: pair[0], new: pair[1] });
      }
    }
    flush(gap);
    gap = [];
  }
  return lines;
}

/** Computation by computation in the order after: where the printer puts one has no meaning. */
function blockwise(versions: Versions, before: Int32Array, after: Int32Array): [Int32Array, Int32Array][] {
  const [olds, news] = [blocks(versions, before), blocks(versions, after)];
  const at = new Map(olds.map(({ home }, i) => [home, i]));
  const shared = new Set(news.map(({ home }) => home));
  const none = new Int32Array(0);
  const pairs: [Int32Array, Int32Array][] = [];
  let done = 0;
  // What is gone stands where it stood, before the next that is still there.
  const gone = (to: number) => {
    for (; done < to; done++) if (!shared.has(olds[done]!.home)) pairs.push([olds[done]!.rows, none]);
  };
  for (const { home, rows } of news) {
    const old = at.get(home);
    if (old !== undefined) gone(old);
    pairs.push([old === undefined ? none : olds[old]!.rows, rows]);
  }
  gone(olds.length);
  return pairs;
}

interface Block {
  /** The computation, -1 for the module's own lines. */
  home: number;
  rows: Int32Array;
}

function blocks(versions: Versions, rows: Int32Array): Block[] {
  const { key, computation } = versions.c;
  const blocks: Block[] = [];
  const homes = new Set<number>();
  let start = 0;
  const close = (end: number) => {
    const own = rows.subarray(start, end);
    const keyed = own.find((row) => key[row]! >= 0);
    // Two of one computation, as a text without names may have them, stay apart.
    const home = keyed === undefined ? -1 - blocks.length : computation[key[keyed]!]!;
    blocks.push({ home: homes.has(home) ? -1000 - blocks.length : home, rows: own });
    homes.add(home);
    start = end;
  };
  rows.forEach((row, i) => {
    if (i > start && key[row]! < 0 && HEAD.test(versions.lines[row]!)) close(i);
  });
  close(rows.length);
  return blocks;
}

const HEADER = /^HloModule |^(?:ENTRY )?%?[\w.-]+ (?=\()/;
const HEAD = /^(?:ENTRY )?%?[\w.-]+ .*\{$|^\s*func\.func /;

/** Without the equal lines that are far from any change. */
function folded(lines: Line[]): Line[] {
  const near = new Uint8Array(lines.length);
  lines.forEach(({ kind }, i) => {
    if (kind !== "same") near.fill(1, Math.max(i - CONTEXT, 0), i + CONTEXT + 1);
  });
  const kept: Line[] = [];
  for (let i = 0; i < lines.length; i++) {
    if (near[i]) {
      kept.push(lines[i]!);
      continue;
    }
    const start = i;
    while (i + 1 < lines.length && !near[i + 1]) i++;
    kept.push({ kind: "same", old: -1, new: -1, skipped: i + 1 - start });
  }
  return kept;
}

/** A rewritten line as its old and its new one. */
function unfolded(line: Line): Line[] {
  if (line.kind !== "changed") return [line];
  return (["gone", "new"] as const).map((half) => ({ ...line, half }));
}
