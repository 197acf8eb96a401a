// The user's own lines, each with its time: the hotter, the more of it.

import { button, choices, element } from "../core/dom";
import { count, secondsText } from "../core/labels";
import { pythonSpans } from "../core/python_text";
import { type Chosen, type Data, folded, type Line, type Order, ordered } from "./data";
import { bar, box, heated, part, roving } from "./format";

const TITLES: [Order, string][] = [
  ["source", "source order"],
  ["time", "by time"],
  ["wasted", "by wasted time"],
];

export class SourcePane {
  readonly root = box("source");
  readonly #tools = element("div.pf-tools", { role: "group", "aria-label": "order of the lines" });
  readonly #list = element("div", { class: "pf-lines", role: "group", "aria-label": "source lines with their time" });
  readonly #mark: (order: Order) => void;
  #order: Order = "source";
  #rows: [Line, HTMLElement][] = [];

  constructor(
    private readonly data: Data,
    private readonly choose: (line: Line) => void,
    private readonly preview: (line?: Line) => void,
  ) {
    const orders = TITLES.slice(0, data.hasWasted ? 3 : 2);
    const tabs = element("div.pf-switch");
    this.#mark = choices(tabs, orders, (order) => this.#turn(order), "order");
    this.#tools.append(element("b", "source lines"), element("span.stretch"), tabs);
    this.root.append(this.#tools, this.#list);
    roving(this.#list, () => this.#rows);
    this.#list.addEventListener("pointerleave", () => this.preview());
    this.#turn("source");
  }

  #turn(order: Order): void {
    this.#order = order;
    this.#mark(order);
    this.#rows = [];
    const shown =
      order === "source"
        ? this.#inFiles()
        : ordered(this.data.lines, order).map((line) => this.#row(line, line.text, this.data.files.length > 1));
    const { moreLines, unattributed } = this.data.message;
    const [more, seconds] = [moreLines[0].toLocaleString("en"), secondsText(moreLines[1])];
    if (moreLines[0]) shown.push(box("folded", `and ${more} more lines with ${seconds}`));
    if (!this.data.lines.length) shown.push(box("folded", "no source line is known for what ran"));
    if (unattributed > 0) {
      const unknown = bar(this.data.share(unattributed), this.data.heat("line", unattributed), "unknown");
      const parts = [part("number"), part("time", secondsText(unattributed)), unknown];
      shown.push(element("div.pf-line.pf-nowhere", ...parts, part("text", "no line is known for this")));
    }
    this.#list.replaceChildren(...shown);
    const [first] = [...this.#rows].sort(([a], [b]) => b.seconds - a.seconds);
    if (first) first[1].tabIndex = 0;
  }

  /** File by file, lines without time folded. */
  #inFiles(): HTMLElement[] {
    const shown: HTMLElement[] = [];
    for (const file of this.data.files) {
      if (this.data.files.length > 1) shown.push(box("file", file.label));
      for (const row of folded(file, this.data.lines)) {
        if ("folded" in row) shown.push(box("folded", `… ${count(row.folded, "line")} without time`));
        else if (row.hot) shown.push(this.#row(row.hot, row.text, false));
        else {
          const parts = [part("number", String(row.line)), part("time"), part("bar")];
          shown.push(element("div.pf-line.pf-cold", ...parts, part("text", ...pythonSpans(row.text))));
        }
      }
    }
    return shown;
  }

  #row(line: Line, text: string, isNamed: boolean): HTMLElement {
    const by = this.#order === "wasted" ? (line.wasted ?? 0) : line.seconds;
    const heat = this.data.heat("line", by);
    const label = `line ${line.number}, ${secondsText(line.seconds)}, ${line.text}`;
    const about = { "data-line": line.number, "aria-pressed": "false", "aria-label": label, tabindex: -1 };
    const name = isNamed ? [part("label", line.file.label), " "] : [];
    const made = button(
      { class: "pf-line pf-hot", ...about, style: heated(heat) },
      () => this.choose(line),
      part("number", String(line.number)),
      part("time", secondsText(by)),
      bar(this.data.share(by), heat),
      part("text", ...name, ...(text ? pythonSpans(text) : [part("mute", "its source is not known")])),
    );
    if (line.wasted !== null)
      made.title = `${secondsText(line.wasted)} of it wasted: more than the machine's peaks allow`;
    made.addEventListener("pointerenter", () => this.preview(line));
    this.#rows.push([line, made]);
    return made;
  }

  light(chosen: Chosen, preview: Chosen): void {
    for (const [line, row] of this.#rows) {
      row.setAttribute("aria-pressed", String(chosen.lines.has(line)));
      row.classList.toggle("over", preview.lines.has(line));
    }
  }

  /** Scrolled within the pane alone: the page stays where it is. */
  reveal(line: Line | undefined): void {
    const row = this.#rows.find(([of]) => of === line)?.[1];
    if (!row) return;
    const [top, bottom] = [row.offsetTop, row.offsetTop + row.offsetHeight];
    const { scrollTop, clientHeight } = this.#list;
    if (top < scrollTop || bottom > scrollTop + clientHeight)
      this.#list.scrollTop = Math.max(top - clientHeight / 3, 0);
  }
}
