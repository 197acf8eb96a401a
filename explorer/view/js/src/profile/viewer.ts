// The profile: what took the time in one sentence, the source as a heat map, the flame graph, the kernels, the threads.

import { button, element, sentence } from "../core/dom";
import { PythonLink, showAnswer, unpacked } from "../core/kernel_link";
import { secondsText } from "../core/labels";
import standalone from "../core/standalone.css";
import { addSheet, followTheme, style } from "../core/theme";
import tokens from "../core/tokens.css";
import { type Chosen, chosenBox, chosenKernel, chosenLine, Data, type Line, type Message, nothing } from "./data";
import { FlamePane } from "./flame";
import { box, heated, hostText, part, placeText, shareText } from "./format";
import { KernelsPane } from "./kernels";
import panes from "./panes.css";
import profile from "./profile.css";
import { SourcePane } from "./source";
import { Threads } from "./threads";

export class ProfileViewer {
  readonly root = element("div.explorer.profile");
  private readonly data: Data;
  readonly #head: Head;
  readonly #source: SourcePane;
  readonly #flame?: FlamePane;
  readonly #kernels: KernelsPane;
  readonly #threads?: Threads;
  readonly #link: PythonLink;
  readonly #slot = box("slot");
  readonly #opens = box("opens");
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
    this.#link = new PythonLink(this.root, id, { changed: () => this.#offer() });
    const right = box("right", ...(this.#flame ? [this.#flame.root] : []), this.#kernels.root);
    this.root.append(
      this.#head.root,
      box("panes", this.#source.root, right),
      ...(this.#threads ? [this.#threads.root] : hostText(message.host)),
      this.#opens,
      this.#slot,
    );
    followTheme(this.root);
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

  /** What is chosen a second time is let go. */
  #choose(chosen: Chosen, isElsewhere = false): void {
    const { line, kernel, box } = this.#chosen;
    const isSame = chosen.line
      ? chosen.line === line
      : chosen.kernel !== undefined && !chosen.box && chosen.kernel === kernel && !box;
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
    return this.#link.isLive && isKnown ? [this.#opener(program, "open its program in the graph")] : [];
  }

  /** A button that opens the program of a kernel in the viewer, with its times. */
  #opener(program: number, label: string): HTMLElement {
    const open = async () => {
      const answer = this.#link.request({ ask: "capture", program });
      if (await showAnswer(node, answer, this.#slot, "pf-mute")) this.#slot.scrollIntoView({ block: "nearest" });
    };
    const node = button({ class: "pf-open" }, () => void open(), label);
    return node;
  }

  /** The way to the programs themselves, with their times; without a kernel there is none. */
  #offer(): void {
    const { captures } = this.data.message;
    if (!this.#link?.isLive || !captures.length) return;
    const label = (name: string) => (captures.length > 1 ? name : `open ${name} in the graph`);
    const openers = captures.slice(0, 8).map(([program, name]) => this.#opener(program, label(name)));
    this.#opens.replaceChildren(part("mute", "what was compiled, coloured by time:"), ...openers);
  }
}

/** Of the chosen lines, the one that has most of the chosen. */
const longest = ({ line, kernel, lines }: Chosen) =>
  line ?? kernel?.lines[0]?.line ?? [...lines].sort((a, b) => b.seconds - a.seconds)[0];

const NAMED = 6; // lines with a part of their own
const LEAST = 0.02; // of the call
const WORDED = 0.08;

class Head {
  readonly root = box("head");
  readonly #bar = box("call");

  constructor(
    private readonly data: Data,
    private readonly choose: (line: Line) => void,
  ) {
    const { headline, notes } = data.message;
    this.root.append(element("p.pf-title", ...sentence(headline.text)));
    const sign = element("b", { "aria-hidden": "true" }, "◌ ");
    if (headline.waits.length) this.root.append(element("p.pf-waits", sign, ...sentence(headline.waits)));
    this.#fill();
    if (this.#bar.childElementCount) this.root.append(this.#bar);
    this.root.append(element("p.pf-facts", headline.facts.join(" · ")));
    for (const note of notes) this.root.append(element("p.pf-note", note));
  }

  #fill(): void {
    const { wall, device, gap, unattributed } = this.data.message;
    const whole = Math.max(wall, device + gap) || 1;
    const named = this.data.lines.slice(0, NAMED).filter(({ seconds }) => seconds >= LEAST * whole);
    for (const line of named) {
      const text = `line ${line.number}: ${secondsText(line.seconds)}`;
      const style = this.#style(line.seconds / whole, this.data.heat("line", line.seconds));
      const title = `${text} (${shareText(this.data.share(line.seconds))} of the device's time)\n${line.text}`;
      const about = { style, title, "aria-label": `${text}, ${line.text}`, "aria-pressed": "false" };
      const word = line.seconds > WORDED * whole ? placeText(line, this.data) : String(line.number);
      const take = () => this.choose(line);
      this.#bar.append(button({ class: "pf-piece", "data-of": line.index, ...about }, take, element("span", word)));
    }
    const others = device - unattributed - named.reduce((sum, { seconds }) => sum + seconds, 0);
    this.#piece(others, whole, "other lines", "others");
    this.#piece(unattributed, whole, "no line known", "unknown");
    this.#piece(gap, whole, "waiting", "waiting");
  }

  #piece(seconds: number, whole: number, name: string, kind: string): void {
    if (!(seconds > 1e-4 * whole)) return;
    const text = `${name}: ${secondsText(seconds)}, ${shareText(seconds / whole)} of the call`;
    const about = { role: "img", style: this.#style(seconds / whole, 0), title: text, "aria-label": text };
    this.#bar.append(element("span", { class: `pf-piece pf-${kind}`, ...about }, element("span", name)));
  }

  #style = (share: number, heat: number): string => `flex-grow:${(1000 * share).toFixed(2)};${heated(heat)}`;

  light({ lines }: Chosen): void {
    for (const piece of this.#bar.querySelectorAll<HTMLElement>("[data-of]"))
      piece.setAttribute("aria-pressed", String(lines.has(this.data.lines[Number(piece.dataset.of)]!)));
  }
}

addSheet(tokens + standalone + profile + panes);

export async function mount(host: HTMLElement, bytes: Uint8Array, { id }: { id: string }): Promise<ProfileViewer> {
  style(host);
  const viewer = new ProfileViewer(await unpacked<Message>(bytes), id);
  host.replaceChildren(viewer.root);
  viewer.start();
  return viewer;
}
