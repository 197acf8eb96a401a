// Asking Python for the text of a module that computes what one instruction computes.

import { type Model, onModel } from "../core/kernel_link";

/** What Python answers; see `LiveView.extract` in explorer/view/capture/live_view.py. */
interface Message {
  extracted?: string;
  module?: string;
}

const PATIENCE = 10_000; // milliseconds: a kernel that is busy for longer answers too late to be copied

/** Answers where a kernel lives; where none does, who asks has to do without. */
export class Extractor {
  #model: Model | undefined;
  readonly #stop: () => void;
  readonly #waiting = new Map<string, (module: string | undefined) => void>();
  readonly #heard = (message: Message) => {
    if (message.extracted !== undefined) this.#waiting.get(message.extracted)?.(message.module);
  };

  constructor(
    root: HTMLElement,
    id: string,
    model: Model | undefined,
    private readonly changed: () => void,
  ) {
    this.#stop = onModel(root, id, (model) => this.#follow(model), model);
  }

  get isLive(): boolean {
    return this.#model !== undefined;
  }

  /** The text of a module that computes a node of a stage and what is `height` steps before it, if Python gives it. */
  module(stage: string, node: number, height: number): Promise<string | undefined> {
    const key = `${stage}:${node}:${height}`;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#waiting.get(key)?.(undefined), PATIENCE);
      this.#waiting.set(key, (module) => {
        clearTimeout(timer);
        this.#waiting.delete(key);
        resolve(module);
      });
      this.#model?.send({ ask: "extract", key, stage, node, height });
    });
  }

  dispose(): void {
    this.#stop();
    this.#model?.off("msg:custom", this.#heard);
    this.#model = undefined;
  }

  #follow(model: Model | undefined): void {
    if (model === this.#model) return;
    this.#model?.off("msg:custom", this.#heard);
    this.#model = model;
    model?.on("msg:custom", this.#heard);
    this.changed();
  }
}
