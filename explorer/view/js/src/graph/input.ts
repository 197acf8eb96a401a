// What mouse and keys do in the graph.

import { groupItem, type Item, isGroup, isRest, nodeItem, restItem } from "../core/item";
import { pan } from "../core/pan";
import type { Session } from "../core/session";
import { onKey } from "../core/widgets";
import type { GraphCanvas } from "./canvas";
import type { GraphPane } from "./graph_pane";
import type { Box } from "./scene";
import { centre, fitWhole, zoom } from "./viewport";

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
