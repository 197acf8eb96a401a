// The field that finds and answers; what is behind it comes when somebody goes to it.

import { element } from "../core/dom";
import type { Session } from "../core/session";
import { addSheet } from "../core/theme";
import type { AskHeader, Plain } from "./answers";
import type { Ask } from "./ask";
import sheet from "./field.css";

addSheet(sheet);

/** Asks the kernel where one is alive; undefined where none answers. */
export interface AskKernel {
  question(text: string): Promise<Plain | undefined> | undefined;
  /** All that a file of the capture would carry. */
  answers(): Promise<AskHeader | undefined> | undefined;
}

export type AskParts = Record<"root" | "hits" | "steps" | "list", HTMLElement> & { field: HTMLInputElement };

let fields = 0; // made so far: their lists have ids

export class AskField {
  readonly root: HTMLElement;
  readonly #parts: AskParts;
  #ask: Ask | undefined;
  #loading: Promise<Ask | undefined> | undefined;

  constructor(
    private readonly session: Session,
    private readonly reveal: (node: number) => void,
    private readonly kernel: AskKernel,
  ) {
    const id = `explorer-ask-${++fields}`;
    const list = element("div.ask-list", { id, role: "listbox", "aria-label": "questions", hidden: "" });
    const field = element("input", {
      ...{ type: "search", role: "combobox", spellcheck: "false", autocomplete: "off" },
      ...{ placeholder: "ask or find: why transposes", "aria-label": "ask or find" },
      ...{ "aria-expanded": "false", "aria-controls": id, "aria-autocomplete": "list" },
    });
    const hits = element("span.hits", { role: "status" });
    const steps = element("span.hit-steps", { hidden: "" });
    const about = { role: "search", "aria-label": `in ${session.capture.header.function}` };
    this.root = element("div.ask", about, field, element("kbd", "Ctrl K"), hits, steps, list);
    this.#parts = { root: this.root, field, hits, steps, list };
    field.addEventListener("focus", () => void this.#loaded());
    field.addEventListener("keydown", (event) => void this.#await(event));
  }

  focus(): void {
    this.#parts.field.focus();
    this.#parts.field.select();
  }

  forget(): void {
    this.#ask?.forget();
  }

  step = (by: number): boolean => this.#ask?.step(by) ?? false;

  async find(text: string): Promise<void> {
    (await this.#loaded())?.find(text);
  }

  #loaded = (): Promise<Ask | undefined> => (this.#loading ??= this.#load());

  async #load(): Promise<Ask | undefined> {
    try {
      const { Ask } = await import("./ask");
      this.#parts.list.hidden = false;
      this.#ask = new Ask(this.session, this.reveal, this.#parts, this.kernel);
    } catch (error) {
      this.#parts.hits.textContent = error instanceof Error ? error.message : String(error);
      this.#loading = undefined; // another output may bring it
    }
    return this.#ask;
  }

  /** A key that was pressed before the code was there is pressed again. */
  async #await(event: KeyboardEvent): Promise<void> {
    if (this.#ask) return;
    event.stopPropagation();
    const { key, shiftKey } = event;
    if (!/^(Enter|Escape|Arrow(Up|Down))$/.test(key)) return;
    event.preventDefault();
    if (await this.#loaded())
      this.#parts.field.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true }));
  }
}
