// The frame of the details: beside the graph, or where there is no place a sheet below it that opens and closes.

import { element } from "../core/dom";
import { button } from "../core/parts";

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
