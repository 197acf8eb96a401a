// The stage's own text, and the same nodes as a table: two lists over one graph.

import { button, dataAt, element, onParts, spans } from "../core/dom";
import { bytesOf, bytesText, isInKernel, shortType, total } from "../core/labels";
import type { SourceLine } from "../core/links";
import { Rows } from "../core/row_list";
import type { Session } from "../core/session";
import { Costs, IN_GRAPH, type Measure, percent } from "../lines/line_costs";

// What a person rarely reads: where it came from is shown beside the line, the rest is in the details.
const NOISE = /, metadata=\{[^}]*\}|, backend_config=\{.*?\}(?=$|, )|, sharding=\{[^}]*\}| loc\(#?\w+\)$/g;
const PARTS = /(%[\w.-]+)|\b([a-z]+\d+[a-z0-9]*\[[^\]]*\](?:\{[^}]*\})?|tensor<[^>]*>)|("(?:[^"\\]|\\.)*")/g;
const KINDS = ["name", "type", "string"];
const ABOVE = 2; // lines before the first instruction: its computation's head
const LONGEST = 600;
const LONGEST_READ = 8000; // of a line: the rest of a large constant has no metadata to leave out

export class TextPane {
  readonly #rows = new Rows("explorer-text", (row) => this.#draw(row));
  readonly root = this.#rows.root;

  constructor(private readonly session: Session) {
    this.root.role = "region";
    this.root.ariaLabel = "text of this stage";
    follow(this.root, session);
  }

  reset(): void {
    const { lines, graph } = this.session.stage;
    this.#rows.reset(lines.length);
    // HLO's text begins with tables of files and frames, which nobody came for.
    const first = graph.c.line.find((line) => line >= 0) ?? 0;
    this.#rows.root.scrollTop = (Math.max(first - ABOVE, 0) * this.#rows.root.scrollHeight) / lines.length;
  }

  light(): void {
    this.#rows.redraw();
  }

  hover(): void {
    this.#rows.each(hovered(this.session));
  }

  scroll(): void {
    const { firstNode, stage } = this.session;
    if (firstNode !== undefined) this.#rows.show(stage.graph.c.line[firstNode]!);
  }

  #draw(row: number): HTMLElement {
    const { session } = this;
    const { graph } = session.stage;
    const node = graph.nodeAtRow(row);
    const line = session.stage.lines[row]!.slice(0, LONGEST_READ).replace(NOISE, "").slice(0, LONGEST);
    const place = node >= 0 ? session.lines.place(graph, node) : undefined;
    const made = element(
      "div.row",
      { "data-row": row },
      element("span.number", String(row + 1)),
      element("i", { class: `k${session.lines.colour(place)}` }),
      element("span.code", ...spans(line, PARTS, KINDS)),
      this.#from(node, place),
    );
    if (graph.c.unread?.includes(row)) {
      made.classList.add("unread");
      made.querySelector(".from")!.textContent = "not read";
    }
    return marked(made, session, node);
  }

  /** The line that a node belongs to; what only serves a node of that line says so. */
  #from(node: number, place: SourceLine | undefined): HTMLElement {
    if (!place) return element("span.from");
    const { graph } = this.session.stage;
    const served = graph.c.attribution.served(node);
    const title = served === undefined ? "" : `it serves ${graph.name(served)}`;
    const text = `${place.function.split(".").pop()} · ${place.line}`;
    return element("span.from", { title }, served === undefined ? text : `for ${text}`);
  }
}

export class TablePane {
  readonly root: HTMLElement;
  readonly #rows = new Rows("explorer-rows", (row) => this.#draw(row), "rowgroup");
  #order: number[] = [];
  #sort: { column: number; down: boolean } = { column: -1, down: false };

  constructor(private readonly session: Session) {
    const head = element("div.row.head", { role: "row" });
    COLUMNS.forEach(({ title }, column) => {
      const sort = button({}, () => this.#sortBy(column), title);
      head.append(element("span", { role: "columnheader" }, sort));
    });
    const about = { role: "table", "aria-label": "nodes of this stage" };
    this.root = element("div.explorer-table", about, head, this.#rows.root);
    follow(this.#rows.root, session);
  }

  /** What is found is all that is there: a table is where one reads a result. */
  reset(): void {
    const { graph } = this.session.stage;
    const { nodes } = this.session.focus;
    const all = nodes.size ? [...nodes].sort((a, b) => a - b) : Array.from({ length: graph.size }, (_, i) => i);
    const { column, down } = this.#sort;
    const key = COLUMNS[column]?.value;
    if (!key) byCost(this.session, all);
    else {
      const values = new Map(all.map((node) => [node, key(this.session, node)]));
      all.sort((a, b) => {
        const [x, y] = [values.get(a)!, values.get(b)!];
        const less = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return down ? -less : less;
      });
    }
    this.#order = all;
    this.#rows.reset(all.length);
  }

  #sortBy(column: number): void {
    // Numbers are sorted from the largest.
    this.#sort = { column, down: this.#sort.column === column ? !this.#sort.down : column >= NUMBERS };
    this.reset();
  }

  light(): void {
    if (this.session.focus.item === undefined) this.reset();
    else this.#rows.redraw();
  }

  hover(): void {
    this.#rows.each(hovered(this.session));
  }

  #draw(row: number): HTMLElement {
    const node = this.#order[row]!;
    const made = element("div.row", { role: "row", "data-row": row });
    for (const { value, text } of COLUMNS) {
      const v = value(this.session, node);
      made.append(element("span", { role: "cell" }, text ? text(v as number) : String(v)));
    }
    if (isKernel(this.session, node)) made.classList.add("kernel");
    return marked(made, this.session, node);
  }
}

interface Column {
  title: string;
  value: (session: Session, node: number) => string | number;
  text?: (value: number) => string;
}

const NUMBERS = 3; // the columns from here on hold numbers
const COLUMNS: Column[] = [
  { title: "name", value: (s, n) => s.stage.graph.name(n) },
  { title: "operation", value: (s, n) => s.stage.graph.op(n) },
  { title: "type", value: (s, n) => shortType(s.stage.graph.type(n)) },
  { title: "cost", value: shareOf, text: percent },
  { title: "bytes", value: (s, n) => bytesOf(s.stage.graph.type(n)), text: (v) => (v ? bytesText(v) : "") },
  { title: "line", value: (s, n) => s.lines.place(s.stage.graph, n)?.line ?? 0, text: (v) => (v ? String(v) : "") },
];

const isKernel = ({ stage }: Session, node: number): boolean => stage.name === "hlo" && stage.graph.isKernel(node);

const measures = new WeakMap<Session, Measure>();

/** The share of a node, of what takes the program's time: the same measure for all, so that they are 1 together. */
function shareOf(session: Session, node: number): number {
  if (session.stage.name !== "hlo") return 0;
  const { graph } = session.stage;
  if (!measures.has(session)) measures.set(session, new Costs(session.capture.header.lines).first);
  const name = IN_GRAPH[measures.get(session)!];
  return (graph.c.measures[name]?.[node] ?? 0) / total(graph, name) || 0;
}

/** What runs comes first, the costliest at the top; what is inside of it after, and what only passes values on last. */
function byCost(session: Session, nodes: number[]): void {
  const { graph, name } = session.stage;
  if (name !== "hlo") return;
  const rank = new Float64Array(graph.size);
  for (const node of nodes)
    rank[node] = shareOf(session, node) + (graph.isKernel(node) ? 4 : isInKernel(graph, node) ? 2 : 0);
  nodes.sort((a, b) => rank[b]! - rank[a]! || a - b);
}

/** Marks a drawn row that the pointer is over, wherever that is. */
const hovered =
  ({ preview }: Session) =>
  (row: HTMLElement): void => {
    const { at } = row.dataset;
    row.classList.toggle("over", at !== undefined && preview.nodes.has(Number(at)));
  };

function marked(row: HTMLElement, session: Session, node: number): HTMLElement {
  if (node >= 0) {
    row.dataset.at = String(node);
    if (session.focus.nodes.has(node)) row.classList.add("lit");
    if (session.chosenNode === node) row.classList.add("chosen");
    hovered(session)(row);
  }
  return row;
}

/** Clicking and hovering rows is choosing and previewing their nodes. */
const follow = (root: HTMLElement, session: Session): void =>
  onParts(
    root,
    (event) => {
      const at = dataAt(event, "at");
      return at === undefined ? undefined : Number(at);
    },
    (node) => String(getSelection()) || session.focusNode(node),
    (node) => session.previewNode(node),
  );
