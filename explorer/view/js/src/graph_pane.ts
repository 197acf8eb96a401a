// The graph pane: which groups are open, where one looks, and what mouse and keys do.

import { element } from "./dom";
import { GraphCanvas } from "./graph_canvas";
import { count, kernelsOf, units } from "./labels";
import { Layouter } from "./layouter";
import { type Item, groupItem } from "./model";
import { type Box, SceneBuilder, openable } from "./scene";
import type { Session } from "./session";

const READ_WELL = 0.62; // the least scale that the first picture may need
const MOST_FIRST = 12; // groups opened at first
const MOST_BOXES = 60; // in a group that is opened unasked
const EDGE = 14; // pixels left around what is brought into sight
const SMALLEST = 0.02;
const LARGEST = 2.5;

export class GraphPane {
  readonly root: HTMLElement;
  private readonly canvas: GraphCanvas;
  private readonly hint = element("div", { class: "hint" });
  private readonly layouter = new Layouter();
  private readonly opened = new Map<string, Set<Item>>();
  private readonly builders = new Map<string, SceneBuilder>();
  private current: Item | undefined; // has the keyboard's focus
  private drawn = Promise.resolve();

  constructor(private readonly session: Session) {
    this.canvas = new GraphCanvas(session);
    this.root = element("div", { class: "explorer-graph" }, this.canvas.root, this.hint);
    this.canvas.follow(this.root);
    this.listen();
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

  private get builder(): SceneBuilder {
    const { graph, name } = this.session.stage;
    let builder = this.builders.get(name);
    if (!builder) this.builders.set(name, (builder = new SceneBuilder(graph, name, (input) => this.layouter.layout(input))));
    return builder;
  }

  /** Open group after group, the largest first, as long as the whole picture can still be read. */
  private async openFirst(): Promise<void> {
    const { open } = this;
    const { graph } = this.session.stage;
    const alone = graph.children(-1).filter((item) => graph.inside(item).length).length <= 2; // itself and the inputs
    while (open.size < MOST_FIRST) {
      const next = openable(graph, open)[0];
      if (next === undefined || graph.inside(next).some((group) => graph.children(group).length > MOST_BOXES)) return;
      open.add(next);
      const scene = await this.builder.build(open);
      const { width, height } = this.canvas.area;
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
    this.canvas.measure(this.root);
    this.canvas.clear();
    if (!this.opened.has(this.session.stage.name)) await this.openFirst();
    await this.rebuild(() => this.fit());
  }

  /** Of the whole picture, at full size. */
  get height(): number {
    return this.canvas.scene.height;
  }

  /** Fit anew after the pane's size was changed. */
  refit(): void {
    this.canvas.measure(this.root);
    this.fit();
  }

  /** Lay out anew what is open; `look` then says where to look, and paints. */
  private rebuild(look: () => void): Promise<void> {
    this.drawn = this.drawn.then(async () => {
      this.canvas.setScene(await this.builder.build(this.open));
      look();
    });
    return this.drawn;
  }

  async toggle(item: Item): Promise<void> {
    if (!this.session.stage.graph.inside(item).length) return;
    const opens = !this.open.delete(item);
    if (opens) this.open.add(item);
    const before = this.canvas.byItem.get(item);
    await this.rebuild(() => {
      const after = this.canvas.byItem.get(item);
      const { view } = this.canvas;
      if (before && after) {
        view.x += (before.x - after.x) * view.scale;
        view.y += (before.y - after.y) * view.scale;
      }
      if (opens && after) this.bring(after);
      else this.canvas.paint();
    });
  }

  /** Move a box that was opened into sight, smaller where that shows it whole; its header at least. */
  private bring(box: Box): void {
    const { width, height } = this.canvas.area;
    const room = Math.min((width - 2 * EDGE) / box.width, (height - 2 * EDGE) / box.height);
    const scale = Math.min(this.canvas.view.scale, Math.max(room, Math.min((width - 2 * EDGE) / box.width, 1), 0.5));
    const [left, top] = [this.canvas.view.x + box.x * this.canvas.view.scale, this.canvas.view.y + box.y * this.canvas.view.scale];
    const within = (at: number, size: number, all: number) => Math.max(Math.min(at, all - EDGE - size), EDGE);
    this.canvas.view = { scale, x: within(left, box.width * scale, width) - box.x * scale, y: within(top, box.height * scale, height) - box.y * scale };
    this.canvas.paint();
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
    if (changed) await this.rebuild(() => undefined);
    const box = this.canvas.byItem.get(node) ?? this.boxAround(node);
    if (box) this.centre(box);
  }

  private boxAround(node: number): Box | undefined {
    const { graph } = this.session.stage;
    for (const group of graph.ancestors(node).reverse()) {
      const { caller } = graph.c.groups[group]!;
      const box = this.canvas.byItem.get(caller >= 0 ? caller : groupItem(group));
      if (box) return box;
    }
    return undefined;
  }

  /** The whole picture if it can be read, else its top at a readable size. */
  fit(): void {
    const { width, height } = this.canvas.area;
    const whole = Math.min(width / this.canvas.scene.width, height / this.canvas.scene.height, 1);
    const scale = whole >= READ_WELL ? whole : Math.max(Math.min(width / this.canvas.scene.width, 0.85), 0.45);
    const y = this.canvas.scene.height * scale < height ? (height - this.canvas.scene.height * scale) / 2 : 4;
    this.canvas.view = { scale, x: (width - this.canvas.scene.width * scale) / 2, y };
    this.canvas.paint();
  }

  fitAll(): void {
    const { width, height } = this.canvas.area;
    const scale = Math.min(Math.max(Math.min(width / this.canvas.scene.width, height / this.canvas.scene.height), SMALLEST), 1);
    this.canvas.view = { scale, x: (width - this.canvas.scene.width * scale) / 2, y: (height - this.canvas.scene.height * scale) / 2 };
    this.canvas.paint();
  }

  private centre(box: Box): void {
    const { width, height } = this.canvas.area;
    const scale = Math.max(this.canvas.view.scale, 0.7);
    this.canvas.view = { scale, x: width / 2 - (box.x + box.width / 2) * scale, y: height / 2 - (box.y + Math.min(box.height, height / scale) / 2) * scale };
    this.canvas.paint();
  }

  zoom(factor: number, x = this.canvas.area.width / 2, y = this.canvas.area.height / 2): void {
    const scale = Math.min(Math.max(this.canvas.view.scale * factor, SMALLEST), LARGEST);
    const ratio = scale / this.canvas.view.scale;
    this.canvas.view = { scale, x: x - (x - this.canvas.view.x) * ratio, y: y - (y - this.canvas.view.y) * ratio };
    this.canvas.paint();
  }

  /** Mark what the focus and the pointer light up. */
  light(): void {
    this.hint.textContent = this.message(this.canvas.light());
  }

  private message(boxes: number): string {
    const { focus, stage } = this.session;
    if (focus.fault) return focus.fault;
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
    this.canvas.root.addEventListener("pointerdown", (event) => {
      if (event.button === 0) pressed = { x: event.clientX, y: event.clientY, moved: false };
    });
    this.canvas.root.addEventListener("pointermove", (event) => {
      if (!pressed) return;
      const [dx, dy] = [event.clientX - pressed.x, event.clientY - pressed.y];
      if (!pressed.moved && Math.hypot(dx, dy) < 4) return;
      if (!pressed.moved) this.canvas.root.setPointerCapture(event.pointerId);
      pressed = { x: event.clientX, y: event.clientY, moved: true };
      this.canvas.view.x += dx;
      this.canvas.view.y += dy;
      this.canvas.paint();
    });
    this.canvas.root.addEventListener("pointercancel", () => (pressed = undefined));
    this.canvas.root.addEventListener("pointerup", (event) => {
      const wasClick = pressed && !pressed.moved;
      pressed = undefined;
      if (!wasClick) return;
      const item = this.itemOf(event.target);
      this.session.focusItem(item);
      this.current = item;
      // A click chooses, and opens what is closed; an open group closes by its own header only.
      const box = item === undefined ? undefined : this.canvas.byItem.get(item);
      if (box?.open === false || (box?.open && this.onHeader(box, event))) void this.toggle(box.item);
    });
    this.canvas.root.addEventListener("pointerover", (event) => {
      const item = this.itemOf(event.target);
      this.session.previewItem(item !== undefined && this.canvas.byItem.get(item)?.open ? undefined : item);
    });
    this.canvas.root.addEventListener("pointerleave", () => this.session.previewItem(undefined));
    this.canvas.root.addEventListener(
      "wheel",
      (event) => {
        // The page scrolls as ever; the picture zooms with ctrl (what a pinch sends) and pans with shift or a trackpad.
        const area = this.canvas.root.getBoundingClientRect();
        if (event.ctrlKey || event.metaKey) {
          event.preventDefault();
          this.zoom(Math.exp(-event.deltaY / 200), event.clientX - area.left, event.clientY - area.top);
        } else if (document.activeElement && this.root.contains(document.activeElement)) {
          event.preventDefault();
          this.canvas.view.x -= event.shiftKey ? event.deltaY : event.deltaX;
          this.canvas.view.y -= event.shiftKey ? 0 : event.deltaY;
          this.canvas.paint();
        }
      },
      { passive: false },
    );
    this.canvas.root.addEventListener("keydown", (event) => this.key(event));
    this.canvas.root.addEventListener("dblclick", (event) => {
      if (this.itemOf(event.target) === undefined) this.fitAll();
    });
  }

  private onHeader(box: Box, event: PointerEvent): boolean {
    const area = this.canvas.root.getBoundingClientRect();
    return (event.clientY - area.top - this.canvas.view.y) / this.canvas.view.scale < box.y + 30;
  }

  /** Arrows go along the edges, or from box to box where there is none; Enter opens, +/−/0 zoom. */
  private key(event: KeyboardEvent): void {
    const boxes = this.canvas.scene.boxes;
    const at = boxes.findIndex((box) => box.item === this.current);
    const go = (item: Item | undefined) => {
      const box = item === undefined ? undefined : this.canvas.byItem.get(item);
      if (!box) return;
      this.current = item;
      this.session.focusItem(item);
      this.centre(box);
      this.canvas.element(box.item)?.focus({ preventScroll: true });
    };
    const along = (down: boolean) => this.canvas.scene.lines.find((line) => (down ? line.from : line.to) === this.current);
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
