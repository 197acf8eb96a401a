// The bars between panes: pulled with the pointer, moved with the arrows, and remembered.

import { element } from "../core/dom";
import { recalled, remember } from "../core/remembered";

const LARGE = 5; // steps of an arrow with shift

export interface Split {
  /** Of the property that is set, `--source` for `source`, and of what is remembered. */
  name: string;
  label: string;
  /** What it splits: its shares are percent of this; of the height it sets pixels. */
  whole: HTMLElement;
  /** Percent or pixels. */
  unit: "%" | "px";
  bounds: readonly [least: number, most: number];
  step: number;
  /** Its size counts from the right or from below. */
  fromEnd?: boolean;
  /** Whether it lies between a pane above and one below. */
  across(): boolean;
  /** What the size is as long as nothing is set. */
  unset(): number;
  moved(): void;
}

/** A separator, whose value is the size of the pane that it is named for. */
export class Splitter {
  readonly root: HTMLElement;

  constructor(private readonly split: Split) {
    const { name, label, bounds, step, fromEnd } = split;
    this.root = element("div", {
      class: `splitter splitter-${name}`,
      role: "separator",
      tabindex: "0",
      "aria-label": label,
      title: `${label}: pull it, or use the arrows; Enter sets it back`,
      "aria-valuemin": bounds[0],
      "aria-valuemax": bounds[1],
    });
    this.root.addEventListener("pointerdown", (event) => {
      this.root.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    this.root.addEventListener("pointermove", (event) => {
      if (this.root.hasPointerCapture(event.pointerId)) this.#set(this.#at(event));
    });
    this.root.addEventListener("dblclick", () => this.#set(undefined));
    this.root.addEventListener("keydown", (event) => {
      const [more, less] = split.across() ? ["ArrowDown", "ArrowUp"] : ["ArrowRight", "ArrowLeft"];
      const by = step * (event.shiftKey ? LARGE : 1) * (fromEnd ? -1 : 1);
      if (event.key === more) this.#set(this.#size + by);
      else if (event.key === less) this.#set(this.#size - by);
      else if (event.key === "Home") this.#set(bounds[0]);
      else if (event.key === "End") this.#set(bounds[1]);
      else if (event.key === "Enter") this.#set(undefined);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /** Split as it was left. */
  show(): void {
    const { name, whole, unit, across } = this.split;
    const size = this.#remembered;
    if (size === undefined) whole.style.removeProperty(`--${name}`);
    else whole.style.setProperty(`--${name}`, `${size}${unit}`);
    this.root.setAttribute("aria-orientation", across() ? "horizontal" : "vertical");
    this.root.setAttribute("aria-valuenow", String(Math.round(this.#size)));
  }

  get #remembered(): number | undefined {
    return recalled(this.#key, ...this.split.bounds);
  }

  get #size(): number {
    return this.#remembered ?? this.split.unset();
  }

  /** A column's share says nothing of a row's. */
  get #key(): string {
    return `${this.split.name}${this.split.across() ? ".across" : ""}`;
  }

  #set(size: number | undefined): void {
    const [least, most] = this.split.bounds;
    const rounded = size === undefined ? undefined : Math.round(Math.min(Math.max(size, least), most) * 10) / 10;
    remember(this.#key, rounded);
    this.show();
    this.split.moved();
  }

  #at({ clientX, clientY }: PointerEvent): number {
    const { whole, unit, fromEnd, across } = this.split;
    const { left, right, top, bottom, width, height } = whole.getBoundingClientRect();
    const [start, end, at, all] = across() ? [top, bottom, clientY, height] : [left, right, clientX, width];
    const size = fromEnd ? end - at : at - start;
    return unit === "px" ? size : (size / all) * 100;
  }
}
