// Making elements, and the controls that several views are made of.

type Attributes = Record<string, string | number>;
/** A tag, and classes: `div.row.lit`. */
type Selector<Tag extends string> = Tag | `${Tag}.${string}`;
type Child = Node | string;
/** Attributes may be left out. */
type Parts = [Attributes, ...Child[]] | Child[];

function filled<E extends Element>(node: E, classes: string[], parts: Parts): E {
  if (classes.length) node.setAttribute("class", classes.join(" "));
  for (const part of parts)
    if (part instanceof Node || typeof part === "string") node.append(part);
    // A strict page forbids the attribute, but not what a script makes of it.
    else
      for (const [name, value] of Object.entries(part))
        if (name === "style") (node as unknown as HTMLElement).style.cssText = String(value);
        else node.setAttribute(name, String(value));
  return node;
}

/** Text children become text: nothing of the user's is ever read as HTML. */
export function element<K extends keyof HTMLElementTagNameMap>(selector: Selector<K>, ...parts: Parts) {
  const [tag, ...classes] = selector.split(".");
  return filled(document.createElement(tag as K), classes, parts);
}

export function svg<K extends keyof SVGElementTagNameMap>(selector: Selector<K>, ...parts: Parts) {
  const [tag, ...classes] = selector.split(".");
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag as K), classes, parts);
}

export const svgText = (text: string, x: number, y: number, kind: string): SVGTextElement =>
  svg("text", { x, y, class: kind }, text);

/** A text with what a pattern finds in spans: the first group that matched names the kind, for the style sheet. */
export function spans(text: string, pattern: RegExp, kinds: string[]): (Node | string)[] {
  const parts: (Node | string)[] = [];
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) parts.push(text.slice(at, match.index));
    const kind = kinds[match.slice(1).findIndex((group) => group !== undefined)]!;
    parts.push(element("span", { class: `t-${kind}` }, match[0]));
    at = match.index + match[0].length;
  }
  parts.push(text.slice(at));
  return parts;
}

/** Text in parts, each with whether it is code. */
export type Sentence = [text: string, isCode: boolean][];

export const code = (text: string): HTMLElement => element("code", text);

/** A text whose pieces between backticks are code. */
export const coded = (text: string): (Node | string)[] =>
  text.split(/`([^`]+)`/).map((part, i) => (i % 2 ? code(part) : part));

export const sentence = (text: Sentence): Node[] =>
  text.map(([part, isCode]) => (isCode ? code(part) : document.createTextNode(part)));

export function button(
  attributes: Attributes,
  act: (event: MouseEvent) => void,
  ...children: (Node | string)[]
): HTMLButtonElement {
  const node = element("button", { type: "button", ...attributes }, ...children);
  node.addEventListener("click", act);
  return node;
}

/**
 * Let a button open and close what lies in `around` with it: Escape and going elsewhere close it too. Returns what
 * does that.
 */
export function popup(
  opener: HTMLElement,
  around: HTMLElement,
  show: (isOpen: boolean) => void,
): (isOpen: boolean) => void {
  const isOpen = () => opener.getAttribute("aria-expanded") === "true";
  const open = (opens: boolean) => {
    opener.setAttribute("aria-expanded", String(opens));
    show(opens);
  };
  opener.addEventListener("click", () => open(!isOpen()));
  around.addEventListener("focusout", ({ relatedTarget }) => {
    if (!around.contains(relatedTarget as Node | null)) open(false);
  });
  around.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    event.preventDefault();
    event.stopPropagation();
    open(false);
    opener.focus();
  });
  open(false);
  return open;
}

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/**
 * Let the keyboard go through what of `root` fits a selector. `chosen` is called with what the arrows come to.
 *
 * What is given back makes an element the one that Tab comes to; without one it stays, or is the first.
 */
export function rove(
  root: HTMLElement,
  selector: string,
  chosen: (item: HTMLElement) => void = () => {},
): (item?: HTMLElement) => void {
  const all = () => [...root.querySelectorAll<HTMLElement>(selector)];
  const reached = () => all().filter((item) => item.getClientRects().length && !item.matches(":disabled"));
  const mark = (item?: HTMLElement) => {
    const items = all();
    const at = item ?? items.find((other) => other.tabIndex === 0 && !other.hidden) ?? items[0];
    for (const other of items) other.tabIndex = other === at ? 0 : -1;
  };
  root.addEventListener("focusin", ({ target }) => {
    const item = (target as Element).closest<HTMLElement>(selector);
    if (item) mark(item);
  });
  root.addEventListener("keydown", (event) => {
    const item = (event.target as Element).closest<HTMLElement>(selector);
    const items = reached();
    const at = item ? items.indexOf(item) : -1;
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    const ends = { Home: items[0], End: items.at(-1) };
    const to = step === undefined ? ends[event.key as "Home"] : items.at((at + step) % items.length);
    if (!to) return;
    event.preventDefault();
    event.stopPropagation();
    to.focus();
    chosen(to);
  });
  mark();
  return mark;
}

/** Fill an element with buttons of which one holds: tabs of a tablist, else pressed ones; returns what marks one. */
export function choices<T>(
  root: HTMLElement,
  all: readonly (readonly [value: T, text: string])[],
  choose: (value: T) => void,
  data?: string,
): (value: T) => HTMLButtonElement | undefined {
  const isTabs = root.getAttribute("role") === "tablist";
  const state = isTabs ? "aria-selected" : "aria-pressed";
  const buttons = all.map(([value, text]) => {
    const attributes = { ...(isTabs && { role: "tab" }), ...(data && { [`data-${data}`]: String(value) }) };
    return button({ ...attributes, [state]: "false" }, () => choose(value), text);
  });
  root.replaceChildren(...buttons);
  return (chosen) => {
    for (const [i, made] of buttons.entries()) made.setAttribute(state, String(all[i]![0] === chosen));
    return buttons.find((_, i) => all[i]![0] === chosen);
  };
}

export const tool = (sign: string, label: string, act: () => void): HTMLButtonElement =>
  button({ class: "tool", "aria-label": label, title: label }, act, sign);

/** A column's head that sorts by it; `down` of the one that it is sorted by. */
export function sortHead(attributes: Record<string, string>, title: string, sort: () => void, down?: boolean): Element {
  const order = down === undefined ? "none" : down ? "descending" : "ascending";
  const sign = down === undefined ? "" : down ? " ▾" : " ▴";
  const head = button({}, sort, title, element("i", { "aria-hidden": "true" }, sign));
  return element("span", { role: "columnheader", ...attributes, "aria-sort": order }, head);
}

/** Do what a key without others does; the page around doesn't get it then. */
export function onKey(root: Element, actOf: (event: KeyboardEvent) => (() => unknown) | undefined): void {
  root.addEventListener("keydown", (pressed) => {
    const event = pressed as KeyboardEvent;
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : actOf(event);
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
}

/** What the nearest element at or around an event has of some data. */
export const dataAt = ({ target }: Event, name: string): string | undefined =>
  (target as Element | null)?.closest?.<HTMLElement>(`[data-${name}]`)?.dataset[name];

export const hasFocus = (root: HTMLElement): boolean =>
  root.contains((root.getRootNode() as Document | ShadowRoot).activeElement);

/** The position of the last of rising keys that isn't above a bound; the first one's where all are. */
export function lastAtMost<T>(rows: ArrayLike<T>, key: (row: T) => number, bound: number): number {
  let [low, high] = [0, rows.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (key(rows[middle]!) <= bound) low = middle;
    else high = middle - 1;
  }
  return low;
}

export const words = (text: string): string[] => text.toLowerCase().split(/\s+/).filter(Boolean);

/** Call back with the part of an element that is clicked, and with the one under the pointer, undefined for none. */
export function onParts<T>(
  root: HTMLElement,
  at: (event: Event) => T | undefined,
  choose: (part: T) => void,
  preview: (part?: T) => void,
): void {
  root.addEventListener("click", (event) => {
    const part = at(event);
    if (part !== undefined) choose(part);
  });
  root.addEventListener("pointerover", (event) => preview(at(event)));
  root.addEventListener("pointerleave", () => preview());
}

interface Moves {
  by(x: number, y: number): void;
  zoom(factor: number, x: number, y: number): void;
  /** The picture was pressed and not moved. */
  click(event: PointerEvent): void;
}

/** Dragging moves a picture, ctrl (what a pinch sends) zooms; it pans while its pane has the keyboard: pages scroll. */
export function pan(picture: SVGElement, pane: HTMLElement, moves: Moves): void {
  let pressed: { x: number; y: number; moved: boolean } | undefined;
  picture.addEventListener("pointerdown", (event) => {
    if (event.button === 0) pressed = { x: event.clientX, y: event.clientY, moved: false };
  });
  picture.addEventListener("pointermove", (event) => {
    if (!pressed) return;
    const [dx, dy] = [event.clientX - pressed.x, event.clientY - pressed.y];
    if (!pressed.moved && Math.hypot(dx, dy) < 4) return;
    if (!pressed.moved) picture.setPointerCapture(event.pointerId);
    pressed = { x: event.clientX, y: event.clientY, moved: true };
    moves.by(dx, dy);
  });
  picture.addEventListener("pointercancel", () => (pressed = undefined));
  picture.addEventListener("pointerup", (event) => {
    const wasClick = pressed && !pressed.moved;
    pressed = undefined;
    if (wasClick) moves.click(event);
  });
  const turned = (event: WheelEvent) => {
    const { left, top } = picture.getBoundingClientRect();
    const isZoom = event.ctrlKey || event.metaKey;
    if (!isZoom && !pane.contains(document.activeElement)) return;
    event.preventDefault();
    if (isZoom) moves.zoom(Math.exp(-event.deltaY / 200), event.clientX - left, event.clientY - top);
    else moves.by(-(event.shiftKey ? event.deltaY : event.deltaX), event.shiftKey ? 0 : -event.deltaY);
  };
  picture.addEventListener("wheel", turned, { passive: false });
}

/** Copy a text; whether that was allowed. */
export async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // a page without the right to
  }
}

export function download(content: Blob, name: string): void {
  const link = element("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
