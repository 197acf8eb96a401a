// Asking Python for what a display didn't wait for, and for the capture that comes of it.

import { element } from "../core/dom";
import { type Model, onModel } from "../core/kernel_link";
import { secondsText } from "../core/labels";

/** What Python says of it; see `LiveView.record` in explorer/view/capture/live_view.py. */
interface Message {
  recording?: "started" | "done" | "failed";
  /** About how many seconds it takes. */
  expected?: number;
  why?: string;
}

const PASSES = {
  ask: "record",
  text: "record the passes",
  title: "Compile again, next to your own program, and record each compiler pass",
};
const CODE = {
  ask: "machine-code",
  text: "read the machine code",
  title: "Compile again, next to your own program, and read the machine code of each kernel",
};
const TICK = 500; // milliseconds

/** A button where a kernel can compile for it, progress while it does, nothing else. */
export class Recorder {
  readonly root = element("span.record", { role: "status" });
  #model: Model | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #hasAsked = false;
  readonly #stop: () => void;
  readonly #shown = () => this.#invite();
  readonly #heard = (message: Message, buffers: DataView[]) => this.#receive(message, buffers);

  constructor(
    root: HTMLElement,
    id: string,
    model: Model | undefined,
    private readonly recorded: (wire: Uint8Array) => void,
  ) {
    this.#stop = onModel(root, id, (model) => this.#follow(model), model);
  }

  dispose(): void {
    clearInterval(this.#timer);
    this.#follow(undefined);
    this.#stop();
  }

  #follow(model: Model | undefined): void {
    if (model === this.#model) return;
    this.#model?.off("change:shown", this.#shown);
    this.#model?.off("msg:custom", this.#heard);
    this.#model = model;
    model?.on("change:shown", this.#shown);
    model?.on("msg:custom", this.#heard);
    this.#invite();
  }

  #invite(): void {
    if (this.#timer !== undefined) return;
    const { reads, records, codes } = this.#model?.get("shown") ?? {};
    if (reads && !this.#hasAsked) {
      this.#hasAsked = true;
      this.#model?.send({ ask: "record" });
    }
    const passes = records === undefined ? [] : [this.#button(PASSES, records)];
    this.root.replaceChildren(...passes, ...(codes ? [this.#button(CODE)] : []));
  }

  #button({ ask, text, title }: typeof PASSES, expected = 0): HTMLElement {
    const button = element(
      "button",
      { type: "button", title },
      text + (expected ? ` (≈ ${secondsText(expected)})` : ""),
    );
    button.addEventListener("click", () => this.#model?.send({ ask }));
    return button;
  }

  #receive({ recording, expected, why }: Message, buffers: DataView[]): void {
    if (recording === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    const wire = buffers[0];
    if (recording === "started") this.#progress(expected ?? 0);
    else if (recording === "failed") this.root.replaceChildren(`not recorded: ${why ?? "the kernel gave no reason"}`);
    else if (wire) this.recorded(new Uint8Array(wire.buffer, wire.byteOffset, wire.byteLength));
  }

  #progress(expected: number): void {
    const start = performance.now();
    const of = expected ? ` of about ${secondsText(expected)}` : "";
    const say = () => {
      const seconds = (performance.now() - start) / 1000;
      this.root.replaceChildren(`reading… ${secondsText(seconds)}${of}`);
    };
    say();
    this.#timer = setInterval(say, TICK);
  }
}
