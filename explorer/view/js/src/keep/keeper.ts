// Keeps where one is and what one wrote: in the address of a page of its own, else in the browser, and in the kernel.
// Notes have a field for what is chosen, and a list for the program.

import { made } from "../core/buckets";
import { button, copied, download, element } from "../core/dom";
import { type Item, isNode } from "../core/graph";
import { type Model, registeredModel } from "../core/kernel_link";
import { count } from "../core/labels";
import { lineKey } from "../core/links";
import type { Change, Mode, Session } from "../core/session";
import { addSheet, whileInPage } from "../core/theme";
import type { GraphPane } from "../graph/graph_pane";
import { addressOf, type Bookmark, bookmarkAt, isNothing, lineName, lineNamed, Names, type Note } from "./bookmark";
import sheet from "./keep.css";
import { isOwnPage, nameOf, storedPlace, storePlace } from "./stored";

addSheet(sheet);

const SOON = 250; // milliseconds after which what was changed is kept
const MOST_NAMED = 200; // nodes of a selection
const LONGEST = 1500; // letters of an address: mail programs cut longer ones

/** What of the view a keeper works with. */
export interface View {
  readonly session: Session;
  readonly graph: GraphPane;
  readonly modes: readonly Mode[];
  readonly id: string;
  readonly model: Model | undefined;
  /** Put a text into the field that finds. */
  find(text: string): Promise<void>;
  /** Bring what was chosen into sight. */
  follow(): void;
  /** The foot's place for what is kept; the details; what is in the page while the view is. */
  readonly foot: HTMLElement;
  readonly details: HTMLElement;
  readonly links: HTMLElement;
}

export class Keeper implements Notebook {
  notes: readonly Note[] = [];
  readonly #names = new Map<string, Names>();
  readonly #own: boolean;
  readonly #name: string;
  /** The address of the place that Python opened last. */
  #of = "";
  #gone: string[] = [];
  #hasTaken = false;
  #isTaking = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #stop: () => void;

  constructor(private readonly view: View) {
    const { id, session, links } = view;
    this.#own = isOwnPage(id);
    this.#name = nameOf(session.capture.header, id);
    session.listen((change) => this.#changed(change));
    this.#stop = whileInPage(links, () => {
      const moved = () => void this.open(bookmarkAt(location.hash.slice(1)));
      if (this.#own) window.addEventListener("hashchange", moved);
      return () => window.removeEventListener("hashchange", moved);
    });
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#stop();
  }

  /** Where the view begins: where one was in it, unless Python has opened another place since. */
  async begin(given: Bookmark): Promise<void> {
    this.#of = this.#own ? addressOf(given) : placeOf(given);
    const stored = storedPlace(this.#name);
    const known = !this.#of || stored?.of === this.#of ? stored?.place : undefined;
    const addressed = this.#own ? bookmarkAt(location.hash.slice(1)) : {};
    // Of a page that came again with other notes, those that were written here stay beside them.
    const notes = addressed.notes ?? known?.notes ?? merged(given.notes, stored?.place.notes);
    const place = isNothing(addressed) ? (this.#own ? given : (known ?? given)) : addressed;
    this.hasBegun = !isNothing(place);
    this.view.session.quietly(() => this.#place({ ...place, notes }));
    if (place.search) await this.view.find(place.search);
  }

  /** Was there a place to begin at? What Python shows in every view then doesn't take this one away from it. */
  hasBegun = false;

  /** Go to a place that Python assigned; not to that where the view began. */
  assign(given: Bookmark): void {
    if (this.#own || placeOf(given) === this.#of) return;
    this.#of = placeOf(given);
    void this.open(given);
  }

  /** Go to a place; notes that it doesn't speak of stay. */
  async open(place: Bookmark): Promise<void> {
    const { session } = this.view;
    session.quietly(() => this.#place({ notes: [...this.notes], ...place }));
    session.notify("notes");
    session.notify("stage");
    if (place.search) await this.view.find(place.search);
    this.view.follow();
  }

  /** The notes as Python has them: another view of the same capture may have been written in. */
  take(notes: Note[]): void {
    if (JSON.stringify(notes) === JSON.stringify(this.notes)) return;
    const isNew = !this.#hasTaken && !notes.length; // what was compiled anew has none, and gets those of before
    this.#hasTaken = true;
    if (isNew) return void this.#changed("notes");
    this.#setNotes(notes);
    this.#isTaking = true; // nobody moved here: what is kept is the place of the view that was used
    this.view.session.notify("notes");
    this.#isTaking = false;
    this.#show();
  }

  #place({ stage, pane, selection = [], open_groups, notes = [] }: Bookmark): void {
    const { session, graph, modes } = this.view;
    const { capture } = session;
    this.#gone = [];
    const missing = (name: string) => void this.#gone.push(spoken(name));
    if (stage && capture.stages.some(({ name }) => name === stage)) session.setStage(stage);
    else if (stage) missing(stage);
    const mode = (pane ?? "graph") as Mode;
    if (modes.includes(mode) && session.stage.size) session.mode = mode;
    const names = this.#namesOf(session.stage.name);
    const found = (name: string): Item[] => {
      const item = names.item(name);
      if (item === undefined) missing(name);
      return item === undefined ? [] : [item];
    };
    if (open_groups) graph.setOpened(open_groups.flatMap(found));
    session.focusItem(undefined);
    const lines = selection.filter((name) => /:\d+$/.test(name));
    const line = lines[0] === undefined ? undefined : lineNamed(capture, lines[0]);
    if (line) session.focusLine(line.file, line.line);
    else if (lines[0] !== undefined) missing(lines[0]);
    const items = lines.length ? [] : selection.flatMap(found);
    const nodes = items.filter(isNode).map(({ node }) => node);
    if (items.length === 1) session.focusItem(items[0]);
    else if (items.length) session.focusNodes(session.stage.name, nodes);
    this.#setNotes(notes);
    this.#show();
  }

  /** Where one is. */
  get bookmark(): Bookmark {
    const { session, graph } = this.view;
    const { stage, mode, focus } = session;
    const names = this.#namesOf(stage.name);
    const open = graph.opened?.flatMap((item) => names.of(item) ?? []);
    const selection = this.#selection(names);
    const isFirst = stage === session.capture.stage("hlo");
    return {
      ...(isFirst && !selection.length && !open ? {} : { stage: stage.name }),
      ...(mode === "graph" ? {} : { pane: mode }),
      ...(focus.query ? { search: focus.query } : selection.length ? { selection } : {}),
      ...(open ? { open_groups: open } : {}),
      ...(this.notes.length ? { notes: [...this.notes] } : {}),
    };
  }

  #selection(names: Names): string[] {
    const { capture, focus, stage } = this.view.session;
    if (focus.line) return [lineName(capture, focus.line.file, focus.line.line)];
    const name = names.of(focus.item);
    if (name !== undefined) return [name];
    return [...focus.nodes].slice(0, MOST_NAMED).map(stage.graph.name);
  }

  #namesOf(stage: string): Names {
    return made(this.#names, stage, () => new Names(this.view.session.capture.stage(stage).graph));
  }

  /** Something was chosen before there was anything to keep. */
  first(details: HTMLElement): void {
    this.fill(details);
    this.#changed("focus");
  }

  #changed(change: Change): void {
    if (this.#isTaking || change === "preview" || change === "cost" || change === "look") return;
    if (change !== "notes") this.#gone = [];
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#keep(), SOON);
  }

  #keep(): void {
    const { id, model, foot } = this.view;
    if (!foot.isConnected) return;
    this.#show();
    const { bookmark } = this;
    const { notes, ...place } = bookmark;
    const toStore = this.#own ? (notes ? { notes } : {}) : bookmark;
    storePlace(this.#name, isNothing(toStore) ? undefined : { place: toStore, of: this.#of });
    if (this.#own) setAddress(shortAddress(bookmark) ?? shortAddress(place) ?? addressOf({ stage: place.stage! }));
    const live = model ?? registeredModel(id);
    try {
      live?.set("place", bookmark);
      live?.save_changes();
    } catch {
      // Its kernel is gone.
    }
  }

  /** Copy the address that opens this place; what it says of that. */
  async copyLink(): Promise<string> {
    clearTimeout(this.#timer);
    this.#keep();
    const lacks = this.notes.length && !location.hash.includes("note=") ? ", without the notes: save the page" : "";
    return ((await copied(location.href)) ? "copied" : "it is in the address field") + lacks;
  }

  write({ on, stage }: Target, text: string): void {
    const at = this.notes.findIndex((note) => note[0] === on && note[2] === stage);
    const notes = [...this.notes];
    if (!text.trim()) notes.splice(at, at < 0 ? 0 : 1);
    else if (at < 0) notes.push([on, text, stage]);
    else notes[at] = [on, text, stage];
    const isNew = notes.length !== this.notes.length;
    this.#setNotes(notes);
    if (isNew) this.view.session.notify("notes");
    else this.#changed("notes");
  }

  go([on, , stage]: Note): (() => void) | undefined {
    const { session, follow } = this.view;
    const line = stage ? undefined : lineNamed(session.capture, on);
    if (line) return () => session.focusLine(line.file, line.line);
    if (!stage || !session.capture.stages.some(({ name }) => name === stage)) return undefined;
    const item = this.#namesOf(stage).item(on);
    if (item === undefined) return undefined;
    return () => {
      session.setStage(stage);
      session.focusItem(item);
      follow();
    };
  }

  /** Tell the panes where there are notes. */
  #setNotes(notes: readonly Note[]): void {
    const { session } = this.view;
    this.notes = notes;
    session.notes.clear();
    for (const [on, text, stage] of notes) {
      const line = stage ? undefined : lineNamed(session.capture, on);
      const isThere = session.capture.stages.some(({ name }) => name === stage);
      const thing = line ? lineKey(line.file, line.line) : isThere ? this.#namesOf(stage).item(on) : undefined;
      if (thing !== undefined) session.notes.set(stage, new Map([...(session.notes.get(stage) ?? []), [thing, text]]));
    }
  }

  /** Add to the details the note on what is chosen; while nothing is, all notes. */
  fill(details: HTMLElement): void {
    const { session } = this.view;
    const { focus, stage } = session;
    const name = this.#namesOf(stage.name).of(focus.item);
    const line = focus.line && lineName(session.capture, focus.line.file, focus.line.line);
    const on = line ?? name;
    const field = () => noteField(this, { on: on!, stage: line === undefined ? stage.name : "" });
    const parts = on !== undefined ? [field()] : focus.nodes.size ? [] : noteList(this);
    details.querySelector(":scope > .note")?.after(...parts);
  }

  #show(): void {
    const parts: Node[] = [];
    if (this.notes.length) {
      const list = () => this.view.session.focusItem(undefined);
      parts.push(button({ title: "show them" }, list, `✎ ${count(this.notes.length, "note")}`));
      const title = "download this page with the notes in it: they are in this browser only";
      if (this.#own) parts.push(button({ title }, () => this.#savePage(), "save the page with its notes"));
    }
    if (this.#gone.length) {
      const text = `no longer there: ${this.#gone.slice(0, 3).join(", ")}${this.#gone.length > 3 ? " …" : ""}`;
      parts.push(element("span", { title: this.#gone.join(", ") }, text));
    }
    this.view.foot.replaceChildren(...parts);
  }

  #savePage(): void {
    const name = location.pathname.split("/").at(-1) || `${this.view.session.capture.header.function}.html`;
    const page = new Blob([pageWith(this.view.id, this.bookmark)], { type: "text/html" });
    download(page, decodeURIComponent(name));
  }
}

function merged(notes: Note[] = [], others: Note[] = []): Note[] {
  const isOther = ([on, , stage]: Note) => !notes.some((note) => note[0] === on && note[2] === stage);
  return [...notes, ...others.filter(isOther)];
}

/** The address of a place without its notes. */
const placeOf = ({ notes: _, ...place }: Bookmark): string => addressOf(place);

function shortAddress(bookmark: Bookmark): string | undefined {
  const address = addressOf(bookmark);
  return address.length > LONGEST ? undefined : address;
}

function setAddress(address: string): void {
  if (address === location.hash.slice(1)) return;
  try {
    history.replaceState(history.state, "", address ? `#${address}` : location.pathname + location.search);
  } catch {
    // A page without an address of its own, or one that changes it too often.
  }
}

/** This page as it was before its scripts ran, but that it opens at a place, with its notes. */
function pageWith(id: string, bookmark: Bookmark): string {
  const copy = document.documentElement.cloneNode(true) as HTMLElement;
  for (const host of copy.querySelectorAll<HTMLElement>("[data-explorer]")) {
    for (const child of [...host.children]) if (!child.matches(".explorer-static, script")) child.remove();
    const fixed = host.querySelector<HTMLElement>(".explorer-static")!;
    fixed.hidden = false;
    delete host.dataset.started;
    if (host.dataset.explorer !== id) continue;
    host.dataset.bookmark = JSON.stringify(bookmark);
    // For who reads it where no script runs; explorer/view/capture/html.py does the same.
    fixed.querySelector(".explorer-notes")?.remove();
    const rows = (bookmark.notes ?? []).map(([on, text, stage]) => element("li", `${stage} ${on}: ${text}`.trim()));
    fixed.append(element("ul.explorer-notes", { "aria-label": "notes" }, ...rows));
  }
  return `<!doctype html>${copy.outerHTML}\n`;
}

/** What there is to write on, in the words of the view. */
export type Target = { on: string; stage: string };

interface Notebook {
  readonly notes: readonly Note[];
  write(target: Target, text: string): void;
  /** Go to what a note is on; undefined where that isn't there any more. */
  go(note: Note): (() => void) | undefined;
}

/** What a person reads as the thing that a note is on. */
const spoken = (on: string): string => on.replace(/^:(\d+)$/, "line $1").replace(/:(\d+)$/, " line $1");

/** The field for a note on what is chosen: a button until there is one. */
function noteField(notebook: Notebook, target: Target): HTMLElement {
  const before = notebook.notes.find(([on, , stage]) => on === target.on && stage === target.stage)?.[1];
  const field = element("textarea", { rows: 3, "aria-label": `note on ${spoken(target.on)}`, spellcheck: "true" });
  field.value = before ?? "";
  field.addEventListener("input", () => notebook.write(target, field.value));
  // What is typed is no key of the view, or of a notebook; Esc leaves.
  field.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape") field.blur();
  });
  const write = () => {
    open.replaceWith(field);
    field.focus();
  };
  const open = button({ title: "write something here that stays" }, write, "✎ note");
  return element("div.note-field", before === undefined ? open : field);
}

/** All notes, each a way to what it is on. */
function noteList(notebook: Notebook): Node[] {
  if (!notebook.notes.length) return [];
  const rows = notebook.notes.map((note) => {
    const [on, text, stage] = note;
    const go = notebook.go(note);
    const where = element("b", spoken(on), ...(stage ? [element("small", ` ${stage}`)] : []));
    if (!go) return element("div", where, element("em", " no longer there"), element("p", text));
    return button({}, go, where, element("p", text));
  });
  return [element("h4.heading", "notes"), element("div.note-list", ...rows)];
}
