// The functions, the most expensive first; each unfolds to its compiles, and each of those to its details.

import { made } from "../core/buckets";
import { button, code, element } from "../core/dom";
import { number, secondsText } from "../core/labels";
import { lasting } from "./clock";
import { type Call, type Group, type Place, type Steps, varied } from "./data";
import {
  box,
  change,
  cured,
  flag,
  keyed,
  none,
  part,
  placeText,
  redraw,
  spent,
  stepsText,
  sumOf,
  total,
  why,
} from "./format";
import type { State } from "./viewer";

const MOST = 10; // events of a group at first
const MORE = 200;
const REASONS = 2;

export class Functions {
  readonly root = box("functions");
  #groups: readonly Group[] = [];
  #whole = 0;
  #start = 0;
  /** What is drawn of an event stays: what was fetched into it would be lost. */
  readonly #details = new Map<number, HTMLElement>();

  constructor(
    private readonly state: State,
    /** The buttons that request something of Python, with the place for its answer. */
    private readonly buttons: (call: Call) => HTMLElement,
    private readonly choose: (call: Call | undefined) => void,
  ) {}

  show(groups: readonly Group[], start: number): void {
    this.#groups = groups;
    this.#start = start;
    this.#whole = total(groups);
    this.draw();
  }

  draw(): void {
    const titles = ["function", "compiled", "cost", "why again", "where"].map((title) => element("span", title));
    const head = element("div.lg-row.lg-columns", { "aria-hidden": "true" }, ...titles);
    const rows = this.#groups.map((group) => this.#group(group));
    redraw(this.root, () => (rows.length ? [head, ...rows] : [none()]));
  }

  /** Unfold a call's group and the call, and bring it into sight. */
  reveal(call: Call): void {
    const group = this.#groups.find(({ calls }) => calls.includes(call));
    if (!group) return;
    this.state.open.add(group.key);
    this.state.chosen = call;
    const at = group.calls.indexOf(call);
    if (at >= this.#most(group)) this.state.most.set(group.key, at + MOST);
    this.draw();
    keyed(this.root, `event ${call.index}`)?.scrollIntoView({ block: "nearest" });
  }

  #most = (group: Group): number => this.state.most.get(group.key) ?? MOST;

  #group(group: Group): HTMLElement {
    const isOpen = this.state.open.has(group.key);
    const where = group.calls.find((call) => call.stack.length)?.stack[0];
    const again = group.reasons.reduce((total, { calls }) => total + calls.length, 0);
    const row = button(
      { class: "lg-row lg-group", "aria-expanded": String(isOpen), "data-key": group.key },
      () => {
        if (!this.state.open.delete(group.key)) this.state.open.add(group.key);
        this.draw();
      },
      part("what", element("i.lg-caret", isOpen ? "▾" : "▸"), code(group.name)),
      part("count", this.#count(group), again ? flag(`${again} of them again`) : ""),
      spent(group.seconds, sumOf(group.calls), this.#whole),
      part("why", ...this.#reasons(group)),
      element("span.lg-where", { title: where?.text ?? "" }, placeText(where)),
    );
    return box("function", row, ...(isOpen ? [this.#events(group)] : []));
  }

  #count(group: Group): string {
    const misses = group.calls.length - group.compiles;
    return group.compiles ? `${number(group.compiles)} ×` : `${number(misses)} misses`;
  }

  #reasons(group: Group): HTMLElement[] {
    if (!group.reasons.length)
      return [part("mute", group.eager ? "single operations, outside of any jit" : "first compile only")];
    const shown = group.reasons.slice(0, REASONS).map(({ reason, calls }) => {
      const values = varied(calls);
      const what = reason.leaf ? [" ", code(reason.leaf), values ? ` ${values}` : ""] : [" ", reason.text];
      return part("reason", element("b", reason.kind), ` ×${number(calls.length)}`, ...what);
    });
    const more = group.reasons.length - REASONS;
    if (more > 0) shown.push(part("mute", `and ${more} more ${more === 1 ? "reason" : "reasons"}`));
    return shown;
  }

  #events(group: Group): HTMLElement {
    const most = this.#most(group);
    const longest = Math.max(...group.calls.slice(0, most).map((call) => call.seconds), 1e-9);
    const list = box("events");
    for (const call of group.calls.slice(0, most)) list.append(...this.#event(call, longest, group));
    const left = group.calls.length - most;
    if (left > 0) {
      const show = () => {
        this.state.most.set(group.key, most + MORE);
        this.draw();
      };
      const text = `show ${number(Math.min(left, MORE))} more${left > MORE ? ` of ${number(left)}` : ""}`;
      list.append(button({ class: "lg-more", "data-key": `more ${group.key}` }, show, text));
    }
    return list;
  }

  #event(call: Call, longest: number, group: Group): HTMLElement[] {
    const isChosen = this.state.chosen === call;
    const name = group.eager ? call.family.name : call.id || `call ${call.number}`;
    const ended = [
      call.isHit ? part("mute", " · from the persistent cache") : "",
      call.error ? element("b.lg-error", ` · ${call.error}`) : "",
    ];
    const row = button(
      { class: "lg-row lg-event", "aria-expanded": String(isChosen), "data-key": `event ${call.index}` },
      () => {
        this.state.chosen = isChosen ? undefined : call;
        this.choose(this.state.chosen);
        this.draw();
      },
      part("what", code(name)),
      part("at", `+${lasting(call.start - this.#start)}`),
      spent(call.seconds, call, longest),
      part("why", call.isAgain ? flag() : "", ...why(call), ...ended),
      part("where", placeText(call.stack[0])),
    );
    row.classList.toggle("chosen", isChosen);
    return isChosen ? [row, this.#detail(call)] : [row];
  }

  #detail(call: Call): HTMLElement {
    const drawn = this.#details.get(call.index);
    if (drawn) return drawn;
    const { reason, stack } = call;
    const parts: (Node | string)[] = [];
    if (reason.text && reason.kind !== "first") parts.push(element("p.lg-sentence", reason.text));
    else if (reason.leaf) parts.push(element("p", code(reason.leaf), " ", ...change(reason.before, reason.after)));
    for (const place of stack.slice(0, 6))
      parts.push(element("p.lg-frame", part("mute", placeText(place, true)), " ", code(place.text)));
    if (reason.fix) parts.push(cured(reason.fix));
    const facts = [
      stepsText(call, call.isHit),
      call.saved > 0 ? `the persistent cache saved ${secondsText(call.saved)}` : "",
      call.device,
      call.thread && call.thread !== "MainThread" ? `thread ${call.thread}` : "",
      call.process && `process ${call.process}`,
    ];
    parts.push(element("p.lg-mute", facts.filter(Boolean).join(" · ")));
    if (!call.isMiss) parts.push(this.buttons(call));
    const detail = element("div.lg-detail", { role: "group", "aria-label": `${call.id} in detail` }, ...parts);
    this.#details.set(call.index, detail);
    return detail;
  }
}

const BRANCHES = 60; // children of one node
const DEEP = 40;

export interface Branch {
  key: string;
  place?: Place;
  /** The function compiled here: a leaf. */
  name?: string;
  count: number;
  seconds: number;
  steps: Steps;
  below: Map<string, Branch>;
}

const branch = (key: string, place?: Place, name?: string): Branch => ({
  key,
  ...(place && { place }),
  ...(name !== undefined && { name }),
  count: 0,
  seconds: 0,
  steps: { trace: 0, lower: 0, compile: 0 },
  below: new Map(),
});

export function treeOf(calls: readonly Call[]): Branch {
  const root = branch("");
  const keys = new Map<Place, string>();
  for (const call of calls) {
    if (call.isMiss) continue;
    let at = root;
    count(at, call);
    for (const place of [...call.stack].reverse()) {
      const key = made(keys, place, () => `${place.file}\n${place.line}\n${place.function}`);
      at = under(at, key, place);
      count(at, call);
    }
    count(under(at, `=${call.family.name}`, undefined, call.family.name), call);
  }
  return root;
}

const under = (at: Branch, key: string, place?: Place, name?: string): Branch =>
  made(at.below, key, () => branch(`${at.key}\n\n${key}`, place, name));

function count(at: Branch, call: Call): void {
  at.count++;
  at.seconds += call.seconds;
  at.steps = sumOf([at.steps, call]);
}

export const children = (at: Branch): Branch[] => [...at.below.values()].sort((a, b) => b.seconds - a.seconds);

export class Stacks {
  readonly root = box("stacks");
  #tree = branch("");

  constructor(
    private readonly state: State,
    private readonly find: (name: string) => void,
  ) {}

  show(calls: readonly Call[]): void {
    this.#tree = treeOf(calls);
    this.#draw();
  }

  #draw(): void {
    const rows: HTMLElement[] = [];
    this.#grow(this.#tree, 0, rows);
    redraw(this.root, () => (rows.length ? rows : [none()]));
  }

  #grow(at: Branch, depth: number, rows: HTMLElement[]): void {
    const all = children(at);
    for (const child of all.slice(0, BRANCHES)) {
      const isOpen = this.#isOpen(child, at);
      rows.push(this.#row(child, depth, isOpen));
      if (isOpen && depth < DEEP) this.#grow(child, depth + 1, rows);
    }
    if (all.length > BRANCHES) {
      const rest = all.slice(BRANCHES);
      const text = `and ${number(rest.length)} more: ${secondsText(total(rest))}`;
      rows.push(element("p.lg-mute", { style: `padding-left:${12 + 18 * depth}px` }, text));
    }
  }

  /** Open from the start is what costs half of its caller: the dearest way is seen. What was touched is turned. */
  #isOpen(child: Branch, parent: Branch): boolean {
    const dear = child.seconds >= parent.seconds / 2;
    return child.below.size > 0 && dear !== this.state.open.has(`stack ${child.key}`);
  }

  #row(at: Branch, depth: number, isOpen: boolean): HTMLElement {
    const { name, place, key } = at;
    const turn = () => {
      if (name !== undefined) return this.find(name);
      if (!this.state.open.delete(`stack ${key}`)) this.state.open.add(`stack ${key}`);
      this.#draw();
    };
    const isLeaf = name !== undefined;
    const caret = element("i.lg-caret", isLeaf ? "" : isOpen ? "▾" : "▸");
    const line = isLeaf ? element("b", code(name)) : code(place!.text || place!.function || "?");
    const style = `--depth:${Math.min(depth, 12)}`;
    return button(
      { class: "lg-row lg-branch", "data-key": key, style, ...(!isLeaf && { "aria-expanded": String(isOpen) }) },
      turn,
      part("line", caret, line),
      part("where", isLeaf ? "compiled here" : placeText(place, true)),
      part("count", `${number(at.count)} ×`),
      spent(at.seconds, at.steps, this.#tree.seconds),
    );
  }
}
