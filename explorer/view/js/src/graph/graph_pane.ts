// The graph pane: which groups are open, where one looks, and which way through the graph is shown.

import { made } from "../core/buckets";
import { element } from "../core/dom";
import { type Graph, groupItem, type Item, isGroup, isNode, isRest, nodeItem, type RestItem } from "../core/graph";
import { count, kernelsOf, labelOf, shareOf, units } from "../core/labels";
import type { Session } from "../core/session";
import type { LayoutInput } from "../layout/layout";
import { Layouter } from "../layout/layouter";
import { GraphCanvas, type Trace } from "./canvas";
import { type Box, openable, type Scene, SceneBuilder } from "./scene";
import type { ShownWay } from "./shown_way";
import { Breadcrumbs, GraphTools, type Way } from "./tools";
import { bringIntoSight, centre, fitReadable, fitWhole, GraphInput, Minimap, READABLE, TOP, zoom } from "./viewport";

const BESIDE = 90; // pixels beside a row of boxes that lines around it may take
const TALLEST = 2.5; // times the pane: the phases, which are read from the top, may be so high at first
const MOST_FIRST = 12; // groups opened at first
const MOST_BOXES = 60; // in a group that is opened unasked
const MOST_IN_ALL = 500; // boxes: beyond, what was opened longest ago closes
const FAINTEST = 0.25; // of what is farthest on a way

export class GraphPane {
  readonly root: HTMLElement;
  readonly #canvas: GraphCanvas;
  readonly #hint = element("div.hint", { "aria-live": "polite" });
  readonly #layouter = new Layouter();
  readonly #input: GraphInput;
  readonly #tools: GraphTools;
  readonly #crumbs: Breadcrumbs;
  readonly #minimap: Minimap;
  /** What is open in each stage, what was opened last at the end; and what of that was opened unasked. */
  readonly #opened = new Map<string, Set<Item>>();
  readonly #first = new Map<string, ReadonlySet<Item>>();
  readonly #builders = new Map<string, SceneBuilder>();
  #drawn = Promise.resolve();
  #colouredBy = "line";
  #shownWay: ShownWay | undefined;
  /** Where paths are to be shown from, once something else is chosen. */
  #from: Item | undefined;
  #width = 1;

  constructor(private readonly session: Session) {
    this.#canvas = new GraphCanvas(session);
    this.#minimap = new Minimap(this.#canvas);
    this.#tools = new GraphTools(session, this.#canvas, (kind) => this.way(kind));
    this.#crumbs = new Breadcrumbs(session, (item) => void this.#show(item));
    const above = element("div.overhead", this.#crumbs.root, this.#tools.root);
    const below = element("div.below", this.#tools.legend, this.#hint);
    this.root = element("div.explorer-graph", this.#canvas.root, above, below, this.#minimap.root);
    this.#canvas.follow(this.root);
    this.#canvas.onPaint = () => this.#minimap.draw();
    this.#input = new GraphInput(this.root, this.#canvas, session, this);
  }

  dispose(): void {
    this.#layouter.dispose();
  }

  private get open(): Set<Item> {
    return made(this.#opened, this.session.stage.name, () => new Set());
  }

  /** What is open in the stage that is shown; undefined where that is what it opens unasked. */
  get opened(): Item[] | undefined {
    const { name } = this.session.stage;
    const [open, first] = [this.#opened.get(name), this.#first.get(name)];
    const isFirst = !open || (first?.size === open.size && [...open].every((item) => first.has(item)));
    return isFirst ? undefined : [...open];
  }

  /** Have that open when the stage that is shown is drawn next. */
  setOpened(items: Item[]): void {
    this.#opened.set(this.session.stage.name, new Set(items));
  }

  private get builder(): SceneBuilder {
    const { stage } = this.session;
    const room = () => this.#canvas.area.width - BESIDE;
    const layout = (input: LayoutInput) => this.#layouter.layout(input);
    return made(this.#builders, stage.name, () => new SceneBuilder(stage, layout, room));
  }

  private get graph(): Graph {
    return this.session.stage.graph;
  }

  /**
   * Open group after group, phases before others, the largest first, as long as the whole picture can still be read.
   */
  async #openFirst(): Promise<void> {
    const { open, graph } = this;
    const alone = graph.children(-1).filter((item) => graph.inside(item).length).length <= 2; // itself and the inputs
    const passed = new Set<Item>();
    while (open.size < MOST_FIRST) {
      const next = openable(graph, open).find((item) => !passed.has(item));
      if (next === undefined || graph.inside(next).some((group) => graph.children(group).length > MOST_BOXES)) return;
      open.add(next);
      const scene = await this.builder.build(open);
      const isPhase = isGroup(next) && graph.c.groups[next.group]!.kind === "phase";
      if (this.#isReadable(scene, isPhase ? TALLEST : 1) || (alone && open.size === 1)) continue;
      open.delete(next);
      passed.add(next);
      if (passed.size > 2) return;
    }
  }

  /** Is it no wider than the pane, and no higher than so many of it, with a text that can be read? */
  #isReadable({ width, height }: Scene, panes: number): boolean {
    const { area } = this.#canvas;
    return width * READABLE <= area.width && height * READABLE <= panes * area.height;
  }

  /** The closed box that costs most, where the graph opens. */
  get #costliest(): Box | undefined {
    const boxes = this.#canvas.scene.boxes.filter(({ open, pill, item }) => !open && !pill && !isRest(item));
    const shares = boxes.map((box): [Box, number] => [box, shareOf(this.graph, box.item)?.share ?? 0]);
    return shares.filter(([, share]) => share > 0).sort(([, a], [, b]) => b - a)[0]?.[0];
  }

  relabel(): Promise<void> {
    this.#canvas.clear();
    return this.#rebuild(() => this.#canvas.paint());
  }

  async reset(): Promise<void> {
    this.#input.current = undefined;
    this.#shownWay = undefined;
    this.#canvas.measure(this.root);
    this.#canvas.clear();
    const { name } = this.session.stage;
    if (!this.#opened.has(name)) {
      await this.#openFirst();
      this.#first.set(name, new Set(this.open));
    }
    await this.#rebuild(() => this.fit());
    this.#tools.reset();
  }

  /** Of the whole picture, at full size. */
  get height(): number {
    return this.#canvas.scene.height;
  }

  refit(): void {
    this.#canvas.measure(this.root);
    this.fit();
  }

  /** Lay out anew what is open; `look` then says where to look, and paints. What is `kept` stays open. */
  #rebuild(look: () => void, kept?: Item): Promise<void> {
    this.#drawn = this.#drawn.then(async () => {
      this.#canvas.setScene(await this.#few(kept));
      this.#canvas.trace = this.#traceBoxes();
      look();
    });
    return this.#drawn;
  }

  /** The scene, with no more boxes than can be drawn well: what was opened longest ago closes. */
  async #few(kept: Item | undefined): Promise<Scene> {
    const { open, graph } = this;
    const around = new Set(kept && [kept, ...graph.ancestors(kept).map((group) => graph.itemOf(group))]);
    let scene = await this.builder.build(open);
    while (scene.boxes.length > MOST_IN_ALL) {
      const inSight = new Set(scene.boxes.map((box) => box.item));
      const oldest = [...open].find((item) => !around.has(item) && inSight.has(item));
      if (oldest === undefined) break;
      open.delete(oldest);
      scene = await this.builder.build(open);
    }
    return scene;
  }

  async toggle(item: Item): Promise<void> {
    const box = this.#canvas.byItem.get(item);
    if (!box?.chain && !this.graph.inside(item).length) return;
    const opens = !this.open.delete(item);
    if (opens) this.open.add(item);
    this.session.notify("open");
    await this.#redraw(item, opens);
  }

  async turn(rest: RestItem): Promise<void> {
    this.builder.turn(rest);
    await this.#redraw(rest, false);
  }

  /** Show the next iteration of a repeat, or the one before. */
  async step(group: number, by: number): Promise<void> {
    const of = this.graph.iterations(group).length;
    this.graph.shown.set(group, ((this.graph.shown.get(group) ?? 0) + by + of) % of);
    await this.#redraw(groupItem(group), false);
    this.light();
  }

  /** Lay out anew with one box staying where it is, or brought into sight. */
  async #redraw(item: Item, brings: boolean): Promise<void> {
    const before = this.#canvas.byItem.get(item);
    const look = () => {
      const after = this.#canvas.byItem.get(item);
      const { scale } = this.#canvas.view;
      if (before && after) this.#canvas.moveBy((before.x - after.x) * scale, (before.y - after.y) * scale);
      if (brings && after) bringIntoSight(this.#canvas, after);
      else this.#canvas.paint();
    };
    await this.#rebuild(look, isRest(item) ? undefined : item);
  }

  /** Open what is around a node, and bring it into sight. */
  async reveal(node: number): Promise<void> {
    const box = await this.#openTo(nodeItem(node));
    if (box) centre(this.#canvas, box);
  }

  /**
   * Open what is around an item, the iteration and the page that it is on, and give its box or the nearest around it.
   */
  async #openTo(item: Item): Promise<Box | undefined> {
    const { graph, builder, open } = this;
    const groups = graph.ancestors(item);
    let changed = false;
    const opens = (outer: Item) => {
      if (open.has(outer)) return;
      open.add(outer);
      changed = true;
    };
    for (const group of isGroup(item) ? groups.slice(0, -1) : groups) {
      const { caller, kind, parent } = graph.c.groups[group]!;
      if (kind === "iteration") {
        const number = graph.iterations(parent).indexOf(group);
        changed ||= (graph.shown.get(parent) ?? 0) !== number;
        graph.shown.set(parent, number);
        continue;
      }
      if (caller >= 0) opens(nodeItem(caller));
      opens(groupItem(group));
      builder.turnTo(graph.itemOf(group));
    }
    builder.turnTo(item);
    const chain = isNode(item) ? builder.chainAround(item.node) : undefined;
    if (chain !== undefined) opens(nodeItem(chain));
    if (changed || !this.#canvas.byItem.has(item)) await this.#rebuild(() => undefined, item);
    const { byItem } = this.#canvas;
    const around = groups.reverse().map((group) => byItem.get(graph.itemOf(group)));
    return byItem.get(item) ?? (isNode(item) ? this.#canvas.boxOf(item.node) : undefined) ?? around.find(Boolean);
  }

  async #show(item: Item): Promise<void> {
    const box = await this.#openTo(item);
    if (box) bringIntoSight(this.#canvas, box);
    this.session.focusItem(item);
  }

  /** Look at something that is lit, where nothing of it is in sight. */
  seek(): void {
    const box = this.#canvas.litOutOfSight(TOP);
    if (box) centre(this.#canvas, box);
  }

  /** The whole picture if it can be read, else where the cost is at a readable size. */
  fit(): void {
    fitReadable(this.#canvas, this.#costliest);
  }

  fitAll(): void {
    fitWhole(this.#canvas);
  }

  zoom(factor: number): void {
    zoom(this.#canvas, factor);
  }

  /** Show all that feeds what is chosen, all that it feeds, or the critical path; the same again hides it. */
  async way(kind: Way): Promise<void> {
    const { criticalWay, reachedWay } = await import("./shown_way");
    const { graph } = this;
    const { focus, stage } = this.session;
    if (this.#shownWay?.kind === kind) this.#shownWay = undefined;
    else if (kind === "critical") this.#shownWay = criticalWay(graph, stage.name, focus.item);
    else if (focus.nodes.size) this.#shownWay = reachedWay(graph, kind, focus.nodes, focus.item);
    this.#retrace();
  }

  startWay(item: Item): void {
    const { title } = labelOf(this.graph, this.session.stage.name, item);
    this.#hint.textContent = `path from ${title}: go to another box and press p`;
  }

  /** Show all paths from an item to what is chosen next, wherever that is. */
  pathsFrom(item: Item): void {
    this.#from = item;
    this.light();
  }

  /** Show all paths from what is chosen, or from another item, to an item. */
  async wayTo(item: Item, from = this.session.focus.item): Promise<void> {
    if (from === undefined) return;
    const { pathsBetween } = await import("./shown_way");
    this.#shownWay = pathsBetween(this.graph, from, item, this.session.focus.item) ?? this.#shownWay;
    this.#retrace();
  }

  /** Show what is so many steps more away from what is chosen than what is shown now. */
  async widen(by: number): Promise<void> {
    const { nearWay } = await import("./shown_way");
    const { focus, stage } = this.session;
    if (!focus.nodes.size) return;
    this.#width = this.#shownWay?.kind === "near" ? Math.max(this.#width + by, 0) : 1;
    this.#shownWay = this.#width ? nearWay(this.graph, stage.name, focus.nodes, this.#width, focus.item) : undefined;
    this.#retrace();
  }

  #retrace(): void {
    this.#canvas.trace = this.#traceBoxes();
    this.light();
  }

  #traceBoxes(): Trace | undefined {
    if (!this.#shownWay) return undefined;
    const least = new Map<Item, number>();
    for (const [node, distance] of this.#shownWay.steps) {
      const item = this.#canvas.boxOf(node)?.item;
      if (item !== undefined) least.set(item, Math.min(least.get(item) ?? Infinity, distance));
    }
    const most = [...least.values()].reduce((all, distance) => Math.max(all, distance), 1);
    return { near: new Map([...least].map(([item, distance]) => [item, 1 - (1 - FAINTEST) * (distance / most)])) };
  }

  light(): void {
    const { item } = this.session.focus;
    const from = this.#from;
    if (from !== undefined && item !== from) {
      this.#from = undefined;
      if (item !== undefined) return void this.wayTo(item, from); // which marks it all
    }
    // A way belongs to what was chosen when it was drawn.
    if (this.#shownWay && this.#shownWay.kind !== "critical" && this.#shownWay.of !== this.session.focus.item) {
      this.#shownWay = undefined;
      this.#canvas.trace = undefined;
    }
    if (this.#canvas.colours.by !== this.#colouredBy) {
      this.#colouredBy = this.session.colourBy;
      this.#canvas.recolour();
    }
    const boxes = this.#canvas.light();
    this.#crumbs.fill();
    const way = this.#shownWay?.kind;
    this.#tools.light(way === "path" || way === "near" ? undefined : way);
    this.#hint.textContent = this.#shownWay?.message ?? this.#message(boxes);
  }

  #message(boxes: number): string {
    const { focus, stage } = this.session;
    if (focus.fault) return focus.fault;
    if (this.#from !== undefined) return "now select the other end: a box, a line of the text, a search result";
    if (!focus.nodes.size)
      return focus.query
        ? `nothing found for “${focus.query}”`
        : focus.line
          ? this.session.calledFrom(focus.line).length
            ? `line ${focus.line.line} only calls: see the details`
            : `line ${focus.line.line} has no node in this stage`
          : "";
    if (focus.item !== undefined) return "";
    const runs = stage.name === "hlo" ? kernelsOf(stage.graph, focus.nodes).length : 0;
    const what = `${units(stage.name, focus.nodes.size)}${runs ? ` in ${count(runs, "kernel")}` : ""}`;
    const of = focus.query ? `“${focus.query}”` : focus.line ? `line ${focus.line.line}` : (focus.name ?? "linked");
    return `${of}: ${what}${boxes ? this.#iterations() : " (none in sight)"}`;
  }

  /** In how many iterations of the repeats in sight something is lit. */
  #iterations(): string {
    const lit = this.#canvas.scene.boxes
      .flatMap(({ item, label }) => (isGroup(item) && this.graph.isRepeat(item.group) ? [{ ...item, label }] : []))
      .map(({ group, label }) => {
        const name = label.title.replace(/ ×.*/, "");
        return [name, this.#canvas.litIterations(group), this.graph.iterations(group).length] as const;
      })
      .filter(([, some]) => some > 0);
    // Forward and backward repeat the same blocks: what is so of both stands once.
    const texts = new Set(lit.map(([title, some, all]) => ` · lit in ${some} of ${all} × ${title}`));
    return [...texts].slice(0, 2).join("");
  }
}
