// A capture in the browser: the same columns as explorer/model/graph.py, read by index.

import { type Buckets, buckets, push, rowOf, sums } from "./buckets";
import type { Attribution } from "./links";

export type Frame = { file: string; function: string; line: number; column: number; parent: number };

export type Group = { name: string; kind: string; parent: number; caller: number };

export type CodeColumns = Record<"op" | "type" | "scope" | "operandStart" | "operand" | "frame" | "line", Int32Array>;

interface Columns extends CodeColumns, Record<"names" | "ops" | "types" | "scopes", string[]> {
  frames: Frame[];
  attribution: Attribution;
  /** Numbers of each node, by name (`flops`, `bytes`); NaN where there is none. */
  measures: Record<string, Float32Array>;
  groups: Group[];
  groupOf: Int32Array;
  /** Lines of the text that should hold nodes but could not be read. */
  unread?: Int32Array;
  /** How often each group runs where that is more than once; a `repeat`'s children are its iterations. */
  repeat?: Int32Array;
  /** How many nodes of a repeat's iteration differ from one to another in what they call. */
  differ?: Int32Array;
  /** Of each repeat, in words what differs between iterations that are only nearly equal. */
  difference?: string[];
  /** The nodes of loops whose length nobody knows: one iteration of these is counted. */
  oneIteration?: Int32Array | undefined;
  /** Each node's counterpart in the first of the iterations that are equal. */
  twin?: Int32Array;
  /** What fusions compute, in words; absent where there are none. */
  readKernelWords?: (() => Map<number, string>) | undefined;
  readAttributes?: (() => Attributes) | undefined;
}

const NO_KERNEL = new RegExp(
  "^(parameter|constant|tuple|get-tuple-element|bitcast|while|conditional|call|after-all|opt-barrier|return)$|" +
    /^(stablehlo|func)\./.source,
);
const CHIPS = /^(constant|parameter|stablehlo\.constant|iota)$/;
const RETURNS = /^(return|func\.return|stablehlo\.return|tuple)$/;

export class Graph {
  readonly size: number;
  /** Groups that a node calls, by node: a fusion's kernel, a loop's condition and body. */
  readonly calledBy = new Map<number, number[]>();
  /** Is shown on its readers, not as a box: constants, parameters, the final tuple. */
  readonly isChip: Uint8Array;
  readonly #childGroups = new Map<number, number[]>();
  /** The nodes directly in a group, for the top at the end. */
  readonly #childNodes: Buckets;
  readonly #users: Buckets;
  #rowNode?: Int32Array;
  /** Nodes by place in the tree: those below a group are order[from…to]. */
  readonly order: Int32Array;
  readonly #from: Int32Array;
  readonly #to: Int32Array;
  /** Each node's place in the order. */
  readonly at: Int32Array;
  /** Which iteration of a repeat is drawn, from 0. */
  readonly shown = new Map<number, number>();
  /** The measure that shares of the whole are of, where one was chosen. */
  costBy?: string;
  readonly #opRuns: boolean[];
  /** Is in the program, not in a computation that nothing calls. */
  readonly #isPart: Uint8Array;
  #ofOneIteration?: ReadonlySet<number>;
  #twinPlaces?: Int32Array;
  #ownAttributes?: Attributes | undefined;
  #kernelSums?: Int32Array; // how many of order[0…i] run as kernels

  constructor(readonly c: Columns) {
    this.size = c.names.length;
    const reader = new Int32Array(c.operand.length);
    for (let node = 0; node < this.size; node++) reader.fill(node, c.operandStart[node]!, c.operandStart[node + 1]!);
    const { start, list } = buckets(this.size, c.operand);
    this.#users = { start, list: list.map((at) => reader[at]!) };

    c.groups.forEach((group, index) => {
      if (group.caller >= 0) push(this.calledBy, group.caller, index);
      else push(this.#childGroups, group.parent, index);
    });
    const top = c.groups.length;
    const inGroup = c.groupOf.map((group) => (group < 0 ? top : group));
    this.#childNodes = buckets(top + 1, inGroup);
    this.#opRuns = c.ops.map((op) => !NO_KERNEL.test(op));
    this.#isPart = new Uint8Array(top + 1).fill(1);
    // A parent comes before its children.
    c.groups.forEach(({ kind, parent }, group) => {
      if (kind === "uncalled" || (parent >= 0 && !this.#isPart[parent])) this.#isPart[group] = 0;
    });
    this.isChip = new Uint8Array(this.size);
    const chipOps = c.ops.map((op) => CHIPS.test(op));
    const returnOps = c.ops.map((op) => RETURNS.test(op));
    for (let node = 0; node < this.size; node++) {
      const op = c.op[node]!;
      const isEnd = /^(in|out)puts$/.test(c.groups[c.groupOf[node]!]?.kind ?? "");
      const hasUsers = start[node + 1]! > start[node]!;
      if ((chipOps[op] && hasUsers && !isEnd) || (returnOps[op] && !hasUsers && !isEnd)) this.isChip[node] = 1;
    }
    [this.order, this.at] = [new Int32Array(this.size), new Int32Array(this.size)];
    [this.#from, this.#to] = [new Int32Array(top), new Int32Array(top)];
    this.#sortByTree();
  }

  /**
   * For each place in the order, that of its counterpart in the first of the equal iterations; undefined where nothing
   * repeats.
   */
  get twins(): Int32Array | undefined {
    const { twin } = this.c;
    if (!twin?.length) return undefined;
    return (this.#twinPlaces ??= this.order.map((node) => this.at[twin[node]!]!));
  }

  get attributes(): Attributes | undefined {
    return (this.#ownAttributes ??= this.c.readAttributes?.());
  }

  /** The node, or its counterpart in the iteration that is drawn. */
  drawn(node: number): number {
    const { twin, groups } = this.c;
    if (!twin?.length) return node;
    const iteration = this.ancestors(nodeItem(node)).find((group) => groups[group]!.kind === "iteration");
    if (iteration === undefined) return node;
    const { parent } = groups[iteration]!;
    const shown = this.iterations(parent)[this.shown.get(parent) ?? 0]!;
    if (shown === iteration) return node;
    const [from, to] = this.range(groupItem(shown));
    const place = this.twins!.subarray(from, to).indexOf(this.at[twin[node]!]!);
    return place < 0 ? node : this.order[from + place]!;
  }

  #sortByTree(): void {
    let at = 0;
    const visit = (group: number) => {
      if (group >= 0) this.#from[group] = at;
      for (const node of this.#nodesIn(group)) {
        this.at[node] = at;
        this.order[at++] = node;
        for (const called of this.calledBy.get(node) ?? []) visit(called);
      }
      for (const child of this.#childGroups.get(group) ?? []) visit(child);
      if (group >= 0) this.#to[group] = at;
    };
    visit(-1);
  }

  op = (node: number): string => this.c.ops[this.c.op[node]!]!;
  type = (node: number): string => this.c.types[this.c.type[node]!]!;
  scope = (node: number): string => this.c.scopes[this.c.scope[node]!]!;
  name = (node: number): string => this.c.names[node]!;
  operands = (node: number): Int32Array =>
    this.c.operand.subarray(this.c.operandStart[node]!, this.c.operandStart[node + 1]!);
  users = (node: number): number[] => [...new Set(rowOf(this.#users, node))];

  #nodesIn = (group: number): Int32Array => rowOf(this.#childNodes, group < 0 ? this.c.groups.length : group);

  /** The first node that a row of the text holds, -1 for none. */
  nodeAtRow(row: number): number {
    if (!this.#rowNode) {
      this.#rowNode = new Int32Array(this.c.line.reduce((most, line) => Math.max(most, line), 0) + 1).fill(-1);
      for (let node = this.size - 1; node >= 0; node--)
        if (this.c.line[node]! >= 0) this.#rowNode[this.c.line[node]!] = node;
    }
    return this.#rowNode[row] ?? -1;
  }

  /** The nodes whose stack goes through a frame that passes: for a call, all that it led to. */
  through(passes: (frame: Frame) => boolean): number[] {
    const { frames, frame } = this.c;
    const own = frames.map(passes);
    const leads = frames.map((_, i) => {
      for (let at = i, steps = 0; at >= 0 && steps <= frames.length; at = frames[at]!.parent, steps++)
        if (own[at]) return true;
      return false;
    });
    return Array.from(frame.keys()).filter((node) => leads[frame[node]!]);
  }

  /** The innermost frame first. */
  stack(node: number): Frame[] {
    const frames: Frame[] = [];
    for (let i = this.c.frame[node]!; i >= 0 && frames.length < 64; i = this.c.frames[i]!.parent)
      frames.push(this.c.frames[i]!);
    return frames;
  }

  /** All nodes below a group, or every node for -1. */
  below(group: number): Int32Array {
    return group < 0 ? this.order : this.order.subarray(this.#from[group]!, this.#to[group]!);
  }

  /** The stretch of `order` that an item stands for; what a node calls follows it. */
  range(item: Item): [from: number, to: number] {
    if (isGroup(item)) return [this.#from[item.group]!, this.#to[item.group]!];
    if (!isNode(item)) return [0, 0];
    const called = this.calledBy.get(item.node)?.at(-1);
    const from = this.at[item.node]!;
    return [from, called === undefined ? from + 1 : this.#to[called]!];
  }

  count(item: Item): number {
    const [from, to] = this.range(item);
    return to - from;
  }

  /** How many kernels run in an item, or in all. */
  kernelsIn(item?: Item): number {
    this.#kernelSums ??= sums(new Int32Array(this.size + 1), (i) => Number(this.isKernel(this.order[i]!)));
    const [from, to] = item === undefined ? [0, this.size] : this.range(item);
    return this.#kernelSums[to]! - this.#kernelSums[from]!;
  }

  within(node: number): number[] {
    return [node, ...(this.calledBy.get(node) ?? []).flatMap((group) => Array.from(this.below(group)))];
  }

  nodesOf(item: Item): ArrayLike<number> {
    return isGroup(item) ? this.below(item.group) : isNode(item) ? this.within(item.node) : [];
  }

  isRepeat = (group: number): boolean => this.c.groups[group]?.kind === "repeat";
  iterations = (group: number): number[] => this.#childGroups.get(group) ?? [];

  /** How often an item runs where that is more than once; 0 otherwise, and where it can't be determined. */
  times = (item: Item): number => (isGroup(item) ? (this.c.repeat?.[item.group] ?? 0) : 0);

  /** Is what is counted of a node one iteration of a loop that nobody knows the length of? */
  isOneIteration = (node: number): boolean => (this.#ofOneIteration ??= new Set(this.c.oneIteration)).has(node);

  /** What opening a group shows, in program order, chips left out. */
  children(group: number): Item[] {
    const nodes = Array.from(this.#nodesIn(group)).filter((node) => !this.isChip[node]);
    const groups = (this.#childGroups.get(group) ?? []).filter((child) => this.#to[child]! > this.#from[child]!);
    const at = new Map<Item, number>(nodes.map((node) => [nodeItem(node), node]));
    for (const child of groups) at.set(groupItem(child), this.#when(child));
    return [...at.keys()].sort((a, b) => at.get(a)! - at.get(b)!);
  }

  /**
   * Where in program order a group stands: a schedule mixes groups, so their middle counts; phases have their own
   * order.
   */
  #when(group: number): number {
    const { kind, name } = this.c.groups[group]!;
    if (kind === "inputs") return -4;
    if (kind === "outputs") return 1e12;
    if (kind === "uncalled") return 1e13; // no part of the program: after it
    if (kind === "phase") return ["forward", "backward", "update"].indexOf(name.split(" ")[0]!) - 3;
    const nodes = this.below(group);
    return nodes.reduce((all, node) => all + node, 0) / nodes.length;
  }

  /** The groups that opening an item shows the inside of. */
  inside(item: Item): number[] {
    if (isNode(item)) return this.calledBy.get(item.node) ?? [];
    if (!isGroup(item)) return [];
    // Repeated layers are laid out once: one iteration stands for all.
    const { group } = item;
    return [this.isRepeat(group) ? this.iterations(group)[this.shown.get(group) ?? 0]! : group];
  }

  /**
   * For any node, the position among `items` of the one directly inside `group` that holds it; -1 for elsewhere and
   * chips.
   */
  positions(group: number, items: Item[], chains: ReadonlyMap<number, number[]> = new Map()): (node: number) => number {
    const { groups, groupOf } = this.c;
    const ofNode = new Map<number, number>();
    const ofItem = new Map<Item, number>();
    items.forEach((item, i) => {
      if (isNode(item)) ofNode.set(item.node, i);
      else ofItem.set(item, i);
    });
    for (const [first, chain] of chains) for (const node of chain) ofNode.set(node, ofNode.get(first)!);
    // There are a hundred thousand nodes in a few groups: a group's position is determined once.
    const ofGroup = new Map<number, number>([[-1, -1]]);
    const find = (at: number): number => {
      let position = ofGroup.get(at);
      if (position === undefined) {
        const { parent, caller } = groups[at]!;
        const own = caller >= 0 ? ofNode.get(caller) : ofItem.get(groupItem(at));
        position = parent === group ? (own ?? -1) : find(parent);
        ofGroup.set(at, position);
      }
      return position;
    };
    return (node) => {
      if (this.isChip[node]) return -1;
      return groupOf[node] === group ? (ofNode.get(node) ?? -1) : find(groupOf[node]!);
    };
  }

  /** The groups around a node, or around a group and itself, outermost first. */
  ancestors(item: Item): number[] {
    const groups: number[] = [];
    let at = isNode(item) ? this.c.groupOf[item.node]! : item.group;
    for (; at >= 0; at = this.c.groups[at]!.parent) groups.unshift(at);
    return groups;
  }

  /** What stands for the inside of a group in the picture: the node that calls it, or the group itself. */
  itemOf(group: number): Item {
    const { caller } = this.c.groups[group]!;
    return caller >= 0 ? nodeItem(caller) : groupItem(group);
  }

  /** Does the node lie in the place that runs, not inside a kernel? Then it is a kernel of its own. */
  isKernel(node: number): boolean {
    const { groups, groupOf, op } = this.c;
    const group = groupOf[node]!;
    const isInside = /^(fusion|apply)$/.test(groups[group]?.kind ?? "");
    return !isInside && this.#opRuns[op[node]!]! && this.#isPart[group < 0 ? groups.length : group] === 1;
  }
}

export type NodeItem = { readonly kind: "node"; readonly node: number };

export type GroupItem = { readonly kind: "group"; readonly group: number };

/** What a page leaves out of a group (-1: of the whole program), before it or after it. */
export type RestItem = { readonly kind: "rest"; readonly group: number; readonly isBefore: boolean };

export type Item = NodeItem | GroupItem | RestItem;

// Each item is made once: the same node is the same object, so that items can be compared and be keys of maps and sets.
const nodes: NodeItem[] = [];
const groups: GroupItem[] = [];
const rests: RestItem[] = [];

export const nodeItem = (node: number): NodeItem => (nodes[node] ??= { kind: "node", node });
export const groupItem = (group: number): GroupItem => (groups[group] ??= { kind: "group", group });
export const restItem = (group: number, isBefore: boolean): RestItem =>
  (rests[2 * (group + 1) + Number(isBefore)] ??= { kind: "rest", group, isBefore });

export const isNode = (item: Item | undefined): item is NodeItem => item?.kind === "node";
export const isGroup = (item: Item | undefined): item is GroupItem => item?.kind === "group";
export const isRest = (item: Item | undefined): item is RestItem => item?.kind === "rest";

/** Compressed rows: node `i` has the keys and values `start[i]` … `start[i + 1] - 1`, in the order of the text. */
export type AttributeColumns = Record<"attributeStart" | "attributeKey" | "attributeValue", Int32Array>;

/** What the compiler printed of each node beside its name, type and operands: explorer/model/attributes.py. */
export class Attributes {
  constructor(
    private readonly keys: string[],
    private readonly values: string[],
    private readonly c: AttributeColumns,
  ) {}

  of(node: number): [key: string, value: string][] {
    const { attributeKey: key, attributeValue: value } = this.c;
    return this.#rows(node).map((row) => [this.keys[key[row]!]!, this.values[value[row]!]!]);
  }

  /** A node's value of the first of some keys that it has. */
  get(node: number, ...names: string[]): string | undefined {
    return this.of(node).find(([key]) => names.includes(key))?.[1];
  }

  has = (...names: string[]): boolean => this.keys.some((key) => names.includes(key));

  /** For each node, whether one of its attributes passes; each distinct pair is tested once. */
  mask(test: (key: string, value: string) => boolean): Uint8Array {
    const { keys, values } = this;
    const { attributeStart: start, attributeKey: key, attributeValue: value } = this.c;
    const passes = new Map<number, boolean>();
    return Uint8Array.from({ length: start.length - 1 }, (_, node) =>
      this.#rows(node).some((row) => {
        const pair = key[row]! * values.length + value[row]!;
        if (!passes.has(pair)) passes.set(pair, test(keys[key[row]!]!, values[value[row]!]!));
        return passes.get(pair)!;
      })
        ? 1
        : 0,
    );
  }

  #rows(node: number): number[] {
    const { attributeStart: start } = this.c;
    return Array.from({ length: start[node + 1]! - start[node]! }, (_, i) => start[node]! + i);
  }
}
