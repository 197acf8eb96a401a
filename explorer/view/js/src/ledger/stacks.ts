// From where compiles came: the user's frames as a tree, outermost first, each with the cost of all below it.

import { element } from "../core/dom";
import { secondsText } from "../core/labels";
import { button, code } from "../core/parts";
import type { Call, Place } from "./data";
import { bar, box, none, number, part, placeText, redraw } from "./format";
import type { State } from "./state";

const MOST = 60; // children of one node
const DEEP = 40;

export interface Branch {
  key: string;
  place?: Place;
  /** The function compiled here: a leaf. */
  name?: string;
  count: number;
  seconds: number;
  steps: { trace: number; lower: number; compile: number };
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
      let key = keys.get(place);
      if (!key) keys.set(place, (key = `${place.file}\n${place.line}\n${place.function}`));
      at = under(at, key, place);
      count(at, call);
    }
    count(under(at, `=${call.family.name}`, undefined, call.family.name), call);
  }
  return root;
}

function under(at: Branch, key: string, place?: Place, name?: string): Branch {
  let next = at.below.get(key);
  if (!next) at.below.set(key, (next = branch(`${at.key}\n\n${key}`, place, name)));
  return next;
}

function count(at: Branch, call: Call): void {
  at.count++;
  at.seconds += call.seconds;
  at.steps.trace += call.trace;
  at.steps.lower += call.lower;
  at.steps.compile += call.compile;
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
      const seconds = rest.reduce((sum, child) => sum + child.seconds, 0);
      rows.push(
        element(
          "p.lg-mute",
          { style: `padding-left:${12 + 18 * depth}px` },
          `and ${number(rest.length)} more: ${secondsText(seconds)}`,
        ),
      );
    }
  }

  /**
   * Open from the start: what costs half of its caller, so that the dearest way is seen. What was touched is turned.
   */
  #isOpen(child: Branch, parent: Branch): boolean {
    const dear = child.seconds >= parent.seconds / 2;
    return child.below.size > 0 && dear !== this.state.open.has(`stack ${child.key}`);
  }

  #row(at: Branch, depth: number, isOpen: boolean): HTMLElement {
    const isLeaf = at.name !== undefined;
    return button(
      {
        class: "lg-row lg-branch",
        "data-key": at.key,
        style: `--depth:${Math.min(depth, 12)}`,
        ...(!isLeaf && { "aria-expanded": String(isOpen) }),
      },
      () => {
        if (isLeaf) return this.find(at.name!);
        const key = `stack ${at.key}`;
        if (!this.state.open.delete(key)) this.state.open.add(key);
        this.#draw();
      },
      part(
        "line",
        element("i.lg-caret", isLeaf ? "" : isOpen ? "▾" : "▸"),
        isLeaf ? element("b", code(at.name!)) : code(at.place!.text || at.place!.function || "?"),
      ),
      part(
        "where",
        isLeaf ? "compiled here" : placeText(at.place) + (at.place!.function ? ` in ${at.place!.function}` : ""),
      ),
      part("count", `${number(at.count)} ×`),
      part("spent", element("span", secondsText(at.seconds)), bar(at.steps, this.#tree.seconds)),
    );
  }
}
