// What of each argument was always the same, and what was not: who varies is who makes it compile.

import { element } from "../core/dom";
import { code } from "../core/parts";
import { words } from "../core/widgets";
import type { Data, Status, Varying } from "./data";
import { box, flag, number, part } from "./format";

const VALUES = 8;

export class Arguments {
  readonly root = box("arguments");
  #shown = "";

  constructor(private readonly data: Data) {}

  show(filter: string): void {
    const { varying } = this.data.status;
    const now = JSON.stringify([varying, filter]);
    if (now === this.#shown) return;
    this.#shown = now;
    const wanted = words(filter);
    const matches = varying.filter(({ function: name }) => wanted.every((word) => name.toLowerCase().includes(word)));
    const shown = matches.length || !wanted.length ? matches : varying;
    this.root.replaceChildren(...shown.map((entry) => this.#table(entry)));
    if (!varying.length) this.root.append(element("p.lg-none-yet", "no function compiled twice: nothing has varied"));
  }

  #table({ function: name, rows }: Status["varying"][0]): HTMLElement {
    const inOrder = [...rows].sort((a, b) => Number(b.distinct > 1) - Number(a.distinct > 1));
    const head = ["argument", "what of it", "", "values"].map((title) =>
      title ? element("th", { scope: "col" }, title) : element("td"),
    );
    const [top, body] = [element("tr", ...head), inOrder.map((row) => this.#row(row))];
    const caption = element("caption", code(name));
    return box("varying", element("table", caption, element("thead", top), element("tbody", ...body)));
  }

  #row({ path, aspect, values, distinct }: Varying): HTMLElement {
    const total = values.reduce((sum, [, count]) => sum + count, 0) || 1;
    const shown = values.slice(0, VALUES).map(([value, count]) => {
      const share = element("i", { style: `width:${Math.max((60 * count) / total, 2)}px`, "aria-hidden": "true" });
      return part("value", code(value), ...(distinct > 1 ? [share, element("small", `×${number(count)}`)] : []));
    });
    if (distinct > shown.length) shown.push(part("mute", `and ${number(distinct - shown.length)} more`));
    const verdict = distinct > 1 ? part("varies", flag(), `${number(distinct)} values`) : part("mute", "constant");
    const cells = [[aspect], [verdict], shown].map((cell) => element("td", ...cell));
    return element("tr", element("th", { scope: "row" }, code(path)), ...cells);
  }
}
