// A view's link to its kernel, whichever model stands for that now: what it sends, its answers, and requests of it.

import { type Answer, type Model, NO_KERNEL, onModel } from "./kernel_link";

interface Heard<A> {
  /** A kernel came, or went. */
  changed?(model: Model | undefined): void;
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

  constructor(
    root: HTMLElement,
    private readonly id: string,
    heard: Heard<A>,
    own?: Model,
  ) {
    const updated = () => {
      const text = this.model?.get("update");
      if (text) heard.updated?.(text);
    };
    const answered = (answer: A, buffers: DataView[]) => {
      heard.answered?.(answer, buffers);
      this.#waiting.get(answer.of)?.(answer);
      this.#waiting.delete(answer.of);
    };
    const follow = (model: Model | undefined) => {
      this.model = model;
      updated();
      heard.changed?.(model);
    };
    this.stop = onModel(root, id, follow, own, { "change:update": updated, "msg:custom": answered });
  }

  get isLive(): boolean {
    return this.model !== undefined;
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
