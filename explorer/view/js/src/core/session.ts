// What is shown and what is in focus: the one state that every pane draws.

import { Costs, IN_GRAPH, type Measure } from "../lines/line_costs";
import { Lines } from "../source/source_lines";
import type { Capture, Stage } from "./capture";
import { type Graph, type Item, isGroup, isNode, nodeItem } from "./graph";
import { lineKey } from "./links";

export type Mode = "graph" | "text" | "table" | "lines" | "why" | "memory" | "passes" | "code";

/** A line of the source; `through`: with all that it led to as a call, not only what belongs to it. */
export type FocusLine = { file: string; line: number; through?: boolean };

/** What is lit: nodes of the current stage and lines of the source, however they were reached. */
export interface Focus {
  nodes: Set<number>;
  lines: Set<string>;
  /** What was chosen, if anything; the details pane describes it. */
  item?: Item;
  line?: FocusLine;
  query?: string;
  /** What the nodes have in common, where it is neither a line nor a query. */
  name?: string;
  /** Why the query can't be read. */
  fault?: string;
}

export type Finder = (graph: Graph, query: string) => Pick<Focus, "nodes" | "fault">;

export const NOTHING: Focus = { nodes: new Set(), lines: new Set() };

/**
 * `cost`: by which measure shares are shown; `look`: what boxes are coloured by, or which nodes stay in the light;
 * `open`: which boxes are open; `notes`: where there are some.
 */
export type Change = "stage" | "focus" | "preview" | "mode" | "look" | "cost" | "open" | "notes";

export class Session {
  readonly lines: Lines;
  stage: Stage;
  mode: Mode = "graph";
  focus: Focus = NOTHING;
  /** What the pointer is over; lit more lightly, gone when it leaves. */
  preview: Focus = NOTHING;
  /** What was written, by stage on its items, and without one on lines by their key. */
  readonly notes = new Map<string, ReadonlyMap<unknown, string>>();
  /** The nodes that a query finds, or why it can't be read. */
  finder: Finder | undefined;
  /** The measure that every share is of. */
  costBy: Measure;
  #colour?: string;
  #pass: number | undefined;
  #isQuiet = false;
  readonly #kept = new Map<string, ReadonlySet<number>>();
  readonly #listeners: ((change: Change) => void)[] = [];

  constructor(
    readonly capture: Capture,
    first?: string,
  ) {
    this.lines = new Lines(capture);
    this.stage = capture.stage(first ?? "hlo");
    const costs = new Costs(capture.header.lines ?? []);
    this.costBy = costs.first;
    if (costs.measures.length) this.#measure();
    if (!this.stage.size) this.mode = "text"; // nothing of it could be read
  }

  setCostBy(measure: Measure): void {
    this.costBy = measure;
    this.#measure();
    this.notify("cost");
  }

  #measure(): void {
    const stage = this.capture.stages.find(({ name }) => name === "hlo");
    if (stage?.size) stage.graph.costBy = IN_GRAPH[this.costBy];
  }

  listen(listener: (change: Change) => void): void {
    this.#listeners.push(listener);
  }

  notify(change: Change): void {
    if (!this.#isQuiet) for (const listener of this.#listeners) listener(change);
  }

  /** Change many things; who does says afterwards that they changed. */
  quietly(change: () => void): void {
    this.#isQuiet = true;
    change();
    this.#isQuiet = false;
  }

  /** What was written on a line, by its key, or on an item of the stage that is shown. */
  noteOn(thing: string | Item): string | undefined {
    return this.notes.get(typeof thing === "string" ? "" : this.stage.name)?.get(thing);
  }

  /** The nodes of the current stage that stay in the light while the others are dimmed; undefined for all. */
  get filter(): ReadonlySet<number> | undefined {
    return this.#kept.get(this.stage.name);
  }

  setFilter(stage: string, nodes?: Iterable<number>): void {
    if (nodes) this.#kept.set(stage, new Set(nodes));
    else this.#kept.delete(stage);
    this.notify("look");
  }

  clearFilter(): void {
    this.#kept.clear();
    this.notify("look");
  }

  /**
   * What boxes are coloured by: `line`, a column, or one of the stage's measures. Unasked, the line, as in every pane.
   */
  get colourBy(): string {
    return this.#colour ?? "line";
  }

  setColour(by?: string): void {
    this.#colour = by;
    this.notify("look");
  }

  setMode(mode: Mode): void {
    this.mode = mode;
    this.notify("mode");
  }

  /** Show one of the passes that changed something. */
  showPass(position: number): void {
    this.#pass = position;
    this.setStage("hlo");
    this.setMode("passes");
  }

  /** The pass to show next, once. */
  takePass(): number | undefined {
    const pass = this.#pass;
    this.#pass = undefined;
    return pass;
  }

  /** Switch the stage; what was in focus is found again in the other representation. */
  setStage(name: string): void {
    const from = this.stage;
    const to = this.capture.stage(name);
    if (from === to) return;
    this.stage = to;
    const { line, query, nodes, lines } = this.focus;
    this.preview = NOTHING;
    if (line) this.focus = this.#ofLine(line);
    else if (query) this.focus = this.#ofQuery(query);
    else if (nodes.size) {
      const linked = this.#linked(from, nodes);
      const [only] = linked;
      this.focus = { nodes: linked, lines, ...(linked.size === 1 && { item: nodeItem(only!) }) };
    }
    this.notify("stage");
  }

  get chosenNode(): number | undefined {
    const { item } = this.focus;
    return isNode(item) ? item.node : undefined;
  }

  /** The node that was chosen, else the first of those in focus. */
  get firstNode(): number | undefined {
    return this.chosenNode ?? this.focus.nodes.values().next().value;
  }

  focusNode(node: number): void {
    this.focusItem(nodeItem(node));
  }

  focusItem(item: Item | undefined): void {
    this.focus = item === undefined ? NOTHING : this.#ofItem(item);
    this.notify("focus");
  }

  /** Light up nodes of a stage, as Python requests. */
  focusNodes(stage: string, nodes: Iterable<number>, name?: string): void {
    const to = this.capture.stage(stage);
    const all = new Set(nodes);
    const goes = to !== this.stage;
    this.stage = to;
    this.preview = NOTHING;
    this.focus = { nodes: all, lines: this.#linesOf(to, all), ...(name && { name }) };
    this.notify(goes ? "stage" : "focus");
  }

  focusLine(file: string, line: number, through = false): void {
    this.focus = this.#ofLine({ file, line, through });
    this.notify("focus");
  }

  search(query: string): void {
    if (query.trim() && !this.finder) return void this.#findLater(query);
    this.focus = query.trim() ? this.#ofQuery(query) : NOTHING;
    this.notify("focus");
  }

  /** What reads queries comes with the field for them. */
  async #findLater(query: string): Promise<void> {
    this.finder = (await import("../ask/ask")).finder;
    this.search(query);
  }

  previewNode(node: number | undefined): void {
    this.previewItem(node === undefined ? undefined : nodeItem(node));
  }

  previewItem(item: Item | undefined): void {
    this.preview = item === undefined ? NOTHING : this.#ofItem(item);
    this.notify("preview");
  }

  previewLine(file: string, line: number): void {
    this.preview = this.#ofLine({ file, line });
    this.notify("preview");
  }

  /** What a sentence, or a node of another stage, speaks of: its nodes where they are in this stage, else its lines. */
  previewNodes(stage: string, nodes: Iterable<number>): void {
    const of = this.capture.stage(stage);
    const lines = this.#linesOf(of, nodes);
    this.preview = { nodes: new Set(of === this.stage ? nodes : this.#linked(of, nodes)), lines };
    this.notify("preview");
  }

  #ofItem(item: Item): Focus {
    const { graph } = this.stage;
    const nodes = new Set(Array.from(graph.nodesOf(item)));
    // A group's lines are its whole program: only a kernel's are worth lighting.
    const lines = !isGroup(item) || nodes.size < 400 ? this.#linesOf(this.stage, nodes) : new Set<string>();
    return { nodes, lines, item };
  }

  #linesOf({ attribution }: Stage, nodes: Iterable<number>): Set<string> {
    const places = Array.from(nodes, (node) => attribution.place(node)).filter((place) => place !== undefined);
    return new Set(places.map(({ file, line }) => lineKey(file, line)));
  }

  /** The same operations in the stage that is shown. */
  #linked(from: Stage, nodes: Iterable<number>): Set<number> {
    return new Set(Array.from(nodes, (node) => this.capture.linked(from, node, this.stage)).flat());
  }

  /** What belongs to a line; or every node whose stack goes through it: for a call, all that it led to. */
  #ofLine({ file, line, through }: FocusLine): Focus {
    const { graph } = this.stage;
    const nodes = through
      ? graph.through((frame) => frame.line === line && frame.file === file)
      : graph.c.attribution.nodes(file, line);
    return {
      nodes: new Set(nodes),
      lines: new Set([lineKey(file, line)]),
      line: { file, line, ...(through && { through }) },
    };
  }

  /** What the calls on a line led to, of the current stage; empty for a line that calls nothing of the program. */
  calledFrom(of: FocusLine): number[] {
    if (of.through) return [];
    const own = this.#ofLine(of).nodes;
    return [...this.#ofLine({ ...of, through: true }).nodes].filter((node) => !own.has(node));
  }

  #ofQuery = (query: string): Focus => ({ ...this.finder!(this.stage.graph, query), lines: new Set(), query });
}
