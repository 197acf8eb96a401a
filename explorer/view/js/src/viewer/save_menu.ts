// The button that saves the picture in sight, with a menu of formats.

import { button, element, popup, rove } from "../core/dom";
import type { Session } from "../core/session";

const FORMATS = ["svg", "png"] as const;
export type Format = (typeof FORMATS)[number];

/** A button with a menu of the two formats; `find` gives the picture that is shown, if one is. */
export class SaveMenu {
  readonly root: HTMLElement;

  constructor(
    private readonly find: () => SVGSVGElement | null,
    private readonly session: Session,
  ) {
    const title = "save the picture";
    const labels = { type: "button", title, "aria-label": title, "aria-haspopup": "menu" };
    const opener = element("button.tool", labels, "⤓");
    const items = FORMATS.map((format) => {
      const act = () => {
        open(false);
        void this.#save(format);
      };
      return button({ role: "menuitem", "data-format": format }, act, format.toUpperCase());
    });
    const menu = element("div.save-menu", { role: "menu", "aria-label": `${title} as` }, ...items);
    rove(menu, "button");
    this.root = element("span.save", opener, menu);
    const open = popup(opener, this.root, (isOpen) => {
      menu.hidden = !isOpen;
      if (isOpen) items[0]!.focus();
    });
  }

  /** Where nothing is drawn there is nothing to save. */
  update(): void {
    this.root.hidden = !this.find();
  }

  async #save(format: Format): Promise<void> {
    const picture = this.find();
    if (!picture) return;
    const { savePicture } = await import("./save_picture");
    const { capture, stage, mode } = this.session;
    const name = `${capture.header.function}-${stage.name}-${mode}`;
    await savePicture(picture, format, name.replace(/[^\w.-]+/g, "_"));
  }
}
