// The drawing of a scene: moved and zoomed as a whole, and only what is in sight is in the document.

import { svg } from "./dom";
import { arrowHead, drawBox, drawLine, head, path, place } from "./graph_draw";
import { type Item, type Stage, isGroup } from "./model";
import type { Box, Line, Scene } from "./scene";
import type { Session } from "./session";

const MARGIN = 200; // how far beyond the edge things are kept, in pixels of the screen
const READABLE = 0.3; // below this scale text is not drawn

export interface View {
  x: number;
  y: number;
  scale: number;
}

interface Drawn {
  box: Box;
  element: SVGElement;
}

export class GraphCanvas {
  readonly root: SVGSVGElement;
  readonly byItem = new Map<Item, Box>();
  scene: Scene = { boxes: [], lines: [], hidden: [], width: 1, height: 1 };
  view: View = { x: 0, y: 0, scale: 1 };
  /** Pixels of the pane; asked from the document only when they change, for asking makes it lay out the page. */
  area = { width: 600, height: 400 };
  private readonly arrow = arrowHead();
  private readonly world = svg("g");
  /** All lines are one path, and all their heads another: thousands of elements would be slow. */
  private readonly lines = svg("path", { class: "edge" });
  private readonly heads = svg("path", { class: "heads" });
  private readonly layers = { below: svg("g"), lines: svg("g", {}, this.lines, this.heads), lit: svg("g"), above: svg("g") };
  private readonly boxes = new Map<Item, Drawn>();
  private lit = new Marks();
  private over = new Marks();
  private kept = new Marks();
  private near = new Set<Item>();
  private far = false;
  private litItem: Item | undefined;
  private litScene?: Scene;
  private sceneOf?: Stage;

  constructor(private readonly session: Session) {
    this.world.append(this.layers.below, this.layers.lines, this.layers.lit, this.layers.above);
    this.root = svg("svg", { class: "canvas", role: "application", tabindex: "0", "aria-label": "graph" }, this.arrow.defs, this.world);
  }

  /** Follow the size of the pane around. */
  follow(pane: HTMLElement): void {
    new ResizeObserver(() => {
      this.measure(pane);
      this.paint();
    }).observe(pane);
  }

  measure(pane: HTMLElement): void {
    if (pane.clientWidth && pane.clientHeight) this.area = { width: pane.clientWidth, height: pane.clientHeight };
  }

  /** Show another scene. A box that looks the same is moved, not drawn again. */
  setScene(scene: Scene): void {
    this.scene = scene;
    this.sceneOf = this.session.stage;
    this.byItem.clear();
    for (const box of scene.boxes) this.byItem.set(box.item, box);
    for (const [item, drawn] of this.boxes) {
      const box = this.byItem.get(item);
      if (box && looksLike(box, drawn.box)) {
        drawn.box = box;
        place(drawn.element, box);
      } else {
        drawn.element.remove();
        this.boxes.delete(item);
      }
    }
    this.lines.setAttribute("d", scene.lines.map(path).join(""));
    this.heads.setAttribute("d", scene.lines.map(head).join(""));
    this.lightLines();
  }

  clear(): void {
    for (const { element } of this.boxes.values()) element.remove();
    this.boxes.clear();
  }

  element(item: Item): SVGElement | undefined {
    return this.boxes.get(item)?.element;
  }

  /** Put into the document what came into sight, take out what left it. */
  paint(): void {
    // A pane that changes its size paints at once, also while the scene of another stage is being laid out.
    if (this.sceneOf !== this.session.stage) return;
    const { x, y, scale } = this.view;
    this.world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    const far = scale < READABLE;
    if (far !== this.far) this.clear();
    this.far = far;
    const left = (-MARGIN - x) / scale;
    const right = (this.area.width + MARGIN - x) / scale;
    const top = (-MARGIN - y) / scale;
    const bottom = (this.area.height + MARGIN - y) / scale;
    for (const box of this.scene.boxes) {
      const inSight = box.x + box.width >= left && box.x <= right && box.y + box.height >= top && box.y <= bottom;
      const drawn = this.boxes.get(box.item);
      if (inSight && !drawn) {
        const element = drawBox(this.session, box, far);
        this.boxes.set(box.item, { box, element });
        this.lightBox(box, element);
        (box.open ? this.layers.below : this.layers.above).append(element);
      } else if (!inSight && drawn) {
        drawn.element.remove();
        this.boxes.delete(box.item);
      }
    }
  }

  /** Mark what the focus and the pointer light up; gives how many boxes in sight the focus does. */
  light(): number {
    const { focus, preview, stage } = this.session;
    const { graph } = stage;
    this.root.classList.toggle("focused", focus.nodes.size > 0);
    this.lit.set(graph.order, focus.nodes);
    this.over.set(graph.order, preview.nodes);
    this.kept.set(graph.order, this.session.filter ?? new Set());
    this.near = new Set(focus.item !== undefined && !isGroup(focus.item) ? [...graph.operands(focus.item), ...graph.users(focus.item)] : []);
    let lit = 0;
    for (const { box, element } of this.boxes.values()) lit += this.lightBox(box, element) ? 1 : 0;
    this.lightLines();
    return lit;
  }

  private lightBox(box: Box, element: SVGElement): boolean {
    const { focus, stage } = this.session;
    const [from, to] = stage.graph.range(box.item);
    const isLit = this.lit.any(from, to);
    element.classList.toggle("lit", isLit);
    element.classList.toggle("chosen", box.item === focus.item);
    element.classList.toggle("over", !box.open && this.over.any(from, to));
    element.classList.toggle("near", this.near.has(box.item));
    element.classList.toggle("dimmed", this.session.filter !== undefined && !this.kept.any(from, to));
    return isLit;
  }

  /** The lines of the chosen box, the ones that are else left out too. */
  private lightLines(): void {
    const { item } = this.session.focus;
    if (item === this.litItem && this.scene === this.litScene) return;
    this.litItem = item;
    this.litScene = this.scene;
    const touches = (line: { from: Item; to: Item }) => line.from === item || line.to === item;
    const lines = item === undefined ? [] : this.scene.lines.filter(touches);
    for (const [from, to] of item === undefined ? [] : this.scene.hidden)
      if (touches({ from, to })) lines.push(this.straight(from, to));
    this.layers.lit.replaceChildren(...lines.map((line) => drawLine(line, this.arrow.id)));
  }

  private straight(from: Item, to: Item): Line {
    const [a, b] = [this.byItem.get(from)!, this.byItem.get(to)!];
    return { from, to, points: Float64Array.of(a.x + a.width / 2, a.y + a.height, b.x + b.width / 2, b.y) };
  }
}

/** Which places of an order are marked, so that any stretch of it can be asked at once. */
class Marks {
  private sums = new Int32Array(0);
  private nodes?: ReadonlySet<number>;
  private order?: Int32Array;

  set(order: Int32Array, nodes: ReadonlySet<number>): void {
    if (this.nodes === nodes && this.order === order) return;
    this.nodes = nodes;
    this.order = order;
    if (!nodes.size) {
      this.sums = new Int32Array(0);
      return;
    }
    this.sums = new Int32Array(order.length + 1);
    for (let i = 0; i < order.length; i++) this.sums[i + 1] = this.sums[i]! + (nodes.has(order[i]!) ? 1 : 0);
  }

  any(from: number, to: number): boolean {
    return this.sums.length > 0 && this.sums[to]! > this.sums[from]!;
  }
}

function looksLike(a: Box, b: Box): boolean {
  return a.open === b.open && a.width === b.width && a.height === b.height && a.pill === b.pill;
}
