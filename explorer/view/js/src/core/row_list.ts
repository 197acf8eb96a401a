// A list of any length of which only what is in sight is in the document.

import { dataAt, element, hasFocus, onKey, onParts } from "./dom";

const HEIGHT = 19;
const EXTRA = 8;
const TALLEST = 8_000_000; // pixels: browsers stop counting a little above 16 million

export class Rows {
  readonly root: HTMLElement;
  readonly #body = element("div.body");
  readonly #space = element("div.space", this.#body);
  #drawn = new Map<number, HTMLElement>();
  #total = 0;
  #ratio = 1; // of the real height to the scrollable one, above TALLEST
  #at = -1; // the row that the keyboard is on
  #hadFocus = false; // one of the rows, until they were cleared

  constructor(
    className: string,
    private readonly draw: (index: number) => HTMLElement,
    role?: string,
  ) {
    this.root = element("div", { class: `rows ${className}`, tabindex: "0", ...(role && { role }) }, this.#space);
    onKey(this.root, (event) => this.#act(event));
    this.root.addEventListener("pointerdown", (event) => (this.#at = Number(dataAt(event, "row") ?? this.#at)));
    this.root.addEventListener("scroll", () => this.#paint());
    new ResizeObserver(() => this.#paint()).observe(this.root);
  }

  /** Choose what a row stands for by a click that selects no text; preview it while the pointer is over it. */
  follow<T>(of: (row: number) => T | undefined, choose: (thing: T) => void, preview: (thing?: T) => void): void {
    const at = (event: Event) => {
      const row = dataAt(event, "row");
      return row === undefined ? undefined : of(Number(row));
    };
    onParts(this.root, at, (thing) => String(getSelection()) || choose(thing), preview);
  }

  reset(total: number): void {
    this.#total = total;
    this.#at = -1;
    const height = total * HEIGHT;
    this.#ratio = Math.max(height / TALLEST, 1);
    this.#space.style.height = `${height / this.#ratio}px`;
    this.clear();
    this.#paint();
  }

  clear(): void {
    this.#hadFocus = hasFocus(this.#body);
    this.#body.replaceChildren();
    this.#drawn.clear();
  }

  /** Mark the rows that are drawn, and draw none anew: for what changes with every move of the pointer. */
  each(mark: (row: HTMLElement, index: number) => void): void {
    for (const [index, row] of this.#drawn) mark(row, index);
  }

  /** Draw the rows in sight again where they are. */
  redraw(): void {
    this.clear();
    this.#paint();
  }

  show(index: number): void {
    const top = (index * HEIGHT) / this.#ratio;
    const { scrollTop, clientHeight } = this.root;
    if (top < scrollTop || top > scrollTop + clientHeight - 2 * HEIGHT)
      this.root.scrollTop = Math.max(top - clientHeight / 3, 0);
    this.#paint();
  }

  #paint(): void {
    const top = this.root.scrollTop * this.#ratio;
    const from = Math.max(Math.floor(top / HEIGHT) - EXTRA, 0);
    const to = Math.min(Math.ceil((top + this.root.clientHeight) / HEIGHT) + EXTRA, this.#total);
    this.#body.style.transform = `translateY(${from * HEIGHT - top + this.root.scrollTop}px)`;
    const hadFocus = this.#hadFocus || hasFocus(this.#body);
    this.#hadFocus = false;
    const next = new Map<number, HTMLElement>();
    for (let i = from; i < to; i++) next.set(i, this.#drawn.get(i) ?? this.draw(i));
    this.#body.replaceChildren(...next.values());
    this.#drawn = next;
    this.#mark();
    // What had it may have been drawn anew: without this, the keyboard would be nowhere.
    if (hadFocus) (next.get(this.#at) ?? this.root).focus({ preventScroll: true });
  }

  #mark(): void {
    for (const [index, row] of this.#drawn) {
      row.classList.toggle("at", index === this.#at);
      row.tabIndex = -1;
    }
  }

  /** Arrows go from row to row, as the pointer does; Enter is a click. */
  #act({ key }: KeyboardEvent): (() => void) | undefined {
    const row = this.#drawn.get(this.#at);
    if (row && (key === "Enter" || key === " ")) return () => row.click();
    const page = Math.max(Math.floor(this.root.clientHeight / HEIGHT) - 1, 1);
    const ends = { Home: -this.#total, End: this.#total };
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, ...ends };
    const step = steps[key];
    if (step === undefined || !this.#total) return undefined;
    return () => {
      this.#at = Math.min(Math.max(this.#at + step, 0), this.#total - 1);
      this.show(this.#at);
      this.#mark();
      const next = this.#drawn.get(this.#at);
      next?.focus({ preventScroll: true });
      next?.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    };
  }
}
