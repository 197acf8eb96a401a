// The link to Python, where the kernel is alive: it opens what was compiled below the profile.

import { type Answer, type Model, NO_KERNEL, onModel, showAnswer } from "../core/kernel_link";
import { button } from "../core/parts";
import { box } from "./format";

export class Wire {
  readonly slot = box("slot");
  #requests = 0;
  #waiting?: (answer: Answer) => void;
  #model: Model | undefined;
  readonly #answered = (answer: Answer) => {
    if (answer.of === `${this.#requests}`) this.#waiting?.(answer);
  };

  constructor(
    root: HTMLElement,
    private readonly id: string,
    private readonly changed: () => void,
  ) {
    onModel(root, id, (model) => this.#follow(model));
  }

  get isLive(): boolean {
    return this.#model !== undefined;
  }

  #follow(model: Model | undefined): void {
    if (model === this.#model) return;
    this.#model?.off("msg:custom", this.#answered);
    this.#model = model;
    model?.on("msg:custom", this.#answered);
    if (model) this.changed();
  }

  /** A button that opens the program of a kernel in the viewer, with its times. */
  button(program: number, label: string): HTMLElement {
    const node = button({ class: "pf-open" }, () => void this.#open(node, program), label);
    return node;
  }

  async #open(from: HTMLElement, program: number): Promise<void> {
    const isShown = await showAnswer(from, this.#request(program), this.slot, "pf-mute");
    if (isShown) this.slot.scrollIntoView({ block: "nearest" });
  }

  #request(program: number): Promise<Answer> {
    const of = `${++this.#requests}`;
    return new Promise((resolve) => {
      this.#waiting = resolve;
      try {
        this.#model!.send({ ask: "capture", of, program });
      } catch {
        window.explorerModels?.delete(this.id); // its kernel is gone
        this.#model = undefined;
        resolve({ failed: NO_KERNEL });
      }
    });
  }
}
