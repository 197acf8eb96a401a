// The line table: what each line of the source became, and what that costs.

import type { LineCost } from "../core/capture";
import { element, onKey, onParts, sortHead } from "../core/dom";
import { number } from "../core/labels";
import { lineKey } from "../core/links";
import type { Session } from "../core/session";
import { addSheet } from "../core/theme";
import { amountOf, Costs, type Measure, OF, shareBar } from "./line_costs";
import sheet from "./lines.css";

addSheet(sheet);

type Column = { title: string; key: (line: LineCost) => number; count?: Count; measure?: Measure };

const COUNTS = ["equations", "kernels"] as const;
type Count = (typeof COUNTS)[number];

export class LinesPane {
  readonly root: HTMLElement;
  readonly #costs: Costs;
  readonly #columns: Column[];
  readonly #body = element("div.body", { role: "rowgroup" });
  readonly #head = element("div.row.head", { role: "row" });
  readonly #rows = new Map<string, HTMLElement>();
  #sort: { column: number; down: boolean };

  constructor(private readonly session: Session) {
    const { capture } = session;
    const costs = (this.#costs = new Costs(capture.header.lines));
    this.#columns = [
      { title: "line", key: (line) => this.#position(line) },
      ...COUNTS.filter((name) => costs.lines.some((line) => line[name])).map((count) => ({
        ...{ title: count, count, key: (line: LineCost) => line[count] },
      })),
      ...costs.measures.map((measure) => ({
        title: OF[measure].replace("of ", ""),
        key: (line: LineCost) => line[measure] ?? 0,
        measure,
      })),
    ];
    this.#sort = { column: this.#columns.findIndex(({ measure }) => measure === costs.first), down: true };
    const about = { role: "table", "aria-label": "what each line of the source costs" };
    this.root = element("div.explorer-lines", about, this.#head, this.#body);
    const widths = (kind: "count" | "measure", width: string) =>
      this.#columns.map((column) => (column[kind] ? width : "")).join(" ");
    this.root.style.setProperty("--counts", widths("count", "62px"));
    this.root.style.setProperty("--measures", widths("measure", "104px"));
    this.#listen();
  }

  reset(): void {
    this.#fillHead();
    const { column, down } = this.#sort;
    const { key } = this.#columns[Math.max(column, 0)]!;
    const lines = [...this.#costs.lines].sort(
      (a, b) => (down ? key(b) - key(a) : key(a) - key(b)) || this.#position(a) - this.#position(b),
    );
    this.#rows.clear();
    this.#body.replaceChildren(...lines.map((line) => this.#draw(line)));
    const unknown = "The cost of the lines is unknown: this capture has no optimized program.";
    if (!lines.length) this.#body.append(element("div.empty", { role: "row" }, cell("", unknown)));
    else this.#body.append(this.#total(), ...this.#limits());
    this.light();
  }

  light(): void {
    const { focus, preview } = this.session;
    for (const [key, row] of this.#rows) {
      row.classList.toggle("lit", focus.lines.has(key));
      row.classList.toggle("over", preview.lines.has(key));
    }
  }

  scroll(): void {
    const key = [...this.session.focus.lines].find((line) => this.#rows.has(line));
    if (key !== undefined) this.#rows.get(key)!.scrollIntoView({ block: "nearest" });
  }

  /** In the order of the source; what has no line comes last. */
  #position(line: LineCost): number {
    const file = this.session.lines.sources.findIndex((source) => source.file === line.file);
    return (file < 0 ? 1e4 : file) * 1e6 + line.line;
  }

  #fillHead(): void {
    const heads = this.#columns.map(({ title, count }, column) => {
      const down = this.#sort.column === column ? this.#sort.down : undefined;
      return sortHead({ class: count ? "counted" : "" }, title, () => this.#sortBy(column), down);
    });
    this.#head.replaceChildren(...heads);
  }

  #sortBy(column: number): void {
    // Numbers are sorted from the largest, lines from the first.
    this.#sort = { column, down: this.#sort.column === column ? !this.#sort.down : column > 0 };
    this.reset();
    (this.#head.children[column]?.firstElementChild as HTMLElement | null)?.focus();
  }

  #draw(line: LineCost): HTMLElement {
    const { lines } = this.session;
    const source = lines.sources.find(({ file }) => file === line.file);
    const text = source?.text.split("\n")[line.line - 1]?.trim();
    const colour = lines.colourOf(line.file, line.line);
    const place = lines.sources.length > 1 && source ? `${source.label}:${line.line}` : String(line.line || "");
    const shown = text ?? (line.file ? line.file.split(/[/\\]/).pop()! : "no line is known");
    const mark = element("i", { class: colour >= 0 ? `k${colour}` : "" });
    const name = cell("what", mark, element("em", place), element("code", shown));
    name.title = this.#costs.about(line);
    const about = { role: "row", tabindex: line.file ? "0" : "-1", "data-file": line.file, "data-line": line.line };
    const row = element("div.row", about, name);
    for (const { count, measure } of this.#columns) {
      if (count) row.append(cell("number counted", number(line[count])));
      if (!measure) continue;
      const share = shareBar(this.#costs.share(line, measure), measure !== "seconds" && line.one_iteration);
      row.append(cell("number", amountOf[measure](line[measure] ?? 0), share));
    }
    if (line.file) this.#rows.set(lineKey(line.file, line.line), row);
    return row;
  }

  #total(): HTMLElement {
    const row = element("div.row.total", { role: "row" }, cell("", "the whole program"));
    for (const { count, measure } of this.#columns) {
      if (count) row.append(cell("counted"));
      if (measure) row.append(cell("number", amountOf[measure](this.#costs.total(measure)), element("span.share")));
    }
    return row;
  }

  #limits(): HTMLElement[] {
    const { limits } = this.session.capture.header;
    return (limits ?? []).map((limit) => element("div.row.limit", { role: "row" }, cell("", limit)));
  }

  #listen(): void {
    const { session } = this;
    const at = (event: Event): HTMLElement | undefined => {
      const row = (event.target as Element).closest?.<HTMLElement>("[data-line]");
      return row?.dataset.file ? row : undefined;
    };
    const place = (row: HTMLElement): [string, number] => [row.dataset.file!, Number(row.dataset.line)];
    onParts(
      this.#body,
      at,
      (row) => String(getSelection()) || session.focusLine(...place(row)),
      (row) => (row ? session.previewLine(...place(row)) : session.previewItem(undefined)),
    );
    onKey(this.#body, (event) => {
      const row = at(event);
      if (!row) return undefined;
      const go = (to: Element | null) => () => (to as HTMLElement | null)?.focus();
      if (event.key === "ArrowDown") return go(row.nextElementSibling);
      if (event.key === "ArrowUp") return go(row.previousElementSibling);
      return event.key === "Enter" || event.key === " " ? () => session.focusLine(...place(row)) : undefined;
    });
  }
}

const cell = (kind: string, ...parts: (Node | string)[]): HTMLElement =>
  element("span", { role: "cell", ...(kind && { class: kind }) }, ...parts);
