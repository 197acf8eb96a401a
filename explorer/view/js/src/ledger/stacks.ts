// From where compiles came: the user's frames as a tree, outermost first, each with the cost of all below it.

import { made } from "../core/buckets";
import { element } from "../core/dom";
import { secondsText } from "../core/labels";
import { button, code } from "../core/parts";
import type { Call, Place, Steps } from "./data";
import { box, none, number, part, placeText, redraw, spent, sumOf, total } from "./format";
import type { State } from "./viewer";

const MOST = 60; // children of one node
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
    for (const child of all.slice(0, MOST)) {
      const isOpen = this.#isOpen(child, at);
      rows.push(this.#row(child, depth, isOpen));
      if (isOpen && depth < DEEP) this.#grow(child, depth + 1, rows);
    }
    if (all.length > MOST) {
      const rest = all.slice(MOST);
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
