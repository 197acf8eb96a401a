// The button that saves the picture in sight, with a menu of formats.

import { element } from "../core/dom";

export type Format = "svg" | "png";

/** A button with a menu of the two formats; `find` gives the picture that is shown, if one is. */
export class SaveMenu {
  readonly root: HTMLElement;
  readonly #button = element(
    "button",
    {
      type: "button",
      class: "tool",
      title: "save the picture",
      "aria-label": "save the picture",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
    },
    "⤓",
  );
  readonly #menu = element("div.save-menu", { role: "menu", "aria-label": "save the picture as" });

  constructor(
    private readonly find: () => SVGSVGElement | null,
    private readonly name: () => string,
  ) {
    for (const format of ["svg", "png"] as const) {
      const item = element(
        "button",
        { type: "button", role: "menuitem", "data-format": format, tabindex: "-1" },
        format.toUpperCase(),
      );
      item.addEventListener("click", () => {
        this.#open(false);
        void this.#save(format);
      });
      this.#menu.append(item);
    }
    this.#menu.hidden = true;
    this.root = element("span.save", this.#button, this.#menu);
    this.#button.addEventListener("click", () => this.#open(this.#menu.hidden === true));
    this.root.addEventListener("keydown", (event) => this.#key(event));
    this.root.addEventListener("focusout", (event) => {
      if (!this.root.contains(event.relatedTarget as Node | null)) this.#open(false);
    });
  }

  /** Where nothing is drawn there is nothing to save. */
  update(): void {
    this.root.hidden = !this.find();
  }

  #open(isOpen: boolean): void {
    this.#menu.hidden = !isOpen;
    this.#button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) (this.#menu.firstElementChild as HTMLElement).focus();
  }

  #key(event: KeyboardEvent): void {
    const items = [...this.#menu.children] as HTMLElement[];
    const at = items.indexOf(event.target as HTMLElement);
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape" && !this.#menu.hidden) {
      this.#open(false);
      this.#button.focus();
    } else if (step && at >= 0) items[(at + step + items.length) % items.length]!.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  async #save(format: Format): Promise<void> {
    const picture = this.find();
    if (!picture) return;
    const { savePicture } = await import("./save_picture");
    await savePicture(picture, format, this.name());
  }
}
