// A list of any length of which only what is in sight is in the document.

import { element } from "./dom";

const HEIGHT = 19;
const EXTRA = 8;
const TALLEST = 8_000_000; // pixels: browsers stop counting a little above 16 million

export class Rows {
  readonly root: HTMLElement;
  private readonly space: HTMLElement;
  private readonly body: HTMLElement;
  private drawn = new Map<number, HTMLElement>();
  private total = 0;
  private ratio = 1; // of the real height to the scrollable one, above TALLEST

  constructor(
    className: string,
    private readonly draw: (index: number) => HTMLElement,
  ) {
    this.body = element("div", { class: "body" });
    this.space = element("div", { class: "space" }, this.body);
    this.root = element("div", { class: `rows ${className}`, tabindex: "0" }, this.space);
    this.root.addEventListener("scroll", () => this.paint());
    new ResizeObserver(() => this.paint()).observe(this.root);
  }

  reset(total: number): void {
    this.total = total;
    const height = total * HEIGHT;
    this.ratio = Math.max(height / TALLEST, 1);
    this.space.style.height = `${height / this.ratio}px`;
    this.clear();
    this.paint();
  }

  clear(): void {
    this.body.replaceChildren();
    this.drawn.clear();
  }

  /** Draw the rows in sight again where they are. */
  redraw(): void {
    this.clear();
    this.paint();
  }

  show(index: number): void {
    const top = (index * HEIGHT) / this.ratio;
    const { scrollTop, clientHeight } = this.root;
    if (top < scrollTop || top > scrollTop + clientHeight - 2 * HEIGHT) this.root.scrollTop = Math.max(top - clientHeight / 3, 0);
    this.paint();
  }

  private paint(): void {
    const top = this.root.scrollTop * this.ratio;
    const from = Math.max(Math.floor(top / HEIGHT) - EXTRA, 0);
    const to = Math.min(Math.ceil((top + this.root.clientHeight) / HEIGHT) + EXTRA, this.total);
    this.body.style.transform = `translateY(${from * HEIGHT - top + this.root.scrollTop}px)`;
    const next = new Map<number, HTMLElement>();
    for (let i = from; i < to; i++) next.set(i, this.drawn.get(i) ?? this.draw(i));
    this.body.replaceChildren(...next.values());
    this.drawn = next;
  }
}
