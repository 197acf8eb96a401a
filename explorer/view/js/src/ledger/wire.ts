// The ledger's link to Python: explorer/view/ledger/link.py sends what is new, and answers requests.

import { type Answer, type Model, NO_KERNEL, onModel } from "../core/kernel_link";
import type { Call, Data, Message } from "./data";

/** Of which request an answer is; `since` has what the view lacked. */
interface LedgerAnswer extends Answer {
  since?: string;
}

export class Wire {
  #model: Model | undefined;
  readonly #updated = () => this.#take(this.#model?.get("update"));
  readonly #answered = (answer: LedgerAnswer) => this.#receive(answer);
  #requests = 0;
  #missing = false;
  readonly #waiting = new Map<Answer["of"], (answer: Answer) => void>();

  constructor(
    root: HTMLElement,
    private readonly id: string,
    private readonly data: Data,
    private readonly changed: () => void,
    own?: Model,
  ) {
    onModel(root, id, (model) => this.#follow(model), own);
  }

  get isLive(): boolean {
    return this.#model !== undefined;
  }

  #follow(model: Model | undefined): void {
    if (this.#model === model) return;
    this.#model?.off("change:update", this.#updated);
    this.#model?.off("msg:custom", this.#answered);
    this.#model = model;
    model?.on("change:update", this.#updated);
    model?.on("msg:custom", this.#answered);
    this.#updated();
  }

  #take(text: string | undefined): void {
    if (!text) return;
    const message = JSON.parse(text) as Message;
    if (message.status.now < this.data.status.now) return; // an output of a later time is here already
    if (this.data.take(message)) this.#missing = false;
    else if (!this.#missing) {
      this.#missing = true;
      this.#send({ ask: "since", sizes: message.epoch === this.data.epoch ? this.data.sizes : {} });
    }
    this.changed();
  }

  /** Request a call's capture, or its diff with the nearest earlier call. The kernel may be busy for long. */
  request(what: "capture" | "diff", call: Call): Promise<Answer> {
    const of = `${++this.#requests}`;
    return new Promise((resolve) => {
      this.#waiting.set(of, resolve);
      if (
        !this.#send({
          ask: what,
          of,
          call: call.number,
          process: call.process,
        })
      )
        resolve({ failed: NO_KERNEL });
    });
  }

  #receive(answer: LedgerAnswer): void {
    if (answer.since) this.#take(answer.since);
    const waiting = this.#waiting.get(answer.of);
    if (!waiting) return;
    this.#waiting.delete(answer.of);
    waiting(answer);
  }

  #send(message: unknown): boolean {
    try {
      this.#model?.send(message);
      return this.#model !== undefined;
    } catch {
      window.explorerModels?.delete(this.id); // its kernel is gone
      this.#model = undefined;
      return false;
    }
  }
}
