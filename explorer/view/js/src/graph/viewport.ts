// Where one looks in the graph's picture: each function sets the canvas's view, and paints.

import { element, onKey, pan } from "../core/dom";
import { groupItem, type Item, isGroup, isRest, nodeItem, restItem } from "../core/graph";
import type { Session } from "../core/session";
import { THEMED } from "../core/theme";
import type { GraphCanvas } from "./canvas";
import type { GraphPane } from "./graph_pane";
import type { Box, Scene } from "./scene";

/** The least scale at which the smallest text, of 12 pixels, has 11: nothing unasked goes below. */
export const READABLE = 11 / 12;
export const TOP = 32; // pixels that the tools take
const NEAR_START = 100; // pixels that a picture isn't moved by: its start tells more
const EDGE = 14; // pixels left around what is brought into sight
const SMALLEST = 0.02;
const LARGEST = 2.5;

/** The scale at which the whole scene is in sight, below the tools. */
const wholeScale = ({ area, scene }: GraphCanvas): number =>
  Math.min(area.width / scene.width, (area.height - TOP) / scene.height, 1);

/** The whole picture if it can be read, else what is around one box at a readable size. */
export function fitReadable(canvas: GraphCanvas, box: Box | undefined): void {
  const { scene, area } = canvas;
  const whole = wholeScale(canvas);
  if (whole >= READABLE) return void lookFrom(canvas, whole);
  const scale = Math.min(Math.max(area.width / scene.width, READABLE), 1);
  const [width, height] = [scene.width * scale, scene.height * scale];
  // In the middle where it fits, else with the box in sight and no more empty space beside than needs be.
  const at = (middle: number, size: number, room: number, start: number) => {
    if (size <= room) return start + (room - size) / 2;
    const moved = Math.min(Math.max(room / 2 - middle * scale, room - size), 0);
    return start + (moved > -NEAR_START && middle * scale < room - NEAR_START ? 0 : moved);
  };
  const [x, y] = box ? [box.x + box.width / 2, box.y + box.height / 2] : [scene.width / 2, 0];
  canvas.look({ scale, x: at(x, width, area.width, 0), y: at(y, height, area.height - TOP, TOP) });
}

export const fitWhole = (canvas: GraphCanvas): void => lookFrom(canvas, Math.max(wholeScale(canvas), SMALLEST));

/** The scene in the middle, or its top below the tools. */
function lookFrom(canvas: GraphCanvas, scale: number): void {
  const { scene, area } = canvas;
  const left = area.height - TOP - scene.height * scale;
  canvas.look({ scale, x: (area.width - scene.width * scale) / 2, y: TOP + Math.max(left / 2, 0) });
}

export function centre(canvas: GraphCanvas, box: Box): void {
  const { width, height } = canvas.area;
  const scale = Math.max(canvas.view.scale, READABLE);
  canvas.look({
    scale,
    x: width / 2 - (box.x + box.width / 2) * scale,
    y: height / 2 - (box.y + Math.min(box.height, height / scale) / 2) * scale,
  });
}

/** Move a box that was opened into sight, smaller where that shows it whole; its header at least. */
export function bringIntoSight(canvas: GraphCanvas, box: Box): void {
  const { view } = canvas;
  const { width, height } = canvas.area;
  const room = Math.min((width - 2 * EDGE) / box.width, (height - TOP - EDGE) / box.height);
  const scale = Math.min(view.scale, Math.max(room, READABLE));
  const [left, top] = [view.x + box.x * view.scale, view.y + box.y * view.scale];
  const within = (at: number, size: number, all: number, start: number) =>
    Math.max(Math.min(at, all - EDGE - size), start);
  canvas.look({
    scale,
    x: within(left, box.width * scale, width, EDGE) - box.x * scale,
    y: within(top, box.height * scale, height, TOP) - box.y * scale,
  });
}

/** Zoom around a point of the pane, in pixels; by default its middle. */
export function zoom(canvas: GraphCanvas, factor: number, x = canvas.area.width / 2, y = canvas.area.height / 2): void {
  const { view } = canvas;
  const scale = Math.min(Math.max(view.scale * factor, SMALLEST), LARGEST);
  const ratio = scale / view.scale;
  canvas.look({ scale, x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio });
}

const WIDTH = 148;
const HEIGHT = 96;
const LABEL = "whole picture; arrow keys move the view";
type Move = [x: number, y: number];
const MOVES: Record<string, Move> = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const STEP = 40; // pixels that an arrow key moves the view by

export class Minimap {
  readonly root = element("div.minimap", { tabindex: "0", role: "img", "aria-label": LABEL });
  readonly #picture = element("canvas");
  readonly #frame = element("i");
  #scale = 1;
  #drawn?: Scene;

  constructor(private readonly canvas: GraphCanvas) {
    this.root.append(this.#picture, this.#frame);
    this.#picture.addEventListener(THEMED, () => this.#drawn && this.#paint(this.#drawn));
    this.root.addEventListener("pointerdown", (event) => {
      this.root.setPointerCapture(event.pointerId);
      this.#lookAt(event);
    });
    this.root.addEventListener("pointermove", (event) => {
      if (this.root.hasPointerCapture(event.pointerId)) this.#lookAt(event);
    });
    onKey(this.root, ({ key }) => {
      const [x, y] = MOVES[key] ?? [];
      return x === undefined ? undefined : () => canvas.moveBy(x * STEP, y! * STEP);
    });
  }

  #lookAt(event: PointerEvent): void {
    const { left, top } = this.root.getBoundingClientRect();
    const { area, view } = this.canvas;
    const at = (middle: number, from: number) => middle - (from / this.#scale) * view.scale;
    const [x, y] = [at(area.width / 2, event.clientX - left), at(area.height / 2, event.clientY - top)];
    this.canvas.look({ scale: view.scale, x, y });
  }

  /** Move the frame to what is in sight; hidden where everything is. The picture is drawn once for each scene. */
  draw(): void {
    const { scene, view, area } = this.canvas;
    const fits =
      view.x >= -1 &&
      view.y >= -1 &&
      view.x + scene.width * view.scale <= area.width + 1 &&
      view.y + scene.height * view.scale <= area.height + 1;
    this.root.hidden = fits || area.width < 3 * WIDTH || !scene.boxes.length;
    if (this.root.hidden) return;
    if (this.#drawn !== scene) this.#paint(scene);
    const scale = this.#scale / view.scale;
    const { style } = this.#frame;
    style.transform = `translate(${-view.x * scale}px, ${-view.y * scale}px)`;
    style.width = `${area.width * scale}px`;
    style.height = `${area.height * scale}px`;
  }

  #paint(scene: Scene): void {
    this.#drawn = scene;
    const scale = (this.#scale = Math.min(WIDTH / scene.width, HEIGHT / scene.height));
    const [width, height] = [scene.width * scale, scene.height * scale];
    for (const { style } of [this.root, this.#picture]) [style.width, style.height] = [`${width}px`, `${height}px`];
    [this.#picture.width, this.#picture.height] = [Math.ceil(2 * width), Math.ceil(2 * height)];
    const context = this.#picture.getContext("2d");
    if (!context) return;
    const colours = getComputedStyle(this.root);
    const [edge, line] = ["--edge", "--line"].map((name) => colours.getPropertyValue(name));
    context.setTransform(2 * scale, 0, 0, 2 * scale, 0, 0);
    context.lineWidth = 1 / scale;
    context.strokeStyle = edge!;
    for (const { item, x, y, width: w, height: h, open } of scene.boxes) {
      context.fillStyle = isGroup(item) ? line! : edge!;
      if (open) context.strokeRect(x, y, w, h);
      else context.fillRect(x, y, Math.max(w, 2 / scale), Math.max(h, 2 / scale));
    }
  }
}

export class GraphInput {
  /** The box that has the keyboard's focus. */
  current: Item | undefined;
  private start: Item | undefined;

  constructor(
    private readonly pane: HTMLElement,
    private readonly canvas: GraphCanvas,
    private readonly session: Session,
    private readonly acts: GraphPane,
  ) {
    this.#listenToPointer();
    onKey(canvas.root, ({ key }) => {
      if (key === "Escape") this.start = undefined; // the rest of it is the viewer's
      return this.#actions()[key];
    });
    canvas.root.addEventListener("dblclick", (event) => {
      if (this.#itemOf(event.target) === undefined) fitWhole(canvas);
    });
  }

  #itemOf(target: EventTarget | null): Item | undefined {
    const g = (target as Element | null)?.closest?.<SVGGElement>("g[data-node], g[data-group], g[data-rest]");
    if (!g) return undefined;
    const { node, group, rest } = g.dataset;
    const [of, side] = rest?.split(" ") ?? [];
    if (of !== undefined) return restItem(Number(of), side === "before");
    return node !== undefined ? nodeItem(Number(node)) : groupItem(Number(group));
  }

  #listenToPointer(): void {
    const { canvas, session } = this;
    pan(canvas.root, this.pane, {
      by: (x, y) => canvas.moveBy(x, y),
      zoom: (factor, x, y) => zoom(canvas, factor, x, y),
      click: (event) => this.#click(event),
    });
    canvas.root.addEventListener("pointerover", (event) => {
      const item = this.#itemOf(event.target);
      const box = item === undefined ? undefined : canvas.byItem.get(item);
      session.previewItem(!box || box.open || isRest(item) ? undefined : item);
    });
    canvas.root.addEventListener("pointerleave", () => session.previewItem(undefined));
  }

  /** A click chooses, and opens what is closed; an open group closes by its own header only. */
  #click(event: PointerEvent): void {
    const { acts, session, canvas } = this;
    const item = this.#itemOf(event.target);
    const box = item === undefined ? undefined : canvas.byItem.get(item);
    const part = (event.target as Element).closest<SVGElement>("[data-step], [data-chip]")?.dataset;
    if (part?.step !== undefined && isGroup(item)) void acts.step(item.group, Number(part.step));
    else if (isRest(item)) void acts.turn(item);
    else if (part?.chip !== undefined) session.focusNode(Number(part.chip));
    else if (event.shiftKey && item !== undefined && session.focus.item !== undefined && session.focus.item !== item)
      void acts.wayTo(item);
    else {
      session.focusItem(item);
      this.current = item;
      if (box?.open === false || (box?.open && this.#onHeader(box, event))) void acts.toggle(box.item);
    }
  }

  #onHeader(box: Box, event: PointerEvent): boolean {
    const area = this.canvas.root.getBoundingClientRect();
    return (event.clientY - area.top - this.canvas.view.y) / this.canvas.view.scale < box.y + 30;
  }

  /** Arrows go along the edges, or from box to box where there is none; Enter opens, [ and ] step through a repeat. */
  #actions(): Record<string, () => void> {
    const { acts, canvas, current } = this;
    const { boxes, lines } = canvas.scene;
    const at = boxes.findIndex((box) => box.item === current);
    const go = (item: Item | undefined) => this.#go(item);
    const along = (down: boolean) => lines.find((line) => (down ? line.from : line.to) === current);
    const act = () => {
      if (current === undefined) return;
      const done = isRest(current) ? acts.turn(current) : acts.toggle(current);
      void done.then(() => go(current));
    };
    return {
      ArrowDown: () => go(along(true)?.to ?? boxes[Math.min(at + 1, boxes.length - 1)]?.item),
      ArrowUp: () => go(along(false)?.from ?? boxes[Math.max(at - 1, 0)]?.item),
      ArrowRight: () => go(boxes[Math.min(at + 1, boxes.length - 1)]?.item),
      ArrowLeft: () => go(boxes[Math.max(at - 1, 0)]?.item),
      Enter: act,
      " ": act,
      "[": () => this.#stepAround(-1),
      "]": () => this.#stepAround(1),
      i: () => acts.way("inputs"),
      o: () => acts.way("outputs"),
      c: () => acts.way("critical"),
      p: () => this.#wayFromHere(),
      n: () => acts.widen(1),
      N: () => acts.widen(-1),
      "+": () => zoom(canvas, 1.25),
      "=": () => zoom(canvas, 1.25),
      "-": () => zoom(canvas, 0.8),
      "0": () => fitWhole(canvas),
    };
  }

  /** The first p marks where a way starts, the next one where it ends. */
  #wayFromHere(): void {
    const { current, start } = this;
    if (current === undefined) return;
    this.start = start === undefined || start === current ? current : undefined;
    if (this.start === undefined) void this.acts.wayTo(current, start);
    else this.acts.startWay(current);
  }

  #go(item: Item | undefined): void {
    const box = item === undefined ? undefined : this.canvas.byItem.get(item);
    if (!box || item === undefined) return;
    this.current = item;
    this.session.focusItem(item);
    centre(this.canvas, box);
    this.canvas.element(item)?.focus({ preventScroll: true });
  }

  /** Show another iteration of the innermost repeat around the current box. */
  #stepAround(by: number): void {
    if (this.current === undefined) return;
    const repeat = this.session.stage.graph
      .ancestors(this.current)
      .reverse()
      .find((group) => this.canvas.byItem.get(groupItem(group))?.step);
    if (repeat !== undefined) void this.acts.step(repeat, by).then(() => this.#go(groupItem(repeat)));
  }
}
