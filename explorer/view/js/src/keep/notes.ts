// Notes: a field for what is chosen, a list of all of them for the program, and marks where they are.

import { element } from "../core/dom";
import { button } from "../core/parts";
import type { Note } from "./bookmark";

/** What there is to write on, in the words of the view. */
export type Target = { on: string; stage: string };

export interface Notebook {
  readonly notes: readonly Note[];
  write(target: Target, text: string): void;
  /** Go to what a note is on; undefined where that isn't there any more. */
  go(note: Note): (() => void) | undefined;
}

/** What a person reads as the thing that a note is on. */
export const spoken = (on: string): string => on.replace(/^:(\d+)$/, "line $1").replace(/:(\d+)$/, " line $1");

/** The field for a note on what is chosen: a button until there is one. */
export function noteField(notebook: Notebook, target: Target): HTMLElement {
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
export function noteList(notebook: Notebook): Node[] {
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
