// The graph: boxes and lines in one SVG, moved and zoomed as a whole; only what is in sight is in the document.

import { type Item, groupItem, isGroup } from "./model";
import { arrowHead, drawBox, drawLine } from "./graph_draw";
import { count, kernelsOf, units } from "./labels";
import { Layouter } from "./layouter";
import { type Box, type Line, type Scene, SceneBuilder, openable } from "./scene";
import type { Session } from "./session";
import { element, svg } from "./dom";

const MARGIN = 200; // how far beyond the edge things are kept, in pixels of the screen
const READABLE = 0.3; // below this scale text is not drawn
const READ_WELL = 0.62; // the least scale that the first picture may need
const MOST_FIRST = 12; // groups opened at first
const MOST_BOXES = 60; // in a group that is opened unasked
const EDGE = 14; // pixels left around what is brought into sight
const SMALLEST = 0.02;
const LARGEST = 2.5;

export class GraphPane {
  readonly root: HTMLElement;
  private readonly canvas: SVGSVGElement;
  private readonly world: SVGGElement;
  private readonly layers: { below: SVGGElement; lines: SVGGElement; above: SVGGElement };
  private readonly crumbs: HTMLElement;
  private readonly arrow = arrowHead();
  private readonly layouter = new Layouter();
  private readonly opened = new Map<string, Set<Item>>();
  private readonly shown = new Map<Box | Line, SVGElement>();
  private readonly byItem = new Map<Item, Box>();
  private scene: Scene = { boxes: [], lines: [], width: 0, height: 0 };
  private view = { x: 0, y: 0, scale: 1 };
  private current: Item | undefined; // has the keyboard's focus
  private drawn = Promise.resolve();

  constructor(private readonly session: Session) {
    this.world = svg("g");
    this.layers = { below: svg("g"), lines: svg("g"), above: svg("g") };
    this.world.append(this.layers.below, this.layers.lines, this.layers.above);
    this.canvas = svg("svg", { class: "canvas", role: "application", tabindex: "0", "aria-label": "graph" }, this.arrow.defs, this.world);
    this.crumbs = element("div", { class: "hint" });
    this.root = element("div", { class: "explorer-graph" }, this.canvas, this.crumbs);
    this.listen();
    new ResizeObserver(() => this.paint()).observe(this.root);
  }

  dispose(): void {
    this.layouter.dispose();
  }

  private get open(): Set<Item> {
    const name = this.session.stage.name;
    let open = this.opened.get(name);
    if (!open) this.opened.set(name, (open = new Set()));
    return open;
  }

  /** Open group after group, the largest first, as long as the whole picture can still be read. */
  private async openFirst(): Promise<void> {
    const { open } = this;
    const { graph, name } = this.session.stage;
    const builder = new SceneBuilder(graph, name, (input) => this.layouter.layout(input));
    const alone = graph.children(-1).filter((item) => graph.inside(item).length).length <= 2; // itself and the inputs
    while (open.size < MOST_FIRST) {
      const next = openable(graph, open)[0];
      if (next === undefined || graph.inside(next).some((group) => graph.children(group).length > MOST_BOXES)) return;
      open.add(next);
      const scene = await builder.build(open);
      const { width, height } = this.size();
      const isReadable = Math.min(width / scene.width, height / scene.height) >= READ_WELL;
      if (!isReadable && !(alone && open.size === 1)) {
        open.delete(next);
        return;
      }
    }
  }

  /** Lay out the current stage and show its start. */
  async reset(): Promise<void> {
    this.current = undefined;
    if (!this.opened.has(this.session.stage.name)) await this.openFirst();
    await this.rebuild();
    this.fit();
  }

  /** Lay out anew what is open; `anchor` stays where it is on the screen. */
  private rebuild(anchor?: Item): Promise<void> {
    this.drawn = this.drawn.then(async () => {
      const before = anchor === undefined ? undefined : this.byItem.get(anchor);
      const { graph, name } = this.session.stage;
      this.scene = await new SceneBuilder(graph, name, (input) => this.layouter.layout(input)).build(this.open);
      this.byItem.clear();
      for (const box of this.scene.boxes) this.byItem.set(box.item, box);
      for (const drawn of this.shown.values()) drawn.remove();
      this.shown.clear();
      const after = anchor === undefined ? undefined : this.byItem.get(anchor);
      if (before && after) {
        this.view.x += (before.x - after.x) * this.view.scale;
        this.view.y += (before.y - after.y) * this.view.scale;
      }
      this.paint();
    });
    return this.drawn;
  }

  async toggle(item: Item): Promise<void> {
    if (!this.session.stage.graph.inside(item).length) return;
    const opens = !this.open.delete(item);
    if (opens) this.open.add(item);
    await this.rebuild(item);
    const box = this.byItem.get(item);
    if (opens && box) this.bring(box);
  }

  /** Move a box that was opened into sight, smaller where that shows it whole; its header at least. */
  private bring(box: Box): void {
    const { width, height } = this.size();
    const room = Math.min((width - 2 * EDGE) / box.width, (height - 2 * EDGE) / box.height);
    const scale = Math.min(this.view.scale, Math.max(room, Math.min((width - 2 * EDGE) / box.width, 1), 0.5));
    const [left, top] = [this.view.x + box.x * this.view.scale, this.view.y + box.y * this.view.scale];
    const within = (at: number, size: number, all: number) => Math.max(Math.min(at, all - EDGE - size), EDGE);
    this.view = { scale, x: within(left, box.width * scale, width) - box.x * scale, y: within(top, box.height * scale, height) - box.y * scale };
    this.paint();
  }

  /** Open what is around a node, and bring it into sight. */
  async reveal(node: number): Promise<void> {
    const { graph } = this.session.stage;
    let changed = false;
    for (const group of graph.ancestors(node)) {
      const { caller } = graph.c.groups[group]!;
      for (const item of caller >= 0 ? [caller, groupItem(group)] : [groupItem(group)])
        if (!this.open.has(item)) {
          this.open.add(item);
          changed = true;
        }
    }
    if (changed) await this.rebuild();
    const box = this.byItem.get(node) ?? this.boxAround(node);
    if (box) this.centre(box);
  }

  private boxAround(node: number): Box | undefined {
    const { graph } = this.session.stage;
    for (const group of graph.ancestors(node).reverse()) {
      const { caller } = graph.c.groups[group]!;
      const box = this.byItem.get(caller >= 0 ? caller : groupItem(group));
      if (box) return box;
    }
    return undefined;
  }

  /** The whole picture if it can be read, else its top at a readable size. */
  fit(): void {
    const { width, height } = this.size();
    const whole = Math.min(width / this.scene.width, height / this.scene.height, 1);
    const scale = whole >= READ_WELL ? whole : Math.max(Math.min(width / this.scene.width, 0.85), 0.45);
    const y = this.scene.height * scale < height ? (height - this.scene.height * scale) / 2 : 4;
    this.view = { scale, x: (width - this.scene.width * scale) / 2, y };
    this.paint();
  }

  fitAll(): void {
    const { width, height } = this.size();
    const scale = Math.min(Math.max(Math.min(width / this.scene.width, height / this.scene.height), SMALLEST), 1);
    this.view = { scale, x: (width - this.scene.width * scale) / 2, y: (height - this.scene.height * scale) / 2 };
    this.paint();
  }

  private centre(box: Box): void {
    const { width, height } = this.size();
    const scale = Math.max(this.view.scale, 0.7);
    this.view = { scale, x: width / 2 - (box.x + box.width / 2) * scale, y: height / 2 - (box.y + Math.min(box.height, height / scale) / 2) * scale };
    this.paint();
  }

  zoom(factor: number, x = this.size().width / 2, y = this.size().height / 2): void {
    const scale = Math.min(Math.max(this.view.scale * factor, SMALLEST), LARGEST);
    const ratio = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * ratio, y: y - (y - this.view.y) * ratio };
    this.paint();
  }

  private size(): { width: number; height: number } {
    return { width: this.root.clientWidth || 600, height: this.root.clientHeight || 400 };
  }

  /** Put into the document what came into sight, take out what left it. */
  private paint(): void {
    const { x, y, scale } = this.view;
    const { width, height } = this.size();
    this.world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    this.root.classList.toggle("far", scale < READABLE);
    const left = (-MARGIN - x) / scale;
    const right = (width + MARGIN - x) / scale;
    const top = (-MARGIN - y) / scale;
    const bottom = (height + MARGIN - y) / scale;
    const isIn = (x0: number, y0: number, x1: number, y1: number) => x1 >= left && x0 <= right && y1 >= top && y0 <= bottom;
    const show = (thing: Box | Line, inSight: boolean, make: () => SVGElement, layer: SVGGElement) => {
      const drawn = this.shown.get(thing);
      if (inSight && !drawn) {
        const made = make();
        this.shown.set(thing, made);
        layer.append(made);
      } else if (!inSight && drawn) {
        drawn.remove();
        this.shown.delete(thing);
      }
    };
    for (const box of this.scene.boxes)
      show(box, isIn(box.x, box.y, box.x + box.width, box.y + box.height), () => drawBox(this.session, box), box.open ? this.layers.below : this.layers.above);
    for (const line of this.scene.lines) {
      const { points } = line;
      let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
      for (let i = 0; i < points.length; i += 2) {
        x0 = Math.min(x0, points[i]!);
        x1 = Math.max(x1, points[i]!);
        y0 = Math.min(y0, points[i + 1]!);
        y1 = Math.max(y1, points[i + 1]!);
      }
      show(line, isIn(x0, y0, x1, y1), () => drawLine(line, this.arrow.id), this.layers.lines);
    }
    this.light();
  }

  /** Mark what the focus and the pointer light up. */
  light(): void {
    const { focus, preview, stage } = this.session;
    const focused = focus.nodes.size > 0;
    this.root.classList.toggle("focused", focused);
    const { graph } = stage;
    const around = new Set<Item>();
    if (focus.item !== undefined && !isGroup(focus.item)) {
      for (const node of graph.operands(focus.item)) around.add(node);
      for (const node of graph.users(focus.item)) around.add(node);
    }
    const some = (nodes: ArrayLike<number>, set: Set<number>): boolean => {
      for (let i = 0; i < nodes.length; i++) if (set.has(nodes[i]!)) return true;
      return false;
    };
    const lit = new Set<Item>();
    for (const [thing, drawn] of this.shown) {
      if (!("item" in thing)) continue;
      const nodes = graph.nodesOf(thing.item);
      const isLit = focused && some(nodes, focus.nodes);
      if (isLit) lit.add(thing.item);
      drawn.classList.toggle("lit", isLit);
      drawn.classList.toggle("chosen", thing.item === focus.item);
      drawn.classList.toggle("over", preview.nodes.size > 0 && !thing.open && some(nodes, preview.nodes));
      drawn.classList.toggle("near", around.has(thing.item));
    }
    for (const [thing, drawn] of this.shown)
      if (!("item" in thing)) drawn.classList.toggle("lit", focus.item !== undefined && (thing.from === focus.item || thing.to === focus.item));
    this.crumbs.textContent = this.message(lit.size);
  }

  private message(boxes: number): string {
    const { focus, stage } = this.session;
    if (!focus.nodes.size) return focus.query ? `nothing found for “${focus.query}”` : focus.line ? `line ${focus.line.line} left no trace in this stage` : "";
    if (focus.item !== undefined) return "";
    const runs = stage.name === "hlo" ? kernelsOf(stage.graph, focus.nodes).length : 0;
    const what = `${units(stage.name, focus.nodes.size)}${runs ? ` in ${count(runs, "kernel")}` : ""}`;
    return `${focus.query ? `“${focus.query}”` : focus.line ? `line ${focus.line.line}` : "linked"}: ${what}${boxes ? "" : " (none in sight)"}`;
  }

  private itemOf(target: EventTarget | null): Item | undefined {
    const g = (target as Element | null)?.closest?.<SVGGElement>("g[data-node], g[data-group]");
    if (!g) return undefined;
    const { node, group } = g.dataset;
    return node !== undefined ? Number(node) : groupItem(Number(group));
  }

  private listen(): void {
    let pressed: { x: number; y: number; moved: boolean } | undefined;
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button === 0) pressed = { x: event.clientX, y: event.clientY, moved: false };
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!pressed) return;
      const [dx, dy] = [event.clientX - pressed.x, event.clientY - pressed.y];
      if (!pressed.moved && Math.hypot(dx, dy) < 4) return;
      if (!pressed.moved) this.canvas.setPointerCapture(event.pointerId);
      pressed = { x: event.clientX, y: event.clientY, moved: true };
      this.view.x += dx;
      this.view.y += dy;
      this.paint();
    });
    this.canvas.addEventListener("pointercancel", () => (pressed = undefined));
    this.canvas.addEventListener("pointerup", (event) => {
      const wasClick = pressed && !pressed.moved;
      pressed = undefined;
      if (!wasClick) return;
      const item = this.itemOf(event.target);
      this.session.focusItem(item);
      this.current = item;
      // A click chooses, and opens what is closed; an open group closes by its own header only.
      const box = item === undefined ? undefined : this.byItem.get(item);
      if (box?.open === false || (box?.open && this.onHeader(box, event))) void this.toggle(box.item);
    });
    this.canvas.addEventListener("pointerover", (event) => {
      const item = this.itemOf(event.target);
      this.session.previewItem(item !== undefined && this.byItem.get(item)?.open ? undefined : item);
    });
    this.canvas.addEventListener("pointerleave", () => this.session.previewItem(undefined));
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        // The page scrolls as ever; the picture zooms with ctrl (what a pinch sends) and pans with shift or a trackpad.
        const area = this.canvas.getBoundingClientRect();
        if (event.ctrlKey || event.metaKey) {
          event.preventDefault();
          this.zoom(Math.exp(-event.deltaY / 200), event.clientX - area.left, event.clientY - area.top);
        } else if (document.activeElement && this.root.contains(document.activeElement)) {
          event.preventDefault();
          this.view.x -= event.shiftKey ? event.deltaY : event.deltaX;
          this.view.y -= event.shiftKey ? 0 : event.deltaY;
          this.paint();
        }
      },
      { passive: false },
    );
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("dblclick", (event) => {
      if (this.itemOf(event.target) === undefined) this.fitAll();
    });
  }

  private onHeader(box: Box, event: PointerEvent): boolean {
    const area = this.canvas.getBoundingClientRect();
    return (event.clientY - area.top - this.view.y) / this.view.scale < box.y + 30;
  }

  /** Arrows go along the edges, or from box to box where there is none; Enter opens, +/−/0 zoom. */
  private key(event: KeyboardEvent): void {
    const boxes = this.scene.boxes;
    const at = boxes.findIndex((box) => box.item === this.current);
    const go = (item: Item | undefined) => {
      const box = item === undefined ? undefined : this.byItem.get(item);
      if (!box) return;
      this.current = item;
      this.session.focusItem(item);
      this.centre(box);
      (this.shown.get(box) as SVGElement | undefined)?.focus({ preventScroll: true });
    };
    const along = (down: boolean) => this.scene.lines.find((line) => (down ? line.from : line.to) === this.current);
    const actions: Record<string, () => void> = {
      ArrowDown: () => go(along(true)?.to ?? boxes[Math.min(at + 1, boxes.length - 1)]?.item),
      ArrowUp: () => go(along(false)?.from ?? boxes[Math.max(at - 1, 0)]?.item),
      ArrowRight: () => go(boxes[Math.min(at + 1, boxes.length - 1)]?.item),
      ArrowLeft: () => go(boxes[Math.max(at - 1, 0)]?.item),
      Enter: () => this.current !== undefined && void this.toggle(this.current).then(() => go(this.current)),
      " ": () => this.current !== undefined && void this.toggle(this.current).then(() => go(this.current)),
      Escape: () => this.session.focusItem(undefined),
      "+": () => this.zoom(1.25),
      "=": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
      "0": () => this.fitAll(),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }
}
