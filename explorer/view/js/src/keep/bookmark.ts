// A place in the view and the notes in it, by names that outlive the page: explorer/model/bookmark.py has the same.

import type { Capture } from "../core/capture";
import { type Graph, groupItem, type Item, isGroup, isNode, nodeItem } from "../core/graph";

/** What a person wrote on a line of the source, or on a node or a group of a stage. */
export type Note = [on: string, text: string, stage: string];

/** What is as the view opens unasked is left out. */
export interface Bookmark {
  stage?: string;
  pane?: string;
  selection?: string[];
  search?: string;
  open_groups?: string[];
  notes?: Note[];
}

export const isNothing = (bookmark: Bookmark): boolean => !Object.keys(bookmark).length;

const quoted = (text: string): string =>
  encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"))
    .replace(/%(2F|3A|40)/g, decodeURIComponent)
    .replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/** What stands behind the # of an address. */
export function addressOf({ stage, pane, selection, search, open_groups, notes = [] }: Bookmark): string {
  const pairs: [string, string[]][] = [];
  if (stage) pairs.push(["stage", [stage]]);
  if (pane) pairs.push(["pane", [pane]]);
  if (search) pairs.push(["find", [search]]);
  if (selection?.length) pairs.push(["at", selection]);
  if (open_groups) pairs.push(["open", open_groups]);
  for (const [on, text, of] of notes) pairs.push(["note", of ? [on, text, of] : [on, text]]);
  return pairs.map(([key, values]) => `${key}=${values.map(quoted).join(",")}`).join("&");
}

/** The bookmark behind the # of an address; what is none of it is passed over. */
export function bookmarkAt(address: string): Bookmark {
  const given: Bookmark = {};
  const notes: Note[] = [];
  for (const pair of address.split("&")) {
    const [key = "", value = ""] = pair.split(/=(.*)/s);
    let parts: string[];
    try {
      parts = value ? value.split(",").map(decodeURIComponent) : [];
    } catch {
      continue; // cut off in the middle of a letter
    }
    const [first = "", second = "", third = ""] = parts;
    if (key === "stage" && first) given.stage = first;
    else if (key === "pane" && first) given.pane = first;
    else if (key === "find" && first) given.search = first;
    else if (key === "at" && parts.length) given.selection = parts;
    else if (key === "open") given.open_groups = parts;
    else if (key === "note" && parts.length > 1) notes.push([first, second, third]);
  }
  return notes.length ? { ...given, notes } : given;
}

/** What the source calls a line: `:12`, of another file than the function's `layers.py:12`. */
export function lineName({ header }: Capture, file: string, line: number): string {
  const label = file === header.file ? "" : (header.sources.find((source) => source.file === file)?.label ?? file);
  return `${label}:${line}`;
}

/** The line of that name, where its file is there and is as long. */
export function lineNamed({ header }: Capture, name: string): { file: string; line: number } | undefined {
  const [, label, number] = /^(.*):(\d+)$/s.exec(name) ?? [];
  const source = header.sources.find(({ file, label: own }) => (label ? label === own : file === header.file));
  const line = Number(number);
  return source && line > 0 && line <= source.text.split("\n").length ? { file: source.file, line } : undefined;
}

/** The names of a stage's nodes and groups; a group has a path, with a number where two would have the same. */
export class Names {
  readonly #paths: string[] = [];
  readonly #items = new Map<string, Item>();

  constructor(private readonly graph: Graph) {
    // A parent comes before its children.
    for (const [group, { name, parent }] of graph.c.groups.entries()) {
      const path = `${this.#paths[parent] ?? ""}/${name}`;
      let own = path;
      for (let number = 2; this.#items.has(own); number++) own = `${path}~${number}`;
      this.#paths.push(own);
      this.#items.set(own, groupItem(group));
    }
    for (const [node, name] of graph.c.names.entries())
      if (!this.#items.has(name)) this.#items.set(name, nodeItem(node));
  }

  of(item: Item | undefined): string | undefined {
    if (isNode(item)) return this.graph.name(item.node);
    return isGroup(item) ? this.#paths[item.group] : undefined;
  }

  item = (name: string): Item | undefined => this.#items.get(name);
}
