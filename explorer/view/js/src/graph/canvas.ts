// The drawing of a scene: moved and zoomed as a whole, and only what is in sight is in the document.

import { sums } from "../core/buckets";
import type { Stage } from "../core/capture";
import { svg } from "../core/dom";
import { type Graph, groupItem, type Item, isNode, nodeItem } from "../core/graph";
import type { Session } from "../core/session";
import { Colouring } from "./colours";
import { arrowHead, drawBox, drawLine, flowText, head, paintBox, path, place, sourceOf } from "./draw";
import type { Box, Line, Scene } from "./scene";

const MARGIN = 200; // how far beyond the edge things are kept, in pixels of the screen
const READABLE = 0.3; // below this scale text is not drawn
const MOST_FLOWS = 12; // lines that are labelled with their arrays at once

export type View = { x: number; y: number; scale: number };

/** Boxes along a way: how near each is, from 1 for where it starts down to 0; lines between two of them are lit. */
export type Trace = { near: ReadonlyMap<Item, number> };

type Drawn = { box: Box; element: SVGElement };

export class GraphCanvas {
  readonly root: SVGSVGElement;
  readonly byItem = new Map<Item, Box>();
  scene: Scene = { boxes: [], lines: [], hidden: [], width: 1, height: 1 };
  view: View = { x: 0, y: 0, scale: 1 };
  /** Pixels of the pane; read from the document only when they change, because reading makes it lay out the page. */
  area = { width: 600, height: 400 };
  trace: Trace | undefined;
  onPaint = (): void => undefined;
  readonly #arrow = arrowHead();
  readonly #world = svg("g");
  /** All lines are one path, and all their heads another: thousands of elements would be slow. */
  readonly #lines = svg("path.edge");
  readonly #heads = svg("path.heads");
  readonly #layers = { below: svg("g"), lines: svg("g", this.#lines, this.#heads), lit: svg("g"), above: svg("g") };
  readonly #boxes = new Map<Item, Drawn>();
  readonly #chainOf = new Map<number, Box>();
  #colouring?: Colouring;
  #colouredStage?: Stage;
  #lit = new Marks();
  #over = new Marks();
  #kept = new Marks();
  #near = new Set<Item>();
  #far = false;
  #litBy: unknown[] = [];
  #sceneOf?: Stage;

  constructor(private readonly session: Session) {
    this.#world.append(this.#layers.below, this.#layers.lines, this.#layers.above, this.#layers.lit);
    const about = { role: "application", tabindex: "0", "aria-label": "graph" };
    this.root = svg("svg.canvas", about, this.#arrow.defs, this.#world);
  }

  follow(pane: HTMLElement): void {
    new ResizeObserver(() => {
      this.measure(pane);
      this.paint();
    }).observe(pane);
  }

  look(view: View): void {
    this.view = view;
    this.paint();
  }

  moveBy(x: number, y: number): void {
    this.look({ ...this.view, x: this.view.x + x, y: this.view.y + y });
  }

  measure(pane: HTMLElement): void {
    if (pane.clientWidth && pane.clientHeight) this.area = { width: pane.clientWidth, height: pane.clientHeight };
  }

  /** Show another scene. A box that looks the same is moved, not drawn again. */
  setScene(scene: Scene): void {
    this.scene = scene;
    this.#sceneOf = this.session.stage;
    this.byItem.clear();
    this.#chainOf.clear();
    for (const box of scene.boxes) {
      this.byItem.set(box.item, box);
      for (const node of box.chain ?? []) this.#chainOf.set(node, box);
    }
    for (const [item, drawn] of this.#boxes) {
      const box = this.byItem.get(item);
      if (box && looksLike(box, drawn.box)) {
        drawn.box = box;
        place(drawn.element, box);
      } else {
        drawn.element.remove();
        this.#boxes.delete(item);
      }
    }
    this.#lines.setAttribute("d", scene.lines.map(path).join(""));
    this.#heads.setAttribute("d", scene.lines.map(head).join(""));
    this.#lightLines();
  }

  clear(): void {
    for (const { element } of this.#boxes.values()) element.remove();
    this.#boxes.clear();
  }

  element = (item: Item): SVGElement | undefined => this.#boxes.get(item)?.element;

  /** The innermost box that shows a node: its own, its chain's, its counterpart's, or the closed group's around it. */
  boxOf(node: number): Box | undefined {
    const { graph } = this.session.stage;
    const drawn = graph.drawn(node);
    const own = this.byItem.get(nodeItem(drawn)) ?? this.#chainOf.get(drawn);
    if (own) return own;
    return graph
      .ancestors(nodeItem(drawn))
      .map((group) => this.byItem.get(graph.itemOf(group)))
      .find((box) => box?.open === false);
  }

  get colours(): Colouring {
    const { colourBy } = this.session;
    if (this.#colouring?.by !== colourBy || this.#sceneOf !== this.#colouredStage) {
      this.#colouredStage = this.session.stage;
      this.#colouring = new Colouring(this.session, colourBy);
    }
    return this.#colouring;
  }

  #colourOf({ item }: Box) {
    const isLine = isNode(item) && this.session.colourBy === "line";
    const line = isLine ? this.session.lines.colour(sourceOf(this.session, item.node)) : -1;
    return this.colours.of(item, line);
  }

  recolour(): void {
    this.#colouring = undefined;
    for (const { box, element } of this.#boxes.values()) paintBox(element, this.#colourOf(box));
  }

  /** Put into the document what came into sight, take out what left it. */
  paint(): void {
    // A pane that changes its size paints at once, also while the scene of another stage is being laid out.
    if (this.#sceneOf !== this.session.stage) return;
    const { x, y, scale } = this.view;
    this.#world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    const far = scale < READABLE;
    if (far !== this.#far) this.clear();
    this.root.classList.toggle("far", far);
    this.#far = far;
    const [left, right] = [(-MARGIN - x) / scale, (this.area.width + MARGIN - x) / scale];
    const [top, bottom] = [(-MARGIN - y) / scale, (this.area.height + MARGIN - y) / scale];
    for (const box of this.scene.boxes) {
      const inSight = box.x + box.width >= left && box.x <= right && box.y + box.height >= top && box.y <= bottom;
      const drawn = this.#boxes.get(box.item);
      if (inSight && !drawn) {
        const element = drawBox(this.session, box, this.#colourOf(box), far);
        this.#boxes.set(box.item, { box, element });
        this.#lightBox(box, element);
        (box.open ? this.#layers.below : this.#layers.above).append(element);
      } else if (!inSight && drawn) {
        drawn.element.remove();
        this.#boxes.delete(box.item);
      }
    }
    this.onPaint();
  }

  /** Mark what the focus and the pointer light up; gives how many boxes in sight the focus does. */
  light(): number {
    const { focus, preview, stage } = this.session;
    const { graph } = stage;
    this.root.classList.toggle("focused", focus.nodes.size > 0 || this.trace !== undefined);
    this.root.classList.toggle("traced", this.trace !== undefined);
    this.#lit.set(graph, focus.nodes);
    this.#over.set(graph, preview.nodes);
    this.#kept.set(graph, this.session.filter ?? NOTHING);
    const { chosenNode } = this.session;
    const near = chosenNode === undefined ? [] : [...graph.operands(chosenNode), ...graph.users(chosenNode)];
    this.#near = new Set(near.map(nodeItem));
    let lit = 0;
    for (const { box, element } of this.#boxes.values()) lit += this.#lightBox(box, element) ? 1 : 0;
    this.#lightLines();
    return lit;
  }

  /** In how many iterations of a repeat something is lit. */
  litIterations(group: number): number {
    const { graph } = this.session.stage;
    return graph.iterations(group).filter((iteration) => this.#lit.has(...graph.range(groupItem(iteration)))).length;
  }

  /** Of the closed boxes that the focus lights the first, where none of them is in sight below the tools. */
  litOutOfSight(below: number): Box | undefined {
    const { x, y, scale } = this.view;
    const { width, height } = this.area;
    const lit = this.scene.boxes.filter((box) => !box.open && this.#isLit(this.#rangesOf(box)));
    const isSeen = (box: Box) => {
      const [left, top] = [x + (box.x + box.width / 2) * scale, y + (box.y + box.height / 2) * scale];
      return left > 0 && left < width && top > below && top < height - 3 * below; // the hint and the map lie below
    };
    return lit.some(isSeen) ? undefined : lit[0];
  }

  #rangesOf(box: Box): [number, number][] {
    const { graph } = this.session.stage;
    return (box.chain?.map(nodeItem) ?? [box.item]).map((item) => graph.range(item));
  }

  #isLit = (ranges: [number, number][]): boolean => ranges.some(([from, to]) => this.#lit.any(from, to));

  #lightBox(box: Box, element: SVGElement): boolean {
    const { focus } = this.session;
    const ranges = this.#rangesOf(box);
    const isLit = this.#isLit(ranges);
    const near = this.trace?.near.get(box.item);
    const { filter } = this.session;
    const states = {
      lit: isLit && !this.trace,
      chosen: box.item === focus.item,
      over: !box.open && ranges.some(([from, to]) => this.#over.any(from, to)),
      near: !this.trace && this.#near.has(box.item),
      dimmed: filter !== undefined && !ranges.some(([from, to]) => this.#kept.any(from, to)),
      "on-way": near !== undefined,
    };
    for (const [name, is] of Object.entries(states)) element.classList.toggle(name, is);
    if (near !== undefined) element.style.setProperty("--near", near.toFixed(2));
    return isLit;
  }

  /** The lines of the chosen box, the ones that are else left out too; of a way, the lines between its boxes. */
  #lightLines(): void {
    const { item } = this.session.focus;
    const by = [item, this.scene, this.trace];
    if (by.every((value, i) => value === this.#litBy[i])) return;
    this.#litBy = by;
    const near = this.trace?.near;
    const touches = (from: Item, to: Item) =>
      near ? near.has(from) && near.has(to) : item !== undefined && (from === item || to === item);
    const lines = this.scene.lines.filter(({ from, to }) => touches(from, to));
    for (const [from, to] of this.scene.hidden) if (touches(from, to)) lines.push(this.#straight(from, to));
    const isLabelled = !near && lines.length <= MOST_FLOWS;
    const flow = ({ from, to }: Line) => (isLabelled ? flowText(this.session.stage, from, to) : "");
    this.#layers.lit.replaceChildren(...lines.map((line) => drawLine(line, this.#arrow.id, flow(line))));
  }

  #straight(from: Item, to: Item): Line {
    const [a, b] = [this.byItem.get(from)!, this.byItem.get(to)!];
    return { from, to, points: Float64Array.of(a.x + a.width / 2, a.y + a.height, b.x + b.width / 2, b.y) };
  }
}

const NOTHING: ReadonlySet<number> = new Set();

function looksLike(a: Box, b: Box): boolean {
  const look = ({ open, width, height, pill, label, step, chain }: Box) =>
    [open, width, height, pill, label.title, step?.at, !chain].join("\n");
  return look(a) === look(b);
}

const NONE: Int32Array = new Int32Array(0);

export class Marks {
  /** Running sums by place: of the marked nodes, and of those whose counterpart in an equal iteration is marked. */
  #own: Int32Array = NONE;
  #alike: Int32Array = NONE;
  #nodes?: ReadonlySet<number>;
  #graph?: Graph;

  set(graph: Graph, nodes: ReadonlySet<number>): void {
    if (this.#nodes === nodes && this.#graph === graph) return;
    this.#nodes = nodes;
    this.#graph = graph;
    this.#own = this.#alike = NONE;
    if (!nodes.size) return;
    const marked = new Uint8Array(graph.size);
    for (const node of nodes) marked[graph.at[node]!] = 1;
    this.#own = sums(new Int32Array(graph.size + 1), (i) => marked[i]!);
    const { twins } = graph;
    const any = new Uint8Array(graph.size);
    for (let i = 0; twins && i < graph.size; i++) if (marked[i]) any[twins[i]!] = 1;
    this.#alike = twins ? sums(new Int32Array(graph.size + 1), (i) => any[twins[i]!]!) : this.#own;
  }

  /** Is anything marked in a stretch, or its counterpart in an iteration that is not drawn? */
  any = (from: number, to: number): boolean => this.#alike.length > 0 && this.#alike[to]! > this.#alike[from]!;

  /** Is anything marked in the stretch itself? */
  has = (from: number, to: number): boolean => this.#own.length > 0 && this.#own[to]! > this.#own[from]!;
}
