// What a box of the graph's picture stands for.

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
