// The code below HLO: the kernels with what is known of each, and the text of the one that is chosen.

import type { MachineCode } from "../core/capture";
import { button, choices, element, rove, spans } from "../core/dom";
import { Rows } from "../core/row_list";
import type { Session } from "../core/session";
import { addSheet } from "../core/theme";
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
  readonly #reachTab = rove(this.#switch, "button", (item) => item.click());
  #markTab: (language: string) => HTMLElement | undefined = () => undefined;
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
    this.#rows.root.role = "region";
    this.#rows.root.ariaLabel = "the kernel's code";
    const head = element("div.code-head", this.#switch, this.#facts);
    this.root = element("div.explorer-code", list, element("div.code-one", head, this.#rows.root));
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
    for (const [i, item] of this.#items.entries()) item.classList.toggle("lit", lit.has(i));
    const first = [...lit][0];
    if ((nodes.size || lines.size) && first !== undefined && !lit.has(this.#row)) this.#show(first);
  }

  hover(): void {
    const over = this.#having(this.session.preview.nodes);
    for (const [i, item] of this.#items.entries()) item.classList.toggle("over", over.has(i));
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
    const choose = () => {
      this.#show(row);
      if (node !== undefined) session.focusNode(node);
    };
    return button(
      { class: "pick", role: "option", "data-row": row, title: this.code.header.rows[row]!.kernels.join(", ") },
      choose,
      element("i", { class: `k${session.lines.colour(place)}` }),
      element("span", name),
      element("small", shared > 1 ? `× ${shared}` : place ? `line ${place.line}` : ""),
    );
  }

  #over(event: Event): void {
    const row = (event.target as Element).closest<HTMLElement>("[role=option]")?.dataset.row ?? this.#row;
    this.session.previewNodes("hlo", this.#nodes[Number(row)] ?? []);
  }

  #show(row: number): void {
    const facts = this.code.header.rows[row]?.facts;
    if (!facts) return;
    this.#row = row;
    for (const [i, item] of this.#items.entries()) item.ariaSelected = String(i === row);
    this.#facts.replaceChildren(
      ...facts.map(([name, text]) => element("div", element("dt", name), element("dd", text))),
    );
    const languages = this.code.languages(row);
    if (!languages.includes(this.#language)) this.#language = languages[0]!;
    const titled = languages.map((language) => [language, this.code.header.languages[language]!] as const);
    this.#markTab = choices(this.#switch, titled, (chosen) => this.#read(chosen));
    this.#read(this.#language);
  }

  #read(language: string): void {
    this.#language = language;
    this.#reachTab(this.#markTab(language));
    this.#lines = this.code.lines(this.#row, language);
    this.#rows.reset(this.#lines.length);
    this.#rows.root.scrollTop = 0;
  }

  #line(row: number): HTMLElement {
    const text = this.#lines[row]!.slice(0, LONGEST).replaceAll("\t", "    ");
    const code = element("span.code", ...spans(text, PARTS, KINDS));
    return element("div.row", { "data-row": row }, element("span.number", String(row + 1)), code);
  }
}
