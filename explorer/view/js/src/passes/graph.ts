// A change as one graph: what was there before and what is there after, laid out once together, so that nothing moves
// when one looks from one to the other.

import { push } from "../core/buckets";
import { choices, dataAt, element, onKey, pan, svg, tool } from "../core/dom";
import { cut, opText, shortType } from "../core/labels";
import { head, path } from "../graph/draw";
import type { Layouter } from "../layout/layouter";
import type { Effect, Key, Row, Versions } from "./passes";

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
    const how = { title: "select an instruction to see its neighbors" };
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
    const moveBy = (x: number, y: number) => {
      this.#view.x += x;
      this.#view.y += y;
      this.#paint();
    };
    const choose = (event: Event) => this.choose(Number(dataAt(event, "key") ?? -1));
    pan(this.#canvas, this.root, { by: moveBy, zoom: (factor, x, y) => this.#zoom(factor, x, y), click: choose });
    onKey(this.#canvas, (event) => {
      const [larger, pick] = [() => this.#zoom(1.25), () => choose(event)];
      const acts: Record<string, () => void> = { "+": larger, "=": larger, "-": () => this.#zoom(0.8) };
      acts["0"] = () => this.fit();
      if (dataAt(event, "key") !== undefined) acts.Enter = acts[" "] = pick;
      return acts[event.key];
    });
    new ResizeObserver(() => this.fit()).observe(this.root);
  }
}

const MOST = 160; // boxes: more can't be read
const HUB = 8; // neighbours: what has more of them connects nothing
const READ_WHOLE = 40; // instructions of a part that is a good picture
const FEW = 3; // unchanged readers of one instruction

export type State = "kept" | "new" | "gone" | "changed";

export type Box = { key: Key; row: Row; state: State; title: string; sub: string };

interface Edge {
  from: number;
  to: number;
  state: State;
  /** From what a kernel holds to the kernel. */
  inside?: boolean;
}

const CALLS = /\bcalls=%?([\w.-]+)/;
const ROOT = /^\s*ROOT /;

/** The instructions of both sides, each once, and what reads what on either side. */
class Union {
  readonly #before = new Map<Key, Row>();
  readonly #after = new Map<Key, Row>();
  readonly #states = new Map<Key, State>();
  readonly #readers = new Map<Key, Key[]>();
  readonly #roots: [Map<string, Key>, Map<string, Key>];
  /** A key that was renamed or moved, under the key it has after. */
  readonly #now = new Map<Key, Key>();

  constructor(
    private readonly versions: Versions,
    before: Int32Array,
    after: Int32Array,
    effect: Effect,
  ) {
    const { key } = versions.c;
    this.#roots = [this.#rootsOf(before), this.#rootsOf(after)];
    for (const [old, row] of effect.changed) {
      this.#now.set(key[old]!, key[row]!);
      this.#states.set(key[row]!, "changed");
    }
    for (const row of effect.born) this.#states.set(key[row]!, "new");
    for (const row of effect.died) this.#states.set(key[row]!, "gone");
    for (const row of before) if (key[row]! >= 0) this.#before.set(this.#keyOf(key[row]!), row);
    for (const row of after) if (key[row]! >= 0) this.#after.set(key[row]!, row);
    for (const [rows, old] of this.#sides)
      for (const [reader, row] of rows)
        for (const operand of this.#operands(row, old)) push(this.#readers, operand, reader);
  }

  get #sides(): [rows: Map<Key, Row>, isOld: boolean][] {
    return [
      [this.#before, true],
      [this.#after, false],
    ];
  }

  #keyOf = (key: Key): Key => this.#now.get(key) ?? key;

  #operands(row: Row, old: boolean): Key[] {
    const keys = Array.from(this.versions.operands(row));
    if (this.versions.op(row) === "fusion") {
      const root = this.#roots[old ? 0 : 1].get(CALLS.exec(this.versions.lines[row]!)?.[1] ?? "");
      if (root !== undefined) keys.push(root);
    }
    return old ? keys.map(this.#keyOf) : keys;
  }

  /** By computation, what it gives: what a kernel that runs it holds. */
  #rootsOf(rows: Int32Array): Map<string, Key> {
    const { key, computation, computations } = this.versions.c;
    const roots = new Map<string, Key>();
    for (const row of rows)
      if (key[row]! >= 0 && ROOT.test(this.versions.lines[row]!))
        roots.set(computations[computation[key[row]!]!]!, key[row]!);
    return roots;
  }

  /** What it reads, and who reads it: of those that stayed as they were, only a few. */
  #near(key: Key): Key[] {
    const readers = [...new Set(this.#readers.get(key))];
    const changed = readers.filter((reader) => this.#states.has(reader));
    const kept = readers.filter((reader) => !this.#states.has(reader));
    const [old, row] = [this.#before.get(key), this.#after.get(key)];
    return [
      ...changed,
      ...kept.slice(0, FEW),
      ...(old === undefined ? [] : this.#operands(old, true)),
      ...(row === undefined ? [] : this.#operands(row, false)),
    ];
  }

  /** What changed and what is beside it; where that is too much, one connected part of it. */
  around(chosen: Key, place: number): { boxes: Box[]; edges: Edge[]; place: number; places: number; cut: number } {
    const changed = [...this.#states.keys()];
    const beside = (keys: Key[]) => [...new Set([...keys, ...keys.flatMap((key) => this.#near(key))])];
    let keys = beside(changed);
    let [places, cut] = [1, 0];
    if (keys.length > MOST) {
      const parts = this.#parts(changed);
      places = parts.length;
      const of = parts.findIndex((part) => part.includes(chosen));
      if (of >= 0) place = of;
      keys = beside(parts[place]!);
      if (keys.length > MOST) {
        const near = this.#reached(of >= 0 ? chosen : parts[place]![0]!);
        cut = keys.length - near.length;
        keys = near;
      }
    }
    const when = (key: Key) => this.#after.get(key) ?? this.#before.get(key) ?? 0;
    const at = new Map(keys.sort((a, b) => when(a) - when(b)).map((key, i) => [key, i]));
    return { boxes: keys.map((key) => this.#box(key)), edges: this.#edges(at), place, places, cut };
  }

  /** The connected parts of what changed: the largest that can be read whole comes first. */
  #parts(changed: Key[]): Key[][] {
    const seen = new Set<Key>();
    const parts: Key[][] = [];
    const grow = (start: Key) => {
      if (seen.has(start)) return;
      seen.add(start);
      const part = [start];
      for (let i = 0; i < part.length; i++) {
        const near = this.#near(part[i]!).filter((other) => this.#states.has(other));
        // A constant that many read connects nothing.
        if (near.length > HUB) continue;
        for (const other of near) {
          if (seen.has(other)) continue;
          seen.add(other);
          part.push(other);
        }
      }
      parts.push(part);
    };
    const isHub = (key: Key) => this.#near(key).filter((other) => this.#states.has(other)).length > HUB;
    changed.filter((key) => !isHub(key)).forEach(grow);
    changed.forEach(grow);
    // An edge of both sides is more telling than one that only came or went.
    const weightOf = (part: Key[]) =>
      part.length <= READ_WHOLE ? new Set(part.map((key) => this.#states.get(key))).size : 0;
    const weights = new Map(parts.map((part) => [part, weightOf(part)]));
    return parts.sort((x, y) => weights.get(y)! - weights.get(x)! || y.length - x.length);
  }

  /** What is nearest to one, as much as can be read. */
  #reached(start: Key): Key[] {
    const part = new Set([start]);
    for (const key of part) for (const other of this.#near(key)) if (part.size < MOST) part.add(other);
    return [...part];
  }

  #box(key: Key): Box {
    const { versions } = this;
    const row = this.#after.get(key) ?? this.#before.get(key)!;
    const name = versions.name(key);
    const op = opText(versions.op(row));
    const type = shortType(versions.type(row));
    const sub = name.startsWith(op) && op !== "fusion" ? type : `${op} ${type}`;
    return { key, row, state: this.#states.get(key) ?? "kept", title: cut(name, 34), sub: cut(sub, 34) };
  }

  #edges(at: Map<Key, number>): Edge[] {
    const { computation } = this.versions.c;
    const states = new Map<string, Edge>();
    for (const [rows, old] of this.#sides)
      for (const [key, to] of at) {
        const row = rows.get(key);
        if (row === undefined) continue;
        for (const operand of this.#operands(row, old)) {
          const from = at.get(operand);
          if (from === undefined) continue;
          const edge = states.get(`${from} ${to}`);
          const inside = computation[operand] !== computation[key];
          if (!edge) states.set(`${from} ${to}`, { from, to, state: old ? "gone" : "new", inside });
          else if (!old && edge.state === "gone") edge.state = "kept";
        }
      }
    return [...states.values()];
  }
}
