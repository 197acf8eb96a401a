// Memory over the schedule: the curve, and below it who is alive at the chosen moment.

import { button, choices, element } from "../core/dom";
import { type Graph, isNode } from "../core/graph";
import { bytesText, count, kernelsOf, number } from "../core/labels";
import { lineKey, type SourceLine } from "../core/links";
import { Rows } from "../core/row_list";
import type { Focus, Session } from "../core/session";
import { addSheet } from "../core/theme";
import { MemoryCurve, STACK } from "./curve";
import type { Memory } from "./memory";
import sheet from "./memory.css";

addSheet(sheet);

const NAMES: Record<string, string> = {
  argument: "arguments",
  constant: "constants",
  donated: "donated",
  output: "outputs",
  aliased: "outputs in donated memory",
  temp: "temporaries",
};

const LISTS = ["lines", "buffers"].map((by) => [by, by] as const);
const HOST = 5; // the memory space that is the host's, on every backend

/** One row of the list: a buffer, or all buffers of one source line. */
interface Entry extends Record<"title" | "note" | "kind", string>, Record<"bytes" | "colour", number> {
  rows: number[];
  place: SourceLine | undefined;
}

export class MemoryPane {
  readonly root: HTMLElement;
  readonly #head = element("div.memory-head");
  readonly #moment = element("div.memory-moment");
  readonly #curve = new MemoryCurve(
    () => this.#list(),
    (step) => this.session.previewNode(step ? this.memory?.c.order[step] : undefined),
  );
  readonly #rows = new Rows("memory-rows", (index) => this.#draw(index), "rowgroup");
  readonly #switch = element("div.switch", { role: "group", "aria-label": "list" });
  readonly #mark = choices(this.#switch, LISTS, (by) => this.#list(by === "lines"), "by");
  readonly #heading = element("div.row.head", { role: "row" });
  readonly #table: HTMLElement;
  #entries: Entry[] = [];
  #byLine = true;

  constructor(private readonly session: Session) {
    const alive = { role: "table", "aria-label": "alive at this moment" };
    this.#table = element("div.memory-table", alive, this.#heading, this.#rows.root);
    const parts = [this.#head, this.#curve.root, this.#moment, this.#table];
    this.root = element("div.explorer-memory", { role: "region", "aria-label": "memory over the schedule" }, ...parts);
    this.#follow();
  }

  private get memory(): Memory | undefined {
    return this.session.stage.memory;
  }

  private get graph(): Graph {
    return this.session.stage.graph;
  }

  reset(): void {
    const { memory } = this;
    this.root.classList.toggle("none", !memory);
    if (!memory) {
      const why = "Which instructions run, or in what order, is unknown, and so is the memory over time.";
      this.#head.replaceChildren(element("p.empty", why));
      return;
    }
    this.#byLine = memory.c.node.some((node) => this.session.lines.place(this.graph, node));
    this.#fillHead(memory);
    this.#curve.reset(memory, this.graph);
    this.#list();
  }

  light(): void {
    if (!this.memory) return;
    this.#lightCurve();
    this.#rows.redraw();
  }

  hover(): void {
    if (!this.memory) return;
    this.#lightCurve();
    const { nodes, lines } = this.session.preview;
    const { node } = this.memory.c;
    const makers = this.#makers(nodes);
    this.#rows.each((row, index) => {
      const entry = this.#entries[index];
      const isOver = this.#byLine
        ? lines.has(keyOf(entry?.place) ?? "")
        : entry?.rows.some((at) => makers.has(node[at]!));
      row.classList.toggle("over", isOver === true);
    });
  }

  /** What is inside a kernel has no buffer: its kernel's are. */
  #makers(nodes: ReadonlySet<number>): ReadonlySet<number> {
    return nodes.size ? new Set([...nodes, ...kernelsOf(this.graph, nodes)]) : nodes;
  }

  #fillHead(memory: Memory): void {
    const { donations, scheduled } = memory.c;
    const peak = this.#link(memory.peakStep);
    const most = bytesText(memory.peak);
    const parts: (Node | string)[] = [
      element("b", scheduled ? `peak ${most}` : "no schedule, so the peak is unknown"),
      scheduled ? " at " : ` · in the order of the text at most ${most} at `,
      peak,
      ` · step ${number(memory.peakStep)} of ${number(memory.steps - 1)}`,
    ];
    this.#head.replaceChildren(element("div.peak", element("span", ...parts), this.#switch));
    const title = "Bytes of all buffers at the peak, without alignment and gaps; a loop's body counts once.";
    const source = scheduled ? "Explorer's figure, from live ranges" : "not scheduled: the execution order is unknown";
    const notes: Node[] = [element("span", { title }, source), ...this.#allocated(memory)];
    for (const [space, bytes] of memory.besides)
      notes.push(
        element("span", `plus ${bytesText(bytes)} in ${space === HOST ? "host memory" : "memory space"} S(${space})`),
      );
    if (donations.length) {
      const nodes = new Set(donations);
      const bytes = memory.c.node.reduce((all, node, row) => (nodes.has(node) ? all + memory.c.size[row]! : all), 0);
      const title = "outputs have the same shapes and dtypes, and could reuse their memory: donate_argnums";
      const text = `${count(donations.length, "argument")} of ${bytesText(bytes)} could be donated`;
      notes.push(button({ class: "link", title }, () => this.session.focusNodes("hlo", nodes), text));
    }
    this.#head.append(element("div.note", ...notes.flatMap((note, i) => (i ? [" · ", note] : [note]))));
  }

  /** XLA's own figure, to compare ours with; it leaves constants out, which lie in the program. */
  #allocated(memory: Memory): Node[] {
    const { argument = 0, output = 0, temp = 0, alias = 0 } = this.session.capture.header.memory;
    if (!(argument + output + temp)) return [];
    const { kinds, kind, size } = memory.c;
    const constant = kinds.indexOf("constant");
    const baked = size.reduce((all, bytes, row) => (kind[row] === constant ? all + bytes : all), 0);
    const besides = baked > memory.peak / 100 ? `, plus ${bytesText(baked)} of constants` : "";
    const parts = `arguments ${bytesText(argument)} + outputs ${bytesText(output)} + temporaries ${bytesText(temp)}`;
    const title = `${parts} − aliased ${bytesText(alias)}`;
    return [element("span", { title }, `XLA allocates ${bytesText(argument + output + temp - alias)}${besides}`)];
  }

  #link(step: number): HTMLElement {
    if (step === 0) return element("span", "the call");
    const node = this.memory!.c.order[step]!;
    return button({ class: "link" }, () => this.session.focusNode(node), this.graph.name(node));
  }

  // The list ----------------------------------------------------------------------------------------------------------

  #list(byLine = this.#byLine): void {
    this.#byLine = byLine;
    const memory = this.memory!;
    const { moment } = this.#curve;
    const alive = memory.at(moment);
    this.#entries = this.#byLine ? this.#ofLines(alive) : alive.map((row) => this.#ofBuffer(row));
    this.#mark(this.#byLine ? "lines" : "buffers");
    this.#moment.replaceChildren(
      element("span", `step ${number(moment)} · `, this.#link(moment)),
      element("span.legend", ...this.#legend(moment)),
    );
    const titles = this.#byLine ? ["line", "bytes", "buffers"] : ["buffer", "alive", "bytes", "line"];
    this.#heading.replaceChildren(
      ...titles.map((title) => element("span", { role: "columnheader", class: title === "bytes" ? title : "" }, title)),
    );
    this.#table.classList.toggle("by-line", this.#byLine);
    this.#rows.reset(this.#entries.length);
  }

  #legend(moment: number): Node[] {
    const { kinds, kind, start, end, size, space } = this.memory!.c;
    return STACK.flatMap((name) => {
      const code = kinds.indexOf(name);
      const isThere = (row: number) =>
        kind[row] === code && !space[row] && start[row]! <= moment && moment <= end[row]!;
      const bytes = size.reduce((all, own, row) => (isThere(row) ? all + own : all), 0);
      return bytes
        ? [element("span.kind", { style: `--c: var(--${name})` }, element("i"), `${NAMES[name]} ${bytesText(bytes)}`)]
        : [];
    });
  }

  #place = (row: number): SourceLine | undefined => this.session.lines.place(this.graph, this.memory!.c.node[row]!);

  #ofBuffer(row: number): Entry {
    const { graph } = this;
    const { kinds, kind, node, size, space } = this.memory!.c;
    const at = node[row]!;
    const place = this.#place(row);
    const name = graph.op(at) === "parameter" ? graph.scope(at) || graph.name(at) : graph.name(at);
    const apart = space[row] ? ` · S(${space[row]})` : "";
    const [title, own] = [`${name} ${this.memory!.type(graph, row)}${apart}`, kinds[kind[row]!]!];
    const colour = this.session.lines.colour(place);
    return { title, note: place ? where(place) : own, bytes: size[row]!, colour, kind: own, rows: [row], place };
  }

  /** The buffers by their origin: a source line, or the caller. */
  #ofLines(alive: number[]): Entry[] {
    const { kinds, kind, size } = this.memory!.c;
    const entries = new Map<string, Entry>();
    for (const row of alive) {
      const place = this.#place(row);
      const own = kinds[kind[row]!]!;
      const key = keyOf(place) ?? own;
      const entry = entries.get(key) ?? {
        title: place ? this.#codeOf(place) : own === "temp" ? "of no known line" : NAMES[own]!,
        ...{ note: "", bytes: 0, colour: this.session.lines.colour(place), rows: [], place },
        kind: place ? "temp" : own,
      };
      entries.set(key, entry);
      entry.rows.push(row);
      entry.bytes += size[row]!;
    }
    for (const entry of entries.values()) entry.note = number(entry.rows.length);
    return [...entries.values()].sort((a, b) => b.bytes - a.bytes);
  }

  #codeOf = (place: SourceLine): string => `${where(place)}  ${this.session.lines.textOf(place.file, place.line)}`;

  #draw(index: number): HTMLElement {
    const memory = this.memory!;
    const entry = this.#entries[index]!;
    const { focus } = this.session;
    const share = (entry.bytes / Math.max(this.#entries[0]!.bytes, 1)) * 100;
    const part = element("i", { style: `--c: var(--${entry.kind}); width: ${share.toFixed(1)}%` });
    const cell = (kind: string, ...parts: (Node | string)[]) =>
      element("span", { role: "cell", class: kind }, ...parts);
    const { title, colour, bytes, note } = entry;
    const { line } = focus;
    const isOfLine = line && !line.through && lineKey(line.file, line.line) === keyOf(entry.place);
    const isLit = line && !line.through ? isOfLine : entry.rows.some((at) => focus.nodes.has(memory.c.node[at]!));
    return element(
      isLit ? "div.row.lit" : "div.row",
      { role: "row", "data-row": index },
      cell("what", element("i", { class: `k${colour}` }), element("span", { title }, title)),
      ...(this.#byLine ? [] : [this.#life(entry)]),
      cell("bytes", element("span.share", part), element("span", bytesText(bytes))),
      cell("", note),
    );
  }

  /** From when to when it is there, as a stretch of the schedule. */
  #life(entry: Entry): HTMLElement {
    const { c, steps } = this.memory!;
    const [start, end] = [c.start[entry.rows[0]!]!, c.end[entry.rows[0]!]!];
    const style = `left: ${(start / steps) * 100}%; width: ${((end + 1 - start) / steps) * 100}%`;
    const lane = element("i", { style: `--c: var(--${entry.kind}); ${style}` });
    const lifetime = `step ${number(start)} to ${number(end)}`;
    return element("span.life", { role: "cell", title: lifetime, "aria-label": lifetime }, lane);
  }

  /** Choosing a row chooses its node, or its line; the pointer over one previews it. */
  #follow(): void {
    const { session } = this;
    const nodesOf = ({ rows }: Entry) => rows.map((row) => this.memory!.c.node[row]!);
    const choose = (entry: Entry) => {
      if (!this.#byLine) session.focusNode(nodesOf(entry)[0]!);
      else if (entry.place) session.focusLine(entry.place.file, entry.place.line);
      else session.focusNodes("hlo", nodesOf(entry));
    };
    const preview = (entry?: Entry) => {
      if (this.#byLine && entry?.place) session.previewLine(entry.place.file, entry.place.line);
      else session.previewNode(entry && !this.#byLine ? nodesOf(entry)[0] : undefined);
    };
    this.#rows.follow((row) => this.#entries[row], choose, preview);
  }

  /** Over the curve, the share of what the pointer is over; else of what is in focus. */
  #lightCurve(): void {
    const { preview, focus } = this.session;
    const memory = this.memory!;
    const shown = preview.nodes.size ? preview : focus;
    const nodes = this.#makers(shown.nodes);
    const bytes = nodes.size ? memory.sum((row) => nodes.has(memory.c.node[row]!)) : undefined;
    this.#curve.light(bytes, this.#colourOf(shown));
  }

  #colourOf(focus: Focus): number {
    const { lines } = this.session;
    if (focus.line) return lines.colourOf(focus.line.file, focus.line.line);
    const { item } = focus;
    return isNode(item) ? lines.colour(lines.place(this.graph, item.node)) : -1;
  }
}

const keyOf = (place: SourceLine | undefined): string | undefined => place && lineKey(place.file, place.line);
const where = (place: SourceLine): string => `${place.function.split(".").pop() || "?"}:${place.line}`;
