// Where an instruction was born, what it became and where it died: what explorer/analysis/pass_history.py tells, for
// one of them.

import { push } from "../core/buckets";
import { button, element, lastAtMost } from "../core/dom";
import { lineKey } from "../core/links";
import type { Key, Link, Passes, Row, VersionColumns } from "./passes";
import type { Around } from "./passes_pane";

const MOST = 40; // events shown

/** One thing that happened; `position` is the pass's among those shown, -1 before all. */
type Event = { position: number; key: Key; text: string; inferred: boolean };

export class HistoryList {
  readonly root = element("div", {
    class: "history",
    role: "region",
    "aria-label": "history of the selected instruction",
    "aria-live": "polite",
  });
  readonly #rowsOf = new Map<Key, number[]>();
  readonly #positionOf: number[] = []; // of a snapshot

  constructor(
    private readonly passes: Passes,
    private readonly around: Around,
    private readonly go: (position: number, key: Key) => void,
  ) {
    for (const [row, key] of passes.versions.c.key.entries()) if (key >= 0) push(this.#rowsOf, key, row);
    passes.shown.forEach((pass, position) => {
      for (let shot = pass.first + 1; shot <= pass.snapshot; shot++) this.#positionOf[shot] = position;
    });
  }

  /** The positions of the passes that made, rewrote or ended an instruction, or what it came from or became. */
  touched(key: Key): number[] {
    return this.#family(key).flatMap((member) => this.#events(member).map(({ position }) => position));
  }

  /** The keys of the instructions that have one of some names, or come from one of some lines of the source. */
  keys(names: ReadonlySet<string>, lines: ReadonlySet<string>): Key[] {
    const { c } = this.passes.versions;
    const isOfLine = linesOf(c, lines);
    return [...this.#rowsOf].flatMap(([key, rows]) =>
      names.has(c.names[key]!) || (lines.size && rows.some((row) => isOfLine(row))) ? [key] : [],
    );
  }

  show(key: Key, position: number): void {
    const name = this.passes.versions.name(key);
    const close = button({ class: "tool", "aria-label": "close the history" }, () => this.go(position, -1), "×");
    const head = element("div.head", element("b", name), ...this.#source(key), element("span.stretch"), close);
    const { sides } = this.around;
    this.root.replaceChildren(head, ...(sides ? this.#lines(key, sides) : this.#list(key, position)));
  }

  #list(key: Key, position: number): Node[] {
    const { versions } = this.passes;
    const events = this.#family(key).flatMap((member) => this.#events(member));
    events.sort((a, b) => a.position - b.position);
    return events.slice(0, MOST).map((event) => {
      const pass = this.passes.shown[event.position]?.name ?? "before all passes";
      const name = element("b", { class: event.key === key ? "own" : "" }, versions.name(event.key));
      const mark = event.inferred ? [element("small", " inferred")] : [];
      const what = element("span", name, ` ${event.text}`, ...mark);
      const go = () => this.go(Math.max(event.position, 0), event.key);
      return button({ class: event.position === position ? "here" : "" }, go, element("em", pass), what);
    });
  }

  /** Of an instruction that two captures have: what each of them has. */
  #lines(key: Key, sides: [string, string]): Node[] {
    const { versions } = this.passes;
    const shots = [new Set(versions.rows(0)), new Set(versions.rows(1))];
    return shots.map((rows, i) => {
      const row = this.#rowsOf.get(key)?.find((at) => rows.has(at));
      const text = row === undefined ? "has no such instruction" : versions.lines[row]!.trim();
      return element("div.sentence", element("em", sides[i]!), element("code", text));
    });
  }

  #source(key: Key): Node[] {
    const { frame, frames, own } = this.passes.versions.c;
    const row = this.#rowsOf.get(key)?.find((at) => frame[at]! >= 0);
    const place = row === undefined ? undefined : frames[own[frame[row]!]!];
    if (!place) return [];
    const text = `${place.function.split(".").pop()} · line ${place.line}`;
    if (!this.around.goLine) return [element("small", { title: place.file }, text)];
    return [button({ class: "place" }, () => this.around.goLine!(place), text)];
  }

  /** The instructions that one came from and those it became, and theirs. */
  #family(key: Key): Key[] {
    const lineage = new Set([key]);
    for (const forward of [true, false]) {
      const todo = [key];
      while (todo.length && lineage.size < MOST) {
        const at = todo.shift()!;
        for (const link of this.passes.linksOf(at)) {
          const leads = forward ? link.old === at : link.new === at && link.kind !== "with";
          const next = leads ? (forward ? link.new : link.old) : -1;
          if (next < 0 || lineage.has(next)) continue;
          lineage.add(next);
          todo.push(next);
        }
      }
    }
    return [...lineage];
  }

  #events(key: Key): Event[] {
    const { versions } = this.passes;
    const links = this.passes.linksOf(key);
    const events: Event[] = [];
    for (const row of this.#rowsOf.get(key) ?? []) {
      const position = this.#positionOf[this.#snapshotOf(row)] ?? -1;
      const from = links.filter((link) => link.new === key && link.position === position && link.kind !== "with");
      const isFirst = !events.length;
      const origin = from.length ? ` from ${list(from.map((link) => versions.name(link.old)))}` : "";
      const text = position < 0 ? "is there" : isFirst ? `is made${origin}` : "is rewritten";
      events.push({ position, key, text, inferred: isFirst && from.some((link) => link.inferred) });
    }
    for (const link of links)
      if (link.old === key)
        events.push({ position: link.position, key, text: this.#end(link), inferred: link.inferred });
    return events;
  }

  #end(link: Link): string {
    const { versions } = this.passes;
    if (link.new < 0)
      return link.kind === "unused"
        ? "is removed: nothing read it"
        : "is gone; the HLO text doesn't say what happened to it";
    const name = versions.name(link.new);
    const home = versions.c.computations[versions.c.computation[link.new]!];
    const ends: Record<string, string> = {
      fused: `is fused into ${home} as ${name}`,
      duplicated: `is copied into ${home} as ${name}`,
      inlined: `is inlined into ${home} as ${name}`,
      replaced: `is replaced by ${name}, which was there already`,
      merged: `is merged into ${name}, which was there already`,
      with: `is gone with its only reader ${name}`,
    };
    return ends[link.kind] ?? `is replaced by ${name}`;
  }

  /** Rows are numbered as the snapshots bring them. */
  #snapshotOf = (row: number): number => lastAtMost(this.passes.versions.c.firsts, (first) => first, row);
}

/** Whether a row comes from one of some lines of the source. */
export function linesOf({ frame, frames, own }: VersionColumns, lines: ReadonlySet<string>): (row: Row) => boolean {
  const passes = frames.map(({ file, line }) => lines.has(lineKey(file, line)));
  return (row) => passes[own[frame[row]!] ?? -1] === true;
}

const list = (names: string[]): string =>
  [...new Set(names)].slice(0, 4).join(", ") + (new Set(names).size > 4 ? " …" : "");
