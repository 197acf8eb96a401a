// The place of the panes: side by side, the details below where it is narrow, all one below the other on a phone; and
// the whole screen. The bars between panes are pulled with the pointer, moved with the arrows, and remembered.

import { button, element, onKey } from "../core/dom";
import { recalled, remember } from "../core/theme";

const LARGE = 5; // steps of an arrow with shift
// Pixels: below, the details have no column of their own; below, the source hasn't either.
const WIDE = 820;
const SIDE_BY_SIDE = 560;
const [ROUND, GAP] = [200, 16]; // pixels of what else is in a document of one view; around it
const HEIGHTS = [300, 2000] as const;

interface Split {
  /** Of the property that is set, `--source` for `source`, and of what is remembered. */
  name: string;
  label: string;
  bounds: readonly [least: number, most: number];
  /** The pane whose share of the whole is set, in percent; the whole's own height in pixels where there is none. */
  pane?: HTMLElement;
  /** Its size counts from the right or from below. */
  fromEnd?: boolean;
  /** Whether it lies between a pane above and one below. */
  across(): boolean;
}

/** A separator, whose value is the size of the pane that it is named for. */
class Splitter {
  readonly root: HTMLElement;

  constructor(
    private readonly whole: HTMLElement,
    private readonly split: Split,
    private readonly moved: () => void,
  ) {
    const { name, label, bounds, pane, fromEnd } = split;
    const values = { "aria-valuemin": bounds[0], "aria-valuemax": bounds[1] };
    const title = `${label}: drag it, or use the arrow keys; Enter resets it`;
    const about = { role: "separator", tabindex: "0", "aria-label": label, title, ...values };
    this.root = element(`div.splitter.splitter-${name}`, about);
    this.root.addEventListener("pointerdown", (event) => {
      this.root.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    this.root.addEventListener("pointermove", (event) => {
      if (this.root.hasPointerCapture(event.pointerId)) this.#set(this.#at(event));
    });
    this.root.addEventListener("dblclick", () => this.#set(undefined));
    onKey(this.root, ({ key, shiftKey }) => {
      const [more, less] = split.across() ? ["ArrowDown", "ArrowUp"] : ["ArrowRight", "ArrowLeft"];
      const by = (pane ? 2 : 20) * (shiftKey ? LARGE : 1) * (fromEnd ? -1 : 1);
      const sizes = { [more!]: this.#size + by, [less!]: this.#size - by, Home: bounds[0], End: bounds[1] };
      return key in sizes || key === "Enter" ? () => this.#set(sizes[key]) : undefined;
    });
  }

  /** Split as it was left. */
  show(): void {
    const { name, pane, across } = this.split;
    const size = this.#remembered;
    if (size === undefined) this.whole.style.removeProperty(`--${name}`);
    else this.whole.style.setProperty(`--${name}`, `${size}${pane ? "%" : "px"}`);
    this.root.setAttribute("aria-orientation", across() ? "horizontal" : "vertical");
    this.root.setAttribute("aria-valuenow", String(Math.round(this.#size)));
  }

  get #remembered(): number | undefined {
    return recalled(this.#key, ...this.split.bounds);
  }

  get #size(): number {
    const { whole } = this;
    const { pane, across } = this.split;
    if (!pane) return this.#remembered ?? whole.offsetHeight;
    const share = across() ? pane.offsetHeight / whole.offsetHeight : pane.offsetWidth / whole.offsetWidth;
    return this.#remembered ?? 100 * share;
  }

  /** A column's share says nothing of a row's. */
  get #key(): string {
    return `${this.split.name}${this.split.across() ? ".across" : ""}`;
  }

  #set(size: number | undefined): void {
    const [least, most] = this.split.bounds;
    const rounded = size === undefined ? size : Math.round(Math.min(Math.max(size, least), most) * 10) / 10;
    remember(this.#key, rounded);
    this.show();
    this.moved();
  }

  #at({ clientX, clientY }: PointerEvent): number {
    const { pane, fromEnd, across } = this.split;
    const { left, right, top, bottom, width, height } = this.whole.getBoundingClientRect();
    const [start, end, at, all] = across() ? [top, bottom, clientY, height] : [left, right, clientX, width];
    const size = fromEnd ? end - at : at - start;
    return pane ? (size / all) * 100 : size;
  }
}

interface Parts extends Record<"head" | "tools" | "middle" | "sheet", HTMLElement> {
  /** Nothing where no text is known: a module from a file, its sources elsewhere. */
  source: HTMLElement | undefined;
}

export class Frame {
  readonly root = element("div.panes");
  /** Below the panes: pulls all of them. */
  readonly height: HTMLElement;
  readonly #splitters: Splitter[] = [];
  readonly #observer = new ResizeObserver(() => this.#arrange());

  constructor(
    private readonly parts: Parts,
    private readonly moved: () => void,
  ) {
    const { head, tools, middle, source, sheet } = parts;
    const split = (given: Split): HTMLElement => {
      const splitter = new Splitter(this.root, given, moved);
      this.#splitters.push(splitter);
      return splitter.root;
    };
    const isStacked = () => this.root.dataset.layout === "stacked";
    const isAcross = () => this.root.dataset.layout !== "wide";
    const label = "size of the details";
    // What is looked at comes first in the document: Tab gets to it before it goes through every line of the source.
    this.root.append(head, middle, tools);
    if (source) {
      const bounds = [10, 75] as const;
      const given = { name: "source", label: "size of the source", bounds, pane: source, across: isStacked };
      this.root.append(split(given), source);
    }
    this.root.append(
      split({ name: "details", label, bounds: [12, 60], pane: sheet, fromEnd: true, across: isAcross }),
      sheet,
    );
    this.height = split({ name: "height", label: "height of the view", bounds: HEIGHTS, across: () => true });
    this.#observer.observe(this.root);
  }

  dispose(): void {
    this.#observer.disconnect();
  }

  /** As high as is needed, at most as high as it is unasked; a height that was set by hand stays. */
  shrink(needed: number): void {
    if (recalled("height.across", ...HEIGHTS) === undefined && needed < this.root.clientHeight)
      this.root.style.setProperty("--height", `${needed}px`);
  }

  /** In a frame of its own that doesn't grow with it, as marimo's, no higher than that: the rest would be cut off. */
  fitInto(view: HTMLElement): void {
    const [whole, document_] = [view.offsetHeight, document.body.scrollHeight];
    const isAlone = window !== window.parent && document_ >= whole && document_ < whole + ROUND;
    const over = whole + GAP - window.innerHeight;
    if (isAlone && over > 0)
      this.root.style.setProperty("--height", `${Math.max(this.root.offsetHeight - over, HEIGHTS[0])}px`);
  }

  #arrange(): void {
    const width = this.root.clientWidth;
    const layout = width >= WIDE ? "wide" : width >= SIDE_BY_SIDE || !this.parts.source ? "narrow" : "stacked";
    if (!width || layout === this.root.dataset.layout) return;
    this.root.dataset.layout = layout;
    for (const splitter of this.#splitters) splitter.show();
    this.moved();
  }
}

/** The view on the whole screen; where the page may not have that, on all of the window or the output. */
export class FullScreen {
  isOn = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly changed: () => void,
  ) {
    root.addEventListener("fullscreenchange", () => this.#element || this.#show(false));
  }

  async toggle(): Promise<void> {
    if (this.isOn) return this.leave();
    this.#show(true);
    // Denied, as in most sandboxed frames: it fills what it can without being asked.
    await this.root.requestFullscreen?.().catch(() => {});
  }

  leave(): void {
    if (this.#element === this.root) void document.exitFullscreen();
    this.#show(false);
  }

  get #element(): Element | null {
    return (this.root.getRootNode() as Document | ShadowRoot).fullscreenElement ?? null;
  }

  #show(isOn: boolean): void {
    if (this.isOn === isOn) return;
    this.isOn = isOn;
    this.root.classList.toggle("full", isOn);
    this.changed();
  }
}

export class Sheet {
  readonly root: HTMLElement;
  readonly #head = button({ class: "sheet-head" }, () => {
    this.#wasClosed = this.#isOpen;
    this.#open(!this.#isOpen);
  });
  #isOpen = false;
  /** By hand: what is chosen then no longer opens it. */
  #wasClosed = false;

  constructor(
    private readonly details: HTMLElement,
    private readonly moved: () => void,
  ) {
    this.root = element("div.sheet", this.#head, details);
    this.#say();
  }

  /** The details were filled anew, with what was chosen or with the program. */
  filled(isChosen: boolean): void {
    if (isChosen && !this.#isOpen && !this.#wasClosed) this.#open(true);
    this.#say();
  }

  #open(isOpen: boolean): void {
    this.#isOpen = isOpen;
    this.root.classList.toggle("open", isOpen);
    this.#say();
    this.moved();
  }

  #say(): void {
    const [title, note] = [".title", ".note"].map((part) => this.details.querySelector(part)?.textContent ?? "");
    this.#head.setAttribute("aria-expanded", String(this.#isOpen));
    const parts = this.#isOpen ? [element("b", "details")] : [element("b", title!), element("span", note!)];
    this.#head.replaceChildren(...parts, element("i", { "aria-hidden": "true" }, this.#isOpen ? "▾" : "▴"));
  }
}
