// The code below HLO: the kernels with what is known of each, and the text of the one that is chosen.

import { element, spans } from "../core/dom";
import { rove } from "../core/roving";
import { Rows } from "../core/row_list";
import type { Session } from "../core/session";
import { addSheet } from "../core/style";
import type { MachineCode } from "./machine_code";
import sheet from "./machine_code.css";

addSheet(sheet);

const LONGEST = 400; // characters of a line
// Comments, strings and labels; registers and values; the instruction that a line begins with.
const PARTS = new RegExp(
  [
    String.raw`((?:\/\/|(?:^| {2}); | {2}# ).*$|^\.?[\w$.]+:)`,
    String.raw`([%@$]"?[\w.$-]+"?|\b[xyz]mm\d+\b)`,
    String.raw`("[^"]*"|\b(?:mma|wgmma|tcgen05)[\w.]+|\bvmatmul[\w.]*)`,
  ].join("|"),
  "g",
);
const KINDS = ["comment", "name", "string"];

export class MachineCodePane {
  readonly root: HTMLElement;
  readonly #items: HTMLElement[];
  readonly #facts = element("dl");
  readonly #switch = element("div.switch", { role: "tablist", "aria-label": "language" });
  readonly #markTab = rove(this.#switch, "button", (item) => item.click());
  readonly #rows = new Rows("code-text", (row) => this.#line(row));
  readonly #nodes: number[][];
  #row = -1;
  #language = "";
  #lines: string[] = [];

  constructor(
    private readonly session: Session,
    private readonly code: MachineCode,
  ) {
    const { graph } = session.capture.stage("hlo");
    const at = new Map(graph.c.names.map((name, node) => [name, node]));
    const { rows, notes } = code.header;
    this.#nodes = rows.map(({ kernels }) => kernels.flatMap((name) => at.get(name) ?? []));
    this.#items = rows.map((row, i) => this.#item(row.kernels[0] ?? row.function, i));
    const list = element("div.code-kernels", { role: "listbox", "aria-label": "kernels" }, ...this.#items);
    rove(list, "[role=option]", (item) => item.click());
    if (notes.length) list.append(...notes.map((note) => element("p", note)));
    this.#rows.root.setAttribute("role", "region");
    this.#rows.root.setAttribute("aria-label", "the kernel's code");
    this.root = element(
      "div.explorer-code",
      list,
      element("div.code-one", element("div.code-head", this.#switch, this.#facts), this.#rows.root),
    );
    this.root.addEventListener("pointerover", (event) => this.#over(event));
    this.root.addEventListener("pointerleave", () => session.previewItem(undefined));
  }

  reset(): void {
    if (this.#row < 0) this.#show(0);
  }

  /** What is chosen elsewhere is shown here: the kernel that it is, or is inside of. */
  light(): void {
    const { nodes, lines } = this.session.focus;
    const lit = this.#having(nodes);
    this.#items.forEach((item, i) => {
      item.classList.toggle("lit", lit.has(i));
    });
    const first = [...lit][0];
    if ((nodes.size || lines.size) && first !== undefined && !lit.has(this.#row)) this.#show(first);
  }

  hover(): void {
    const over = this.#having(this.session.preview.nodes);
    this.#items.forEach((item, i) => {
      item.classList.toggle("over", over.has(i));
    });
  }

  scroll(): void {
    this.#items[this.#row]?.scrollIntoView({ block: "nearest" });
  }

  /** The rows whose kernels are among nodes, or hold one of them. */
  #having(nodes: ReadonlySet<number>): Set<number> {
    const { graph } = this.session.capture.stage("hlo");
    const has = (kernel: number) => graph.within(kernel).some((node) => nodes.has(node));
    return new Set(nodes.size ? [...this.#nodes.keys()].filter((row) => this.#nodes[row]!.some(has)) : []);
  }

  #item(name: string, row: number): HTMLElement {
    const { session } = this;
    const node = this.#nodes[row]![0];
    const place = node === undefined ? undefined : session.lines.place(session.capture.stage("hlo").graph, node);
    const shared = this.#nodes[row]!.length;
    const item = element(
      "button",
      { type: "button", role: "option", "data-row": row, title: this.code.header.rows[row]!.kernels.join(", ") },
      element("i", { class: `k${session.lines.colour(place)}` }),
      element("span", name),
      element("small", shared > 1 ? `× ${shared}` : place ? `line ${place.line}` : ""),
    );
    item.addEventListener("click", () => {
      this.#show(row);
      if (node !== undefined) session.focusNode(node);
    });
    return item;
  }

  #over(event: Event): void {
    const row = (event.target as Element).closest<HTMLElement>("[role=option]")?.dataset.row ?? this.#row;
    this.session.previewNodes("hlo", this.#nodes[Number(row)] ?? []);
  }

  #show(row: number): void {
    const facts = this.code.header.rows[row]?.facts;
    if (!facts) return;
    this.#row = row;
    this.#items.forEach((item, i) => {
      item.setAttribute("aria-selected", String(i === row));
    });
    this.#facts.replaceChildren(
      ...facts.map(([name, text]) => element("div", element("dt", name), element("dd", text))),
    );
    const languages = this.code.languages(row);
    if (!languages.includes(this.#language)) this.#language = languages[0]!;
    this.#switch.replaceChildren(
      ...languages.map((language) => {
        const tab = element("button", { type: "button", role: "tab" }, this.code.header.languages[language]!);
        tab.addEventListener("click", () => this.#read(language));
        return tab;
      }),
    );
    this.#read(this.#language);
  }

  #read(language: string): void {
    this.#language = language;
    const at = this.code.languages(this.#row).indexOf(language);
    const tabs = [...this.#switch.querySelectorAll<HTMLElement>("button")];
    for (const [i, tab] of tabs.entries()) tab.setAttribute("aria-selected", String(i === at));
    this.#markTab(tabs[at]);
    this.#lines = this.code.lines(this.#row, language);
    this.#rows.reset(this.#lines.length);
    this.#rows.root.scrollTop = 0;
  }

  #line(row: number): HTMLElement {
    const text = this.#lines[row]!.slice(0, LONGEST).replaceAll("\t", "    ");
    return element(
      "div.row",
      { "data-row": row },
      element("span.number", String(row + 1)),
      element("span.code", ...spans(text, PARTS, KINDS)),
    );
  }
}
