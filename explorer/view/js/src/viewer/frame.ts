// The place of the panes: side by side, the details below where it is narrow, all one below the other on a phone.

import { element } from "../core/dom";
import { recalled } from "../core/remembered";
import { Splitter } from "./splitter";

// Pixels: below, the details have no column of their own; below, the source hasn't either.
const WIDE = 820;
const SIDE_BY_SIDE = 560;
const [ROUND, GAP] = [200, 16]; // pixels of what else is in a document of one view; around it
const HEIGHTS = [300, 2000] as const;

interface Parts {
  head: HTMLElement;
  tools: HTMLElement;
  middle: HTMLElement;
  /** Nothing where no text is known: a module from a file, its sources elsewhere. */
  source?: HTMLElement;
  sheet: HTMLElement;
}

export class Frame {
  readonly root = element("div.panes");
  /** Below the panes: pulls all of them. */
  readonly height: Splitter;
  readonly #splitters: Splitter[] = [];
  readonly #observer = new ResizeObserver(() => this.#arrange());

  constructor(
    private readonly parts: Parts,
    private readonly moved: () => void,
  ) {
    const { head, tools, middle, source, sheet } = parts;
    const whole = this.root;
    const common = { whole, moved, unit: "%", step: 2 } as const;
    const share = (pane: HTMLElement, isDown: boolean) => () =>
      isDown ? (100 * pane.offsetHeight) / whole.offsetHeight : (100 * pane.offsetWidth) / whole.offsetWidth;
    const isStacked = () => whole.dataset.layout === "stacked";
    const isWide = () => whole.dataset.layout === "wide";
    // What is looked at comes first in the document: Tab gets to it before it goes through every line of the source.
    this.root.append(head, middle, tools);
    if (source) {
      const bounds = [10, 75] as const;
      const unset = () => share(source, isStacked())();
      const split = { ...common, name: "source", label: "size of the source", bounds, across: isStacked, unset };
      const splitter = new Splitter(split);
      this.#splitters.push(splitter);
      this.root.append(splitter.root, source);
    }
    const splitter = new Splitter({
      ...common,
      name: "details",
      label: "size of the details",
      bounds: [12, 60],
      fromEnd: true,
      across: () => !isWide(),
      unset: () => share(sheet, !isWide())(),
    });
    this.#splitters.push(splitter);
    this.root.append(splitter.root, sheet);
    this.height = new Splitter({
      ...common,
      name: "height",
      label: "height of the view",
      unit: "px",
      step: 20,
      bounds: HEIGHTS,
      across: () => true,
      unset: () => whole.offsetHeight,
      moved,
    });
    this.#observer.observe(whole);
  }

  dispose(): void {
    this.#observer.disconnect();
  }

  get isWide(): boolean {
    return this.root.dataset.layout === "wide";
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
    for (const splitter of [...this.#splitters, this.height]) splitter.show();
    this.moved();
  }
}
