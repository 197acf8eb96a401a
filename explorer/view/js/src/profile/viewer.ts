// The profile: what took the time in one sentence, the source as a heat map, the flame graph, the kernels, the threads.

import { element } from "../core/dom";
import { followTheme } from "../core/theme";
import { type Chosen, chosenBox, chosenKernel, chosenLine, Data, type Message, nothing } from "./data";
import { FlamePane } from "./flame";
import { box, hostText, part } from "./format";
import { Head } from "./head";
import { KernelsPane } from "./kernels";
import { SourcePane } from "./source";
import { Threads } from "./threads";
import { Wire } from "./wire";

export class ProfileViewer {
  readonly root = element("div.explorer.profile");
  private readonly data: Data;
  readonly #head: Head;
  readonly #source: SourcePane;
  readonly #flame?: FlamePane;
  readonly #kernels: KernelsPane;
  readonly #threads?: Threads;
  readonly #wire: Wire;
  readonly #opens = box("opens");
  readonly #stopTheme: () => void;
  #chosen = nothing();
  #previewed = nothing();

  constructor(message: Message, id: string) {
    this.data = new Data(message);
    const { data } = this;
    this.#head = new Head(data, (line) => this.#choose(chosenLine(line), true));
    this.#source = new SourcePane(
      data,
      (line) => this.#choose(chosenLine(line)),
      (line) => this.#preview(line ? chosenLine(line) : nothing()),
    );
    if (data.flames.get("stack")?.length)
      this.#flame = new FlamePane(
        data,
        (at) => this.#choose(chosenBox(at), true),
        (at) => this.#preview(at?.kernel ? chosenKernel(at.kernel) : at?.line ? chosenLine(at.line) : nothing()),
      );
    this.#kernels = new KernelsPane(
      data,
      (kernel) => this.#choose(chosenKernel(kernel), true),
      (kernel) => this.#preview(kernel ? chosenKernel(kernel) : nothing()),
      () => this.#choose(nothing()),
      (kernel) => this.#look(kernel.program),
    );
    if (message.timeline)
      this.#threads = new Threads(data, message.timeline, (kernel) => this.#choose(chosenKernel(kernel), true));
    this.#wire = new Wire(this.root, id, () => this.#offer());
    const right = box("right", ...(this.#flame ? [this.#flame.root] : []), this.#kernels.root);
    this.root.append(
      this.#head.root,
      box("panes", this.#source.root, right),
      ...(this.#threads ? [this.#threads.root] : hostText(message.host)),
      this.#opens,
      this.#wire.slot,
    );
    this.#stopTheme = followTheme(this.root);
    this.#offer();
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#choose(nothing());
    });
  }

  start(): void {
    this.#source.reveal(this.data.lines[0]);
    this.#threads?.draw();
    this.root.dataset.ready = "true";
  }

  dispose(): void {
    this.#stopTheme();
  }

  /** What is chosen a second time is let go. */
  #choose(chosen: Chosen, isElsewhere = false): void {
    const isSame = chosen.line
      ? chosen.line === this.#chosen.line
      : chosen.kernel && !chosen.box
        ? chosen.kernel === this.#chosen.kernel && !this.#chosen.box
        : false;
    this.#chosen = isSame ? nothing() : chosen;
    this.#light();
    if (isElsewhere && !isSame) this.#source.reveal(longest(this.#chosen));
  }

  #preview(previewed: Chosen): void {
    this.#previewed = previewed;
    this.#light();
  }

  #light(): void {
    for (const pane of [this.#source, this.#flame, this.#kernels, this.#threads])
      pane?.light(this.#chosen, this.#previewed);
    this.#head.light(this.#chosen);
  }

  #look(program: number): HTMLElement[] {
    const isKnown = this.data.message.captures.some(([number]) => number === program);
    return this.#wire.isLive && isKnown ? [this.#wire.button(program, "open its program in the graph")] : [];
  }

  /** The way to the programs themselves, with their times; without a kernel there is none. */
  #offer(): void {
    const { captures } = this.data.message;
    if (!this.#wire?.isLive || !captures.length) return;
    this.#opens.replaceChildren(
      part("mute", "what was compiled, coloured by time:"),
      ...captures
        .slice(0, 8)
        .map(([program, name]) => this.#wire.button(program, captures.length > 1 ? name : `open ${name} in the graph`)),
    );
  }
}

/** Of the chosen lines, the one that has most of the chosen. */
const longest = ({ line, kernel, lines }: Chosen) =>
  line ?? kernel?.lines[0]?.line ?? [...lines].sort((a, b) => b.seconds - a.seconds)[0];
