// The link to Python, where a kernel is alive: explorer/view/ledger/live.py sends what is new, and answers.

import type { Model } from "../core/kernel_link";
import type { Call, Data, Message } from "./data";

interface Talking extends Omit<Model, "on"> {
  send(message: unknown): void;
  on(event: string, callback: (message: Answer) => void): void;
}

interface Answer {
  since?: string;
  /** Of which question, and what Python says to it: HTML as an output has it, or why there is none. */
  of?: string;
  html?: string;
  failed?: string;
}

export class Wire {
  #model: Talking | undefined;
  #asked = 0;
  #missing = false;
  readonly #waiting = new Map<string, (answer: Answer) => void>();

  constructor(
    private readonly id: string,
    private readonly data: Data,
    private readonly changed: () => void,
    own?: Model,
  ) {
    const registered = (event: Event) => {
      if ((event as CustomEvent<string>).detail === id) this.#follow(window.explorerModels?.get(id));
    };
    window.addEventListener("explorer-wire", registered);
    this.#follow(own ?? window.explorerModels?.get(id));
  }

  get isLive(): boolean {
    return this.#model !== undefined;
  }

  #follow(found: Model | undefined): void {
    if (!found || this.#model === (found as unknown as Talking)) return;
    this.#model = found as unknown as Talking;
    this.#model.on("change:update", () => this.#take(String(this.#model!.get("update"))));
    this.#model.on("msg:custom", (answer) => this.#answered(answer));
    this.#take(String(this.#model.get("update") ?? ""));
  }

  #take(text: string): void {
    if (!text) return;
    const message = JSON.parse(text) as Message;
    if (message.told.now < this.data.told.now) return; // an output of a later time is here already
    if (this.data.take(message)) this.#missing = false;
    else if (!this.#missing) {
      this.#missing = true;
      this.#send({ ask: "since", sizes: message.epoch === this.data.epoch ? this.data.sizes : {} });
    }
    this.changed();
  }

  /** Ask for a call's capture, or for its diff with the nearest earlier call. The kernel may be busy for long. */
  ask(what: "capture" | "diff", call: Call): Promise<Answer> {
    const of = `${++this.#asked}`;
    return new Promise((resolve) => {
      this.#waiting.set(of, resolve);
      if (
        !this.#send({
          ask: what,
          of,
          call: call.number,
          process: call.process,
          viewers: [...(window.explorerViewers?.keys() ?? [])],
        })
      )
        resolve({ failed: "No kernel answers: run the notebook again." });
    });
  }

  #answered(answer: Answer): void {
    if (answer.since) this.#take(answer.since);
    const waiting = answer.of === undefined ? undefined : this.#waiting.get(answer.of);
    if (!waiting) return;
    this.#waiting.delete(answer.of!);
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

declare global {
  interface Window {
    explorerViewers?: Map<string, unknown>;
  }
}
