// Asking Python for the recording compile, and for the capture that comes of it.

import { element } from "../core/dom";
import { type Model, onModel } from "../core/kernel_link";
import { secondsText } from "../core/labels";

/** What Python says of it; see `LiveView.record` in explorer/view/capture/live_view.py. */
interface Message {
  recording?: "started" | "passes" | "done" | "failed";
  /** How many passes are done. */
  text?: string;
  /** Seconds of the user's own compile. */
  expected?: number;
  why?: string;
}

const PASSES = {
  ask: "record",
  text: "record the passes",
  title: "Compile once more beside your own program: exact links, and what each pass of the compiler did",
};
const CODE = {
  ask: "machine-code",
  text: "read the machine code",
  title: "Compile once more beside your own program: what lies below HLO, the code of each kernel",
};
const TICK = 500; // milliseconds

/** A button where a kernel can record, progress while it does, nothing else. */
export class Recorder {
  readonly root = element("span.record", { role: "status" });
  #model: Model | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #passes = "";
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
    const { records, codes } = this.#model?.get("shown") ?? {};
    this.root.replaceChildren(...(records ? [this.#button(PASSES)] : []), ...(codes ? [this.#button(CODE)] : []));
  }

  #button({ ask, text, title }: typeof PASSES): HTMLElement {
    const button = element("button", { type: "button", title }, text);
    button.addEventListener("click", () => this.#model?.send({ ask }));
    return button;
  }

  #receive({ recording, expected, text = "", why }: Message, buffers: DataView[]): void {
    if (recording === undefined) return;
    this.#passes = text && ` ${text},`;
    if (recording === "passes") return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    const wire = buffers[0];
    if (recording === "started") this.#progress(expected ?? 0);
    else if (recording === "failed") this.root.replaceChildren(`not recorded: ${why ?? "the kernel gave no reason"}`);
    else if (wire) this.recorded(new Uint8Array(wire.buffer, wire.byteOffset, wire.byteLength));
  }

  #progress(expected: number): void {
    const start = performance.now();
    const took = expected ? `; your compile took ${secondsText(expected)}` : "";
    const say = () => {
      const seconds = (performance.now() - start) / 1000;
      this.root.replaceChildren(`recording…${this.#passes} ${secondsText(seconds)}${took}`);
    };
    say();
    this.#timer = setInterval(say, TICK);
  }
}
