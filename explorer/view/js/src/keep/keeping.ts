// The viewer's side of keeping: the code that does it comes when something was chosen, or is there to be opened.

import type { Steering } from "../core/kernel_link";
import { type Change, NOTHING } from "../core/session";
import type { Tool } from "../viewer/bar";
import type { Bookmark } from "./bookmark";
import type { Keeper, View } from "./keeper";
import { isOwnPage, nameOf, storedPlace } from "./stored";

export class Keeping {
  #keeper: Keeper | undefined;
  #making: Promise<Keeper | undefined> | undefined;
  #isSteered = false;

  constructor(
    private readonly view: View,
    /** What is shown is no capture that anybody keeps. */
    private readonly isTrial: boolean,
  ) {
    const { session, details } = view;
    session.listen((change: Change) => {
      const isPlace = change === "focus" ? session.focus !== NOTHING : /^(stage|mode|open)$/.test(change);
      if (isPlace && !this.#keeper) void this.#made().then((keeper) => keeper?.first(details));
    });
  }

  dispose(): void {
    this.#keeper?.dispose();
  }

  /** Where one is, as JSON; undefined where nobody has moved. */
  get bookmark(): string | undefined {
    return this.#keeper && JSON.stringify(this.#keeper.bookmark);
  }

  /** Open where one was, or where Python wants it: a bookmark as JSON. */
  async begin(given = ""): Promise<void> {
    const { session, id } = this.view;
    const isAddressed = isOwnPage(id) && location.hash;
    if (!given && !isAddressed && !storedPlace(nameOf(session.capture.header, id))) return;
    try {
      await (await this.#made())?.begin(given ? (JSON.parse(given) as Bookmark) : {});
    } catch {
      // Nothing of a place that can't be read keeps the view from opening.
    }
  }

  /** What Python set anew; gives what else is to be shown: not its stage, where one is back at another. */
  show(changed: Steering): Steering {
    const { bookmark, notes, highlight, stage: _, ...others } = changed;
    if (bookmark || notes?.length || this.#keeper)
      void this.#made().then((keeper) => {
        if (bookmark) keeper?.assign(bookmark);
        if (notes) keeper?.take(notes);
      });
    const isBack = this.#keeper?.hasBegun && !this.#isSteered && !highlight;
    this.#isSteered = true;
    return isBack ? others : changed;
  }

  /** Add to the details what was written. */
  fill(): void {
    this.#keeper?.fill(this.view.details);
  }

  get tools(): Tool[] {
    if (!isOwnPage(this.view.id)) return [];
    const copy = async (button: HTMLElement) => {
      const said = await (await this.#made())?.copyLink();
      const text = button.textContent;
      button.textContent = said ?? text;
      setTimeout(() => (button.textContent = text), 2000);
    };
    const label = "copy the address that opens this page where you are";
    return [{ label, text: "copy link", act: ({ currentTarget }) => void copy(currentTarget as HTMLElement) }];
  }

  #made = (): Promise<Keeper | undefined> => (this.#making ??= this.#make());

  async #make(): Promise<Keeper | undefined> {
    const code = this.isTrial ? undefined : await import("./keeper").catch(() => undefined);
    if (code) this.#keeper = new code.Keeper(this.view);
    else this.#making = undefined; // it was in an output that is gone: the kernel may be free next time
    return this.#keeper;
  }
}
