// A view's link to its kernel, whichever model stands for that now: what it sends, its answers, and requests of it.

import { type Answer, type Model, NO_KERNEL, onModel } from "./kernel_link";

interface Heard<A> {
  /** A kernel came, or went. */
  changed?(): void;
  /** Python wrote its output anew. */
  updated?(text: string): void;
  answered?(answer: A, buffers: DataView[]): void;
}

export class PythonLink<A extends Answer = Answer> {
  model: Model | undefined;
  /** End it. */
  readonly stop: () => void;
  #requests = 0;
  readonly #waiting = new Map<Answer["of"], (answer: Answer) => void>();
  readonly #updated = () => {
    const text = this.model?.get("update");
    if (text) this.heard.updated?.(text);
  };
  readonly #answered = (answer: A, buffers: DataView[]) => {
    this.heard.answered?.(answer, buffers);
    this.#waiting.get(answer.of)?.(answer);
    this.#waiting.delete(answer.of);
  };

  constructor(
    root: HTMLElement,
    private readonly id: string,
    private readonly heard: Heard<A>,
    own?: Model,
  ) {
    this.stop = onModel(root, id, (model) => this.#follow(model), own);
  }

  get isLive(): boolean {
    return this.model !== undefined;
  }

  #follow(model: Model | undefined): void {
    if (model === this.model) return;
    this.model?.off("change:update", this.#updated);
    this.model?.off("msg:custom", this.#answered);
    this.model = model;
    model?.on("change:update", this.#updated);
    model?.on("msg:custom", this.#answered);
    this.#updated();
    this.heard.changed?.();
  }

  /** The answer to a request; the kernel may be busy for long. */
  request(message: { ask: string } & Record<string, unknown>): Promise<Answer> {
    const of = `${++this.#requests}`;
    return new Promise((resolve) => {
      this.#waiting.set(of, resolve);
      if (!this.send({ ...message, of })) resolve({ failed: NO_KERNEL });
    });
  }

  send(message: unknown): boolean {
    try {
      this.model?.send(message);
    } catch {
      window.explorerModels?.delete(this.id);
      this.model = undefined;
    }
    return this.model !== undefined;
  }
}

/** A message that an output carries. */
export async function unpacked<T>(bytes: Uint8Array): Promise<T> {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text()) as T;
}
