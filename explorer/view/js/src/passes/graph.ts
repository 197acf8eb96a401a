// A change as one graph: what was there before and what is there after, laid out once together, so that nothing moves
// when one looks from one to the other.

import { element, svg } from "../core/dom";
import { choices, dataAt, tool } from "../core/widgets";
import { head, path } from "../graph/draw";
import type { Layouter } from "../layout/layouter";
import type { Key, Versions } from "./passes";
import { type Box, type State, Union } from "./union";

const PAD = 20;
const READABLE = 0.62;

const SIGNS: Record<State, string> = { kept: "", new: "+ ", gone: "− ", changed: "~ " };
const WORDS: Record<State, string> = { kept: "unchanged", new: "made", gone: "removed", changed: "rewritten" };

export class ChangeGraph {
  readonly root: HTMLElement;
  chosen: Key = -1;
  readonly #canvas = svg("svg", {
    class: "canvas",
    role: "application",
    tabindex: "0",
    "aria-label": "what changed, as a graph",
  });
  readonly #world = svg("g");
  readonly #note = element("div.change-note");
  readonly #view = { x: 0, y: 0, scale: 1 };
  #size = { width: 1, height: 1 };
  private at: { x: number; y: number } | undefined; // where the chosen box is
  #drawn = 0;
  #place = 0; // which of the places that changed is drawn, where all of them are too many
  #last?: { versions: Versions; first: number; snapshot: number };

  constructor(
    private readonly layouter: Layouter,
    private readonly choose: (key: Key) => void,
  ) {
    this.#canvas.append(this.#world);
    this.root = element("div.change-graph", { "data-side": "both" }, this.#canvas, this.#sides(), this.#note);
    this.#listen();
  }

  /** One side at a time, in the same places: what blinks has changed. */
  #sides(): HTMLElement {
    const group = element("div.switch.sides", { role: "group", "aria-label": "which side is drawn" });
    const sides = ["before", "both", "after"].map((side) => [side, side] as const);
    const mark = choices(group, sides, (side) => mark((this.root.dataset.side = side)));
    mark("both");
    return group;
  }

  async show(versions: Versions, first: number, snapshot: number): Promise<void> {
    const turn = ++this.#drawn;
    if (this.#last?.versions !== versions || this.#last.first !== first || this.#last.snapshot !== snapshot)
      this.#place = 0;
    this.#last = { versions, first, snapshot };
    const union = new Union(versions, versions.rows(first), versions.rows(snapshot), versions.effect(first, snapshot));
    const { boxes, edges, place, places, cut } = union.around(this.chosen, this.#place);
    const width = (box: Box) => Math.max((box.title.length + SIGNS[box.state].length) * 7.1, box.sub.length * 6.2) + 24;
    const placed = await this.layouter.layout({
      width: Float64Array.from(boxes, width),
      height: Float64Array.from(boxes, () => 42),
      edges: Int32Array.from(edges.flatMap(({ from, to }) => [from, to])),
    });
    if (turn !== this.#drawn) return;
    const lines = edges.map(({ state }, i) => {
      const line = { points: placed.edges[i]! };
      const kind = `link ${state}${edges[i]!.inside ? " inside" : ""}`;
      return svg("g", { class: kind }, svg("path.edge", { d: path(line) }), svg("path.heads", { d: head(line) }));
    });
    const nodes = boxes.map((box, i) => this.#box(box, placed.x[i]!, placed.y[i]!, width(box)));
    this.#world.replaceChildren(...lines, ...nodes);
    this.#size = { width: placed.width, height: placed.height };
    const chosen = boxes.findIndex((box) => box.key === this.chosen);
    this.at = chosen < 0 ? undefined : { x: placed.x[chosen]! + width(boxes[chosen]!) / 2, y: placed.y[chosen]! + 21 };
    this.#place = place;
    this.#note.replaceChildren(...this.#parts(places, cut));
    this.fit();
  }

  /** Which part of the change is drawn, and the way to the others. */
  #parts(places: number, cut: number): Node[] {
    if (places < 2 && !cut) return [];
    const step = (by: number) => () => {
      this.#place = (this.#place + by + places) % places;
      this.chosen = -1;
      const { versions, first, snapshot } = this.#last!;
      void this.show(versions, first, snapshot);
    };
    const how = { title: "choose an instruction to see what is around it" };
    const more = cut ? [element("span", how, ` ${cut} more around`)] : [];
    if (places < 2) return more;
    const at = element("span", `place ${this.#place + 1} of ${places}`);
    return [tool("◂", "the place before", step(-1)), at, tool("▸", "the next place", step(1)), ...more];
  }

  #box(box: Box, x: number, y: number, width: number): SVGElement {
    return svg(
      "g",
      {
        class: `box node ${box.state}${box.key === this.chosen ? " chosen" : ""}`,
        ...{ transform: `translate(${x} ${y})`, tabindex: "0", role: "button", "data-key": box.key },
        "aria-label": `${box.title}, ${box.sub}, ${WORDS[box.state]}`,
      },
      svg("rect", { width, height: 42, rx: 6 }),
      svg("text.title", { x: 11, y: 18 }, SIGNS[box.state] + box.title),
      svg("text.sub", { x: 11, y: 33 }, box.sub),
    );
  }

  fit(): void {
    const { clientWidth: width, clientHeight: height } = this.root;
    if (!width || !height) return;
    const whole = Math.min((width - 2 * PAD) / this.#size.width, (height - 2 * PAD) / this.#size.height, 1);
    this.#view.scale = Math.max(whole, READABLE);
    this.#view.x = (width - this.#size.width * this.#view.scale) / 2;
    this.#view.y = Math.max((height - this.#size.height * this.#view.scale) / 2, PAD);
    // What can't be shown whole starts at what was chosen, or at its top.
    const { at } = this;
    if (whole < READABLE && at) {
      this.#view.x = width / 2 - at.x * this.#view.scale;
      this.#view.y = height / 2 - at.y * this.#view.scale;
    }
    this.#paint();
  }

  #paint(): void {
    const { x, y, scale } = this.#view;
    this.#world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
  }

  #zoom(factor: number, x = this.root.clientWidth / 2, y = this.root.clientHeight / 2): void {
    const scale = Math.min(Math.max(this.#view.scale * factor, 0.05), 2.5);
    const ratio = scale / this.#view.scale;
    Object.assign(this.#view, { scale, x: x - (x - this.#view.x) * ratio, y: y - (y - this.#view.y) * ratio });
    this.#paint();
  }

  #listen(): void {
    const keyOf = (event: Event) => {
      const key = dataAt(event, "key");
      return key === undefined ? undefined : Number(key);
    };
    let pressed: { x: number; y: number; moved: boolean } | undefined;
    this.#canvas.addEventListener("pointerdown", (event) => {
      if (event.button === 0) pressed = { x: event.clientX, y: event.clientY, moved: false };
    });
    this.#canvas.addEventListener("pointermove", (event) => {
      if (!pressed) return;
      const [dx, dy] = [event.clientX - pressed.x, event.clientY - pressed.y];
      if (!pressed.moved && Math.hypot(dx, dy) < 4) return;
      if (!pressed.moved) this.#canvas.setPointerCapture(event.pointerId);
      pressed = { x: event.clientX, y: event.clientY, moved: true };
      this.#view.x += dx;
      this.#view.y += dy;
      this.#paint();
    });
    this.#canvas.addEventListener("pointerup", (event) => {
      const wasClick = pressed && !pressed.moved;
      pressed = undefined;
      if (wasClick) this.choose(keyOf(event) ?? -1);
    });
    this.#canvas.addEventListener("keydown", (event) => {
      const key = keyOf(event);
      const acts: Record<string, () => void> = {
        "+": () => this.#zoom(1.25),
        "=": () => this.#zoom(1.25),
        "-": () => this.#zoom(0.8),
        "0": () => this.fit(),
      };
      if (key !== undefined) acts.Enter = acts[" "] = () => this.choose(key);
      const act = acts[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    this.#canvas.addEventListener(
      "wheel",
      (event) => {
        // As in the main graph: the page scrolls as ever until the graph is chosen; ctrl zooms.
        const isZoom = event.ctrlKey || event.metaKey;
        if (!isZoom && !this.root.contains(document.activeElement)) return;
        event.preventDefault();
        if (!isZoom) {
          this.#view.x -= event.shiftKey ? event.deltaY : event.deltaX;
          this.#view.y -= event.shiftKey ? 0 : event.deltaY;
          this.#paint();
          return;
        }
        const area = this.#canvas.getBoundingClientRect();
        this.#zoom(Math.exp(-event.deltaY / 200), event.clientX - area.left, event.clientY - area.top);
      },
      { passive: false },
    );
    new ResizeObserver(() => this.fit()).observe(this.root);
  }
}
