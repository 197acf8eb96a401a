// From open groups to boxes and lines: each group is laid out on its own, from the inside out.

import { type Label, isInKernel, labelOf } from "./labels";
import type { LayoutInput, LayoutResult } from "./layout";
import { type Graph, type Item, groupItem, isGroup } from "./model";

export interface Box {
  item: Item;
  label: Label;
  x: number;
  y: number;
  width: number;
  height: number;
  depth: number;
  /** undefined for what has no inside. */
  open: boolean | undefined;
  /** An operation inside a kernel is drawn as a pill. */
  pill: boolean;
}

export interface Line {
  from: Item;
  to: Item;
  points: Float64Array;
}

export interface Scene {
  boxes: Box[];
  lines: Line[];
  /** Pairs that are connected, but not drawn unless one of them is chosen: too many lines say nothing. */
  hidden: [from: Item, to: Item][];
  width: number;
  height: number;
}

const FEW = 8; // boxes
const MOST_LINES = 1200; // in one group
const HEADER = 30;
const PAD = 14;
const TITLE_WIDTH = 7.1; // of one character, in the fonts of style.css
const SUB_WIDTH = 6.2;

interface Content extends Scene {
  /** Some of its own lines are left out. */
  isHair: boolean;
}

/** Makes the scenes of one stage. What is in a group and how it is connected doesn't change: it is found once. */
export class SceneBuilder {
  private readonly known = new Map<number, { items: Item[]; edges: number[] }>();

  constructor(
    private readonly graph: Graph,
    private readonly stage: string,
    private readonly layout: (input: LayoutInput) => Promise<LayoutResult>,
  ) {}

  async build(open: ReadonlySet<Item>): Promise<Scene> {
    return this.content([-1], open, 0, 0);
  }

  private async content(groups: number[], open: ReadonlySet<Item>, depth: number, header: number): Promise<Content> {
    const { graph } = this;
    const only = groups.length === 1 ? groups[0]! : undefined;
    const { items, edges: all } = only !== undefined ? this.inside(only) : { items: groups.map(groupItem), edges: [] };
    const inner = await Promise.all(
      items.map((item) => {
        const inside = graph.inside(item);
        return inside.length && open.has(item) ? this.content(inside, open, depth + 1, HEADER) : undefined;
      }),
    );
    const boxes = items.map((item, i): Box => this.box(item, inner[i], depth));
    const isHair = all.length > 2 * MOST_LINES;
    const edges = isHair ? nearest(all) : all;
    const placed = await this.layout({
      width: Float64Array.from(boxes, (box) => box.width),
      height: Float64Array.from(boxes, (box) => box.height),
      edges: Int32Array.from(edges),
    });
    const scene: Content = { boxes: [], lines: [], hidden: [], width: placed.width + 2 * PAD, height: placed.height + 2 * PAD + header, isHair };
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
      scene.lines.push({
        from: items[edges[2 * i]!]!,
        to: items[edges[2 * i + 1]!]!,
        points: points.map((v, k) => v + PAD + (k % 2 ? header : 0)),
      });
    });
    return scene;
  }

  private box(item: Item, inner: Content | undefined, depth: number): Box {
    const { graph } = this;
    const label = labelOf(graph, this.stage, item);
    if (inner?.isHair) label.sub += " · too many lines: choose a box to see its own";
    const hasInside = graph.inside(item).length > 0;
    const pill = !isGroup(item) && !hasInside && isInKernel(graph, item);
    const text = Math.max(label.title.length * TITLE_WIDTH + (hasInside ? 16 : 0), label.sub.length * SUB_WIDTH);
    const width = Math.max(text + (pill ? 20 : 24), pill ? 36 : 90);
    const height = pill ? 24 : label.sub ? 44 : 30;
    return {
      item,
      label,
      x: 0,
      y: 0,
      width: inner ? Math.max(inner.width, label.title.length * TITLE_WIDTH + label.sub.length * SUB_WIDTH + 60) : width,
      height: inner ? inner.height : height,
      depth,
      open: hasInside ? inner !== undefined : undefined,
      pill,
    };
  }

  private inside(group: number): { items: Item[]; edges: number[] } {
    let known = this.known.get(group);
    if (!known) {
      const items = this.graph.children(group);
      this.known.set(group, (known = { items, edges: this.edges(group, items) }));
    }
    return known;
  }

  /** The operands of everything below `group`, as pairs of positions in `items`, each pair once. */
  private edges(group: number, items: Item[]): number[] {
    const { graph } = this;
    const nodes = graph.below(group);
    const { operand, operandStart } = graph.c;
    const at = graph.positions(group, items);
    const seen = new Set<number>();
    for (const node of nodes) {
      const to = at(node);
      if (to < 0) continue;
      for (let k = operandStart[node]!; k < operandStart[node + 1]!; k++) {
        const from = at(operand[k]!);
        // The inputs feed everything: among many boxes their lines would be hair.
        if (from < 0 || from === to || (items.length > FEW && this.isInputs(items[from]!))) continue;
        seen.add(from * items.length + to);
      }
    }
    // In the order of the items, so that where groups need each other the layout turns the edge that goes back.
    return [...seen].sort((a, b) => a - b).flatMap((key) => [Math.floor(key / items.length), key % items.length]);
  }

  private isInputs(item: Item): boolean {
    return isGroup(item) && this.graph.c.groups[~item]!.kind === "inputs";
  }
}

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
  for (const box of inner.boxes) {
    box.x += x;
    box.y += y;
    scene.boxes.push(box);
  }
  for (const line of inner.lines) scene.lines.push({ ...line, points: line.points.map((v, k) => v + (k % 2 ? y : x)) });
}

/** What may be opened at first: groups, the largest first, then kernels; never the inputs. */
export function openable(graph: Graph, open: ReadonlySet<Item>): Item[] {
  const closed = (item: Item): Item[] => {
    const inside = graph.inside(item);
    if (!open.has(item)) return inside.length ? [item] : [];
    return inside.length > 1 ? inside.flatMap((group) => closed(groupItem(group))) : graph.children(inside[0]!).flatMap(closed);
  };
  const size = (item: Item) => (isGroup(item) ? 1e9 : 0) + graph.count(item);
  return graph
    .children(-1)
    .flatMap(closed)
    .filter((item) => !isGroup(item) || graph.c.groups[~item]!.kind !== "inputs")
    .sort((a, b) => size(b) - size(a));
}
