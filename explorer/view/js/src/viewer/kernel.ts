// What only Python can give, where a kernel is alive: what a display didn't wait for, and a module of one instruction.

import { button, element } from "../core/dom";
import { answered, type Model, onModel, type PythonLink } from "../core/kernel_link";
import { secondsText } from "../core/labels";

const PATIENCE = 10_000; // milliseconds: a kernel that is busy for longer answers too late to be copied
const TICK = 500; // milliseconds

export type Live = Pick<PythonLink, "model">;

/** What Python answers; see `LiveView.extract` in explorer/view/capture/live_view.py. */
type Extracted = { extracted?: string; module?: string; failed?: string };

/** The text of a module that computes a node of a stage and what is `height` steps before it, if Python gives it. */
export async function extracted({ model }: Live, stage: string, node: number, height: number) {
  if (!model) return undefined;
  const key = `${stage}:${node}:${height}`;
  const message = { ask: "extract", key, stage, node, height };
  return (await answered<Extracted>(model, message, ({ extracted }) => extracted === key, PATIENCE)).module;
}

/** What Python says of it; see `LiveView.record` in explorer/view/capture/live_view.py. */
interface Recording {
  recording?: "started" | "done" | "failed";
  /** About how many seconds it takes. */
  expected?: number;
  why?: string;
}

const PASSES = {
  ask: "record",
  text: "record the passes",
  title: "Compile once more, apart from your own program, and record each compiler pass",
};
const CODE = {
  ask: "machine-code",
  text: "read the machine code",
  title: "Compile once more, apart from your own program, and read the machine code of each kernel",
};

/** A button where a kernel can compile for it, progress while it does, nothing else. */
export class Recorder {
  readonly root = element("span.record", { role: "status" });
  #model: Model | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #hasAsked = false;
  readonly #stop: () => void;

  constructor(
    root: HTMLElement,
    id: string,
    own: Model | undefined,
    private readonly recorded: (wire: Uint8Array) => void,
  ) {
    const follow = (model: Model | undefined) => {
      this.#model = model;
      this.#invite();
    };
    this.#stop = onModel(root, id, follow, own, {
      "change:shown": () => this.#invite(),
      "msg:custom": (message: Recording, buffers: DataView[]) => this.#receive(message, buffers),
    });
  }

  dispose(): void {
    clearInterval(this.#timer);
    this.#stop();
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
    return button(
      { title },
      () => this.#model?.send({ ask }),
      text + (expected ? ` (≈ ${secondsText(expected)})` : ""),
    );
  }

  #receive({ recording, expected, why }: Recording, [wire]: DataView[]): void {
    if (recording === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (recording === "started") this.#progress(expected ?? 0);
    else if (recording === "failed") this.root.replaceChildren(`not recorded: ${why ?? "the kernel gave no reason"}`);
    else if (wire) this.recorded(new Uint8Array(wire.buffer, wire.byteOffset, wire.byteLength));
  }

  #progress(expected: number): void {
    const start = performance.now();
    const of = expected ? ` of about ${secondsText(expected)}` : "";
    const say = () => this.root.replaceChildren(`reading… ${secondsText((performance.now() - start) / 1000)}${of}`);
    say();
    this.#timer = setInterval(say, TICK);
  }
}
