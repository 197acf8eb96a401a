// The passes as a list: how much each did, in the order in which they ran, by pipeline.

import { element } from "../core/dom";
import { count, secondsText } from "../core/labels";
import { dataAt } from "../core/widgets";
import type { Pass } from "./passes";

const LONGEST = 26; // pixels of one bar

export class Strip {
  readonly root = element("div", {
    class: "pass-steps",
    role: "listbox",
    tabindex: "0",
    "aria-label": "what changed, step by step",
  });
  #cells: HTMLElement[] = [];

  constructor(private readonly choose: (position: number) => void) {
    this.root.addEventListener("click", (event) => {
      const position = dataAt(event, "position");
      if (position !== undefined) this.choose(Number(position));
    });
  }

  reset(passes: Pass[]): void {
    const most = Math.log1p(Math.max(1, ...passes.map((pass) => Math.max(pass.born, pass.died, pass.changed))));
    this.#cells = passes.map((pass, i) => cell(pass, i, most));
    const groups: HTMLElement[] = [];
    passes.forEach((pass, i) => {
      const { pipeline } = pass;
      const title = element("small", { title: pipeline }, pipeline);
      if (passes[i - 1]?.pipeline !== pipeline)
        groups.push(element("div.pipeline", { role: "group", "aria-label": pipeline }, title, element("div.cells")));
      groups[groups.length - 1]!.lastElementChild!.append(this.#cells[i]!);
    });
    this.root.replaceChildren(...groups);
  }

  /** Leave out those that are not among some; undefined for all. */
  filter(kept: ReadonlySet<number> | undefined): void {
    for (const [i, cell] of this.#cells.entries()) cell.hidden = kept !== undefined && !kept.has(i);
    for (const group of this.root.children as Iterable<Element> & HTMLCollection)
      (group as HTMLElement).hidden = !group.querySelector(".cell:not([hidden])");
  }

  mark(position: number): void {
    for (const [i, cell] of this.#cells.entries()) cell.setAttribute("aria-selected", String(i === position));
    const [cell, strip] = [this.#cells[position]?.getBoundingClientRect(), this.root.getBoundingClientRect()];
    if (!cell) return;
    // Not by scrollIntoView: it scrolls the page too, to a view that nobody looks at yet.
    this.root.scrollLeft += Math.min(cell.left - strip.left, 0) + Math.max(cell.right - strip.right, 0);
    this.root.scrollTop += Math.min(cell.top - strip.top, 0) + Math.max(cell.bottom - strip.bottom, 0);
  }
}

function cell(pass: Pass, position: number, most: number): HTMLElement {
  const bar = (kind: string, amount: number) => {
    const width = amount ? Math.max((LONGEST * Math.log1p(amount)) / most, 2) : 0;
    return element("span", { class: kind, style: `width: ${width}px` });
  };
  const about = { title: summary(pass), "aria-label": summary(pass), "aria-selected": "false" };
  return element(
    "div.cell.pick",
    { role: "option", "data-position": position, ...about },
    element("b", pass.name),
    element("div.gone-bars", ...(pass.moved ? ["↕"] : [bar("gone", pass.died)])),
    element("div.new-bars", bar("new", pass.born), bar("changed", pass.changed)),
  );
}

/** What a pass did, in words. */
export function summary(pass: Pass): string {
  const parts = [
    pass.born ? `+${count(pass.born, "instruction")}` : "",
    pass.died ? `−${count(pass.died, "instruction")}` : "",
    pass.changed ? `~${pass.changed} rewritten` : "",
    pass.moved ? "put into another order" : "",
  ].filter(Boolean);
  return `${pass.name}: ${parts.join(", ")}${pass.seconds === undefined ? "" : `, ${secondsText(pass.seconds)}`}`;
}
