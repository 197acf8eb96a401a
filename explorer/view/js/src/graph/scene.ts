// From open groups to boxes and lines: each group is laid out on its own, from the inside out.

import { made } from "../core/buckets";
import type { Stage } from "../core/capture";
import {
  type Graph,
  groupItem,
  type Item,
  isGroup,
  isNode,
  isRest,
  nodeItem,
  type RestItem,
  restItem,
} from "../core/graph";
import { chainLabel, chipText, isInKernel, type Label, labelOf, moreLabel } from "../core/labels";
import type { LayoutInput, LayoutResult } from "../layout/layout";

export interface Box extends Record<"x" | "y" | "width" | "height" | "depth", number> {
  item: Item;
  label: Label;
  /** undefined for what has no inside. */
  open: boolean | undefined;
  /** An operation inside a kernel is drawn as a pill. */
  pill: boolean;
  /** Constants and parameters that it reads, drawn on it. */
  chips: Chip[];
  chain?: number[];
  /** Of an open repeat: which iteration it shows. */
  step?: { at: number; of: number };
}

export type Chip = { node: number; text: string; width: number };

export type Line = { from: Item; to: Item; points: Float64Array };

export interface Scene {
  boxes: Box[];
  lines: Line[];
  /** Pairs that are connected, but not drawn unless one of them is chosen: too many lines can't be read. */
  hidden: [from: Item, to: Item][];
  width: number;
  height: number;
}

export const PAGE = 150; // items of one group that are shown at once
export const CHIP_HEIGHT = 17;
const FEW = 8; // boxes
const MOST_LINES = 1200; // in one group
const MOST_CHIPS = 3; // on one box
const ROW = 7; // items of a phase that stand side by side
const HEADER = 30;
const PAD = 14;

interface Content extends Scene {
  /** Some of its own lines are left out. */
  isHair: boolean;
}

interface Inside {
  items: Item[];
  /** Nodes that an item stands for beside itself. */
  chains: Map<number, number[]>;
  edges: number[];
}

/** Makes the scenes of one stage. What is in a group and how it is connected doesn't change: it is found once. */
export class SceneBuilder {
  readonly pages = new Map<number, number>();
  readonly #insides = new Map<string, Inside>();
  readonly #items = new Map<number, { all: Item[]; chains: Map<number, number[]> }>();
  private readonly graph: Graph;

  constructor(
    private readonly stage: Stage,
    private readonly layout: (input: LayoutInput) => Promise<LayoutResult>,
    /** How wide a row may be. */
    private readonly room: () => number = () => Number.POSITIVE_INFINITY,
  ) {
    this.graph = stage.graph;
  }

  async build(open: ReadonlySet<Item>): Promise<Scene> {
    return this.#content([-1], open, 0, 0);
  }

  /** The first node of the chain that a node is folded into, if it is in one. */
  chainAround(node: number): number | undefined {
    const group = this.graph.c.groupOf[node]!;
    for (const [first, chain] of this.#itemsOf(group).chains) if (chain.includes(node)) return first;
    return undefined;
  }

  /** Turn a group's page so that it shows an item. */
  turnTo(item: Item): void {
    const { graph } = this;
    const group = isNode(item) ? graph.c.groupOf[item.node]! : graph.c.groups[item.group]!.parent;
    const at = this.#itemsOf(group).all.indexOf(item);
    if (at >= 0) this.pages.set(group, Math.floor(at / PAGE) * PAGE);
  }

  turn({ group, isBefore }: RestItem): void {
    const start = this.pages.get(group) ?? 0;
    this.pages.set(group, isBefore ? Math.max(0, start - PAGE) : start + PAGE);
  }

  async #content(groups: number[], open: ReadonlySet<Item>, depth: number, header: number): Promise<Content> {
    const { graph } = this;
    const only = groups.length === 1 ? groups[0]! : undefined;
    const several: Inside = { items: groups.map(groupItem), chains: new Map(), edges: [] };
    const { items, chains, edges: all } = only === undefined ? several : this.#inside(only, open);
    const inner = await Promise.all(
      items.map((item) => {
        const inside = graph.inside(item);
        return inside.length && open.has(item) ? this.#content(inside, open, depth + 1, HEADER) : undefined;
      }),
    );
    const chainOf = (item: Item) => (isNode(item) ? chains.get(item.node) : undefined);
    const boxes = items.map((item, i): Box => this.#box(item, inner[i], depth, chainOf(item), items.length));
    const isHair = all.length > 2 * MOST_LINES;
    const edges = isHair ? nearest(all) : all;
    const isRow = only !== undefined && only >= 0 && this.#isRow(only, items);
    let placed = await this.#place(boxes, edges, isRow);
    if (isRow && placed.width + (2 + 2 * depth) * PAD > this.room()) placed = await this.#place(boxes, edges, false);
    const [width, height] = [placed.width + 2 * PAD, placed.height + 2 * PAD + header];
    const scene: Content = { boxes: [], lines: [], hidden: [], width, height, isHair };
    boxes.forEach((box, i) => {
      box.x = placed.x[i]! + PAD;
      box.y = placed.y[i]! + PAD + header;
      scene.boxes.push(box);
      const within = inner[i];
      // A header may be wider than what is inside.
      if (within) addMoved(scene, within, box.x + (box.width - within.width) / 2, box.y);
    });
    if (isHair) for (let i = 0; i < all.length; i += 2) scene.hidden.push([items[all[i]!]!, items[all[i + 1]!]!]);
    placed.edges.forEach((points, i) => {
      const [from, to] = [items[edges[2 * i]!]!, items[edges[2 * i + 1]!]!];
      scene.lines.push({ from, to, points: points.map((v, k) => v + PAD + (k % 2 ? header : 0)) });
    });
    return scene;
  }

  /** The parts of a phase stand in a row, so that the phases below each other fit into one view. */
  #isRow(group: number, items: Item[]): boolean {
    return this.graph.c.groups[group]!.kind === "phase" && items.length <= ROW && items.every(isGroup);
  }

  async #place(boxes: Box[], edges: number[], isRow: boolean): Promise<LayoutResult> {
    const width = Float64Array.from(boxes, (box) => box.width);
    const height = Float64Array.from(boxes, (box) => box.height);
    if (!isRow) return this.layout({ width, height, edges: Int32Array.from(edges) });
    const turned = await this.layout({ width: height, height: width, edges: Int32Array.from(edges) });
    const swapped = turned.edges.map((points) => points.map((_, k) => points[k ^ 1]!));
    return { x: turned.y, y: turned.x, edges: swapped, width: turned.height, height: turned.width };
  }

  #box(item: Item, inner: Content | undefined, depth: number, chain: number[] | undefined, siblings: number): Box {
    const { graph } = this;
    if (isRest(item)) return this.#plainBox(item, moreLabel(this.#left(item)), depth);
    if (chain) return { ...this.#plainBox(item, chainLabel(graph, chain), depth), chain, open: false };
    const label = labelOf(graph, this.stage.name, item);
    if (inner?.isHair) label.sub += " · too many edges: select a box to see its own";
    const hasInside = graph.inside(item).length > 0;
    const pill = isNode(item) && !hasInside && isInKernel(graph, item.node);
    const chips = isGroup(item) || pill || inner ? [] : this.#chips(item.node, depth > 0 || siblings > FEW);
    const step =
      inner && isGroup(item) && graph.isRepeat(item.group)
        ? { at: graph.shown.get(item.group) ?? 0, of: graph.iterations(item.group).length }
        : undefined;
    const plain = this.#plainBox(item, label, depth, pill, hasInside);
    const wide = chips.reduce((all, chip) => all + chip.width + 4, 18);
    const size = inner
      ? { width: Math.max(inner.width, headerWidth(label, step !== undefined)), height: inner.height }
      : chips.length
        ? { width: Math.max(plain.width, wide), height: plain.height + CHIP_HEIGHT + 4 }
        : {};
    return { ...plain, ...size, open: hasInside ? inner !== undefined : undefined, chips, ...(step && { step }) };
  }

  #plainBox(item: Item, label: Label, depth: number, pill = false, hasInside = false): Box {
    const title = textWidth(label.title, pill ? "op" : "title");
    const below = [label.sub, label.held ?? ""].map((line) => textWidth(line, "sub"));
    const text = Math.max(title + (hasInside ? 16 : 0), ...below);
    const width = Math.max(text + (pill ? 20 : 24), pill ? 36 : 90);
    const height = pill ? 24 : label.held ? 60 : label.sub ? 44 : 30;
    return { item, label, x: 0, y: 0, width, height, depth, open: undefined, pill, chips: [] };
  }

  /** The constants that a node reads, and the parameters where no line comes from them. */
  #chips(node: number, withInputs: boolean): Chip[] {
    const { graph } = this;
    const chips: Chip[] = [];
    let left = 0;
    for (const operand of new Set(graph.operands(node))) {
      const isInput = withInputs && graph.c.groups[graph.c.groupOf[operand]!]?.kind === "inputs";
      if (!graph.isChip[operand] && !isInput) continue;
      if (chips.length === MOST_CHIPS) left++;
      else chips.push(chip(operand, chipText(this.graph, operand)));
    }
    if (left) chips.push(chip(-1, `+${left}`));
    return chips;
  }

  #inside(group: number, open: ReadonlySet<Item>): Inside {
    const { all, chains } = this.#itemsOf(group);
    const folded = new Map([...chains].filter(([first]) => !open.has(nodeItem(first))));
    const start = this.pages.get(group) ?? 0;
    const key = `${group} ${start} ${folded.size} ${chains.size === folded.size ? "" : [...folded.keys()].join()}`;
    return made(this.#insides, key, () => {
      const hidden = new Set([...folded.values()].flatMap((chain) => chain.slice(1)));
      const items = all.filter((item) => !isNode(item) || !hidden.has(item.node));
      const shown = items.slice(start, start + PAGE);
      if (start > 0) shown.unshift(restItem(group, true));
      if (items.length > start + PAGE) shown.push(restItem(group, false));
      return { items: shown, chains: folded, edges: this.#edges(group, shown, items, folded, start) };
    });
  }

  #itemsOf(group: number): { all: Item[]; chains: Map<number, number[]> } {
    return made(this.#items, group, () => {
      const all = this.graph.children(group);
      const kind = this.graph.c.groups[group]?.kind;
      return { all, chains: kind === "inputs" ? new Map() : chainsOf(this.graph, all) };
    });
  }

  /** How many items of a page's group are before it, or after it. */
  #left({ group, isBefore }: RestItem): number {
    const start = this.pages.get(group) ?? 0;
    return isBefore ? start : this.#itemsOf(group).all.length - start - PAGE;
  }

  /** The operands of everything below `group`, as pairs of positions in `shown`, each pair once. */
  #edges(group: number, shown: Item[], items: Item[], chains: Map<number, number[]>, start: number): number[] {
    const { graph } = this;
    const nodes = graph.below(group);
    const { operand, operandStart } = graph.c;
    const find = graph.positions(group, items, chains);
    const before = start > 0 ? 1 : 0;
    // What a page leaves out is at its first or its last box.
    const at = (node: number): number => {
      const position = find(node);
      if (position < 0 || items.length === shown.length) return position;
      return position < start ? 0 : Math.min(position - start + before, shown.length - 1);
    };
    const areInputs = (item: Item) => isGroup(item) && graph.c.groups[item.group]!.kind === "inputs";
    const isInputs = shown.map((item) => shown.length > FEW && areInputs(item));
    const seen = new Set<number>();
    for (const node of nodes) {
      const to = at(node);
      if (to < 0) continue;
      for (let k = operandStart[node]!; k < operandStart[node + 1]!; k++) {
        const from = at(operand[k]!);
        // The inputs feed everything: among many boxes their lines would be hair.
        if (from < 0 || from === to || isInputs[from]) continue;
        seen.add(from * shown.length + to);
      }
    }
    // In the order of the items, so that where groups need each other the layout turns the edge that goes back.
    return [...seen].sort((a, b) => a - b).flatMap((key) => [Math.floor(key / shown.length), key % shown.length]);
  }
}

const chip = (node: number, text: string): Chip => ({ node, text, width: textWidth(text, "op") + 10 });

const headerWidth = ({ title, sub, held = "" }: Label, steps: boolean): number =>
  textWidth(title, "title") + textWidth(`${sub} · ${held}`, "sub") + 60 + (steps ? 110 : 0);

/** Of the lines into each box, the one from the nearest box before it: enough to order them by. */
function nearest(edges: number[]): number[] {
  const from = new Map<number, number>();
  for (let i = 0; i < edges.length; i += 2) {
    const [a, b] = [edges[i]!, edges[i + 1]!];
    if (a < b) from.set(b, Math.max(from.get(b) ?? -1, a));
  }
  return [...from].flatMap(([b, a]) => [a, b]);
}

function addMoved(scene: Scene, inner: Scene, x: number, y: number): void {
  scene.hidden.push(...inner.hidden);
  for (const box of inner.boxes) scene.boxes.push(Object.assign(box, { x: box.x + x, y: box.y + y }));
  for (const line of inner.lines) scene.lines.push({ ...line, points: line.points.map((v, k) => v + (k % 2 ? y : x)) });
}

/** What may be opened at first: phases, other groups, the largest first, then kernels; never the inputs. */
export function openable(graph: Graph, open: ReadonlySet<Item>): Item[] {
  const closed = (item: Item): Item[] => {
    const inside = graph.inside(item);
    if (!open.has(item)) return inside.length ? [item] : [];
    return inside.length > 1
      ? inside.flatMap((group) => closed(groupItem(group)))
      : graph.children(inside[0]!).flatMap(closed);
  };
  const kind = (item: Item) => (isGroup(item) ? graph.c.groups[item.group]!.kind : "");
  const size = (item: Item) => (kind(item) === "phase" ? 2e9 : isGroup(item) ? 1e9 : 0) + graph.count(item);
  return graph
    .children(-1)
    .flatMap(closed)
    .filter((item) => !/^((in|out)puts|uncalled)$/.test(kind(item)))
    .sort((a, b) => size(b) - size(a));
}

// Operations in every stage's spelling, `_` as `-`.
const PLAIN = new RegExp(
  "^(stablehlo\\.)?(bitcast|bitcast-convert|bitcast-convert-type|reshape|dynamic-reshape|convert|" +
    "convert-element-type|copy|copy-p|broadcast|broadcast-in-dim|squeeze|expand-dims|transpose|get-tuple-element|" +
    "optimization-barrier|opt-barrier|stop-gradient|reduce-precision|pbroadcast|pvary)$",
);

/** The chains among `items`, by their first node; each at least two nodes, of which each is read by the next alone. */
export function chainsOf(graph: Graph, items: readonly Item[]): Map<number, number[]> {
  const nodes = items.filter(isNode).filter((item) => !graph.inside(item).length);
  const isPlain = (node: number) => PLAIN.test(graph.op(node).replaceAll("_", "-"));
  const plain = new Set(nodes.map(({ node }) => node).filter(isPlain));
  const next = new Map<number, number>();
  const hasBefore = new Set<number>();
  for (const node of plain) {
    const users = graph.users(node);
    const only = users.length === 1 ? users[0]! : -1;
    if (!plain.has(only) || graph.operands(only).filter((operand) => !graph.isChip[operand]).length !== 1) continue;
    next.set(node, only);
    hasBefore.add(only);
  }
  const chains = new Map<number, number[]>();
  for (const node of plain) {
    if (hasBefore.has(node) || !next.has(node)) continue;
    const chain = [node];
    for (let at = next.get(node); at !== undefined; at = next.get(at)) chain.push(at);
    chains.set(node, chain);
  }
  return chains;
}

export type TextKind = "title" | "sub" | "op";

// As in graph.css.
const FONTS: Record<TextKind, string> = {
  title: "600 13px system-ui, sans-serif",
  sub: "12px system-ui, sans-serif",
  op: '12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace',
};
// Of one character, where nothing draws: in tests.
const ABOUT: Record<TextKind, number> = { title: 7.15, sub: 6.35, op: 7.3 };

let context: CanvasRenderingContext2D | null | undefined;

export function textWidth(text: string, kind: TextKind): number {
  context ??= globalThis.document?.createElement("canvas").getContext("2d") ?? null;
  if (!context) return text.length * ABOUT[kind];
  if (context.font !== FONTS[kind]) context.font = FONTS[kind];
  return context.measureText(text).width;
}
