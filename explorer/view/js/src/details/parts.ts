// What the details are built of: headings, facts, lists, sentences, stacks.

import { button, element } from "../core/dom";
import type { Frame } from "../core/graph";
import { cut, number } from "../core/labels";
import type { SourceLine } from "../core/links";
import type { Session } from "../core/session";

const LONGEST_VALUE = 20; // characters of an attribute's value that fit beside its name
export const MOST = 40; // rows of a list; the rest is counted

export const title = (text: string, colour = -1): Node =>
  element("h3", { class: colour >= 0 ? `title k${colour}` : "title" }, text);
export const heading = (text: string, ...more: Node[]): Node => element("h4.heading", text, ...more);
export const note = (text: string): Node => element("div.note", text);

export function facts(rows: [string, string][]): Node {
  const parent = element("div.facts");
  for (const [name, value] of rows) parent.append(element("span", name), element("span", { title: value }, value));
  return parent;
}

/** What the compiler printed of a node; a long value is cut, is whole in its tooltip, and opens. */
export function attributes(pairs: [key: string, value: string][]): Node[] {
  if (!pairs.length) return [];
  const parent = element("div.list.attributes");
  for (const [key, value] of pairs.slice(0, MOST)) {
    const name = element("span", { title: key }, key);
    if (value.length <= LONGEST_VALUE) parent.append(element("div", name, element("em", value)));
    else {
      const summary = element("summary", name, element("em", { title: value }, cut(value, 2 * LONGEST_VALUE)));
      parent.append(element("details", summary, element("p", value)));
    }
  }
  if (pairs.length > MOST) parent.append(note(`and ${number(pairs.length - MOST)} more`));
  return [heading("attributes"), parent];
}

/** What became of an equation, as a sentence; marked where it was inferred. */
export function sentence(kind: string, isInferred: boolean, why: string): Node {
  const title = "Inferred from the structure; the compiler's metadata does not state it.";
  const mark = isInferred ? [" ", element("i.inferred", { title }, "inferred")] : [];
  return element("p.fate", element("b", kind), why ? `: ${why}` : "", ...mark);
}

/** Say what became of copying; where the page may not, the text is there to be selected. */
export const say = (button: HTMLElement, done: boolean, text: string, told = "copied"): void =>
  button.replaceWith(done ? told : element("code", text));

type Row = [name: string, value: string, isInferred?: boolean, why?: string];

export function list(rows: Row[], more = 0, choose?: (row: number) => void): Node {
  const parent = element("div.list");
  rows.forEach(([name, value, isInferred, why], row) => {
    const titles = [why || value, isInferred ? "inferred: the compiler's metadata does not state it" : ""];
    const detail = element("em", { title: titles.filter(Boolean).join("; ") }, value);
    if (isInferred) detail.prepend(element("i.inferred", { role: "img", "aria-label": "inferred" }, "≈ "));
    const parts = [element("span", name), detail];
    parent.append(choose ? button({}, () => choose(row), ...parts) : element("div", ...parts));
  });
  if (more > 0) parent.append(note(`and ${number(more)} more`));
  return parent;
}

/** A stack as buttons: the line that it belongs to, and for the others what their calls led to. */
export function stackOf(session: Session, frames: Frame[], place: SourceLine | undefined): Node {
  const parent = element("div.list");
  for (const frame of frames) {
    const { file, line } = frame;
    const isOwn = file === place?.file && line === place.line;
    const title = isOwn ? "what belongs to this line" : "all that the calls on this line compiled to";
    const name = frame.function.split(".").pop() || "?";
    parent.append(button({ title }, () => session.focusLine(file, line, !isOwn), name, element("em", `line ${line}`)));
  }
  return parent;
}
