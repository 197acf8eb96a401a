// The panes around one session.

import { AskField } from "../ask/ask_field";
import type { Capture } from "../core/capture";
import { element } from "../core/dom";
import { type Item, isNode } from "../core/graph";
import {
  followPython,
  type Model,
  PythonLink,
  registeredModel,
  request,
  type Steering,
  sendSelection,
} from "../core/kernel_link";
import { count } from "../core/labels";
import { type Change, type Mode, Session } from "../core/session";
import { addSheet, followTheme } from "../core/theme";
import details from "../details/details.css";
import { DetailsPane } from "../details/details_pane";
import sheetOfDetails from "../details/sheet.css";
import { GraphPane } from "../graph/graph_pane";
import type { View } from "../keep/keeper";
import { Keeping } from "../keep/keeping";
import shares from "../lines/shares.css";
import { Overview } from "../overview/overview";
import overview from "../overview/overview.css";
import source from "../source/source.css";
import { SourcePane, tally } from "../source/source_pane";
import { Bar, Foot, PanelHead, summary, type Tool } from "./bar";
import foot from "./foot.css";
import { Frame, FullScreen, Sheet } from "./frame";
import type { Help } from "./help";
import { Recorder } from "./kernel";
import { makePane, type Pane, type PaneKind, paneKinds } from "./panes";
import { SaveMenu } from "./save_menu";

for (const sheet of [overview, source, details, sheetOfDetails, foot, shares]) addSheet(sheet);

const LOWEST = 366; // pixels of the panes: the details need them

let made = 0; // views of this page: each has names of its own

export interface Options {
  id: string;
  stage?: string;
  /** The widget that shows it, if one does; else the wire registered under `id`. */
  model?: Model;
  mode?: Mode;
  /** Where it opens, as JSON. */
  bookmark?: string | undefined;
  /** What is shown is no capture that anybody keeps. */
  isTrial?: boolean;
  /** Called with the capture as it is once its passes are recorded, and with what was shown of it. */
  recorded?: (wire: Uint8Array, shown: Shown) => void;
  /** The switches over the function, which stay where what they made of it is shown in its place. */
  whatIf?: () => Promise<HTMLElement>;
}

/** What is looked at, to be looked at in another capture too. */
export type Shown = Pick<Options, "stage" | "mode" | "bookmark">;

export class Viewer {
  readonly root: HTMLElement;
  private readonly session: Session;
  readonly #source: SourcePane;
  readonly #overview: Overview;
  readonly #graph: GraphPane;
  /** What it is called: each view of a page differently. */
  readonly #name: string;
  readonly #details: DetailsPane;
  readonly #sheet: Sheet;
  readonly #ask: AskField;
  readonly #bar: Bar;
  readonly #head: PanelHead;
  readonly #full: FullScreen;
  #help: Help | undefined;
  /** A kernel has spoken: what only it can do is offered. */
  #isLive = false;
  readonly #foot: Foot;
  readonly #recorder: Recorder;
  readonly #link: PythonLink;
  readonly #save: SaveMenu;
  readonly #kinds: PaneKind[];
  readonly #paneOf = new Map<Mode, Pane>();
  readonly #middle: HTMLElement;
  /** What follows the kernel while this is in the page. */
  readonly #links = element("span", { hidden: "" });
  readonly #keeping: Keeping;
  readonly #frame: Frame;
  readonly #stops: (() => void)[];
  /** The modes whose pane shows the current stage. */
  readonly #fresh = new Set<Mode>();

  constructor(
    private readonly capture: Capture,
    private readonly options: Options,
  ) {
    const session = (this.session = new Session(capture, options.stage));
    const { id, model } = options;
    session.mode = options.mode ?? session.mode;
    this.#name = made++ ? `${capture.header.function}, view ${made}` : capture.header.function;
    const panel = `explorer-${made}-panel`;
    const reveal = (node: number) => this.#reveal(node);
    const moved = () => this.#moved();
    const inGraph = (show: () => void) => void this.#inGraph().then(show);
    const ways = {
      pathsFrom: (item: Item) => inGraph(() => this.#graph.pathsFrom(item)),
      widen: (by: number) => inGraph(() => void this.#graph.widen(by)),
    };
    this.#graph = new GraphPane(session);
    this.#kinds = paneKinds(this.#graph, capture);
    this.#source = new SourcePane(session);
    this.#overview = new Overview(session, reveal);
    this.#link = new PythonLink(this.#links, id, { changed: () => this.#details.fill() }, model);
    this.#details = new DetailsPane(session, reveal, ways, this.#link);
    this.#recorder = new Recorder(this.#links, id, model, (wire) => options.recorded?.(wire, this.shown));
    this.#foot = new Foot(session, this.#recorder.root);
    this.#middle = element("div.middle", { id: panel, role: "tabpanel" });
    this.#sheet = new Sheet(this.#details.root, moved);
    this.#save = new SaveMenu(() => this.pane?.root.querySelector("svg") ?? null, session);
    this.#head = new PanelHead(session, this.#kinds, panel, this.#graph, this.#save.root);
    const live = () => model ?? registeredModel(id);
    const asked = (ask: string, of: string) => {
      const kernel = live();
      return kernel && request(kernel, ask, of);
    };
    this.#ask = new AskField(session, reveal, {
      question: (text) => asked("question", text)?.then(({ answer }) => answer),
      answers: () => asked("answers", "all")?.then(({ answers }) => answers),
    });
    const pending = /^(compiling|interrupted)-/.exec(id)?.[1]; // explorer/view/interim.py names it so
    this.#bar = new Bar(session, this.#kinds, panel, pending, this.#ask.root);
    this.#keeping = new Keeping(this.#kept(), options.isTrial ?? false);
    const { tools, root: head } = this.#head;
    const [text, sheet] = [session.lines.sources.length ? this.#source.root : undefined, this.#sheet.root];
    this.#frame = new Frame({ head, tools, middle: this.#middle, sheet, source: text }, moved);
    this.root = this.#whole();
    this.#full = new FullScreen(this.root, () => this.#fillTools());
    this.#fillTools();
    this.#stops = [followTheme(this.root), this.#takePageKeys()];
    this.root.addEventListener("keydown", (event) => this.#key(event));
    session.listen((change) => this.#changed(change));
  }

  #whole(): HTMLElement {
    const { session } = this;
    const choose = (stage: string, nodes: number[]) => {
      session.focusNodes(stage, nodes, "in this sentence");
      this.#reveal(nodes[0]!);
    };
    const root = element(
      "section.explorer",
      {
        "data-capture": this.options.id,
        "data-lm-suppress-shortcuts": "true", // Lab's own shortcuts must not take the keys typed here
        tabindex: -1, // a click anywhere in it makes its keys work
        "aria-label": this.#name,
      },
      ...[this.#bar.root, summary(session, choose), this.#overview.root, this.#frame.root, this.#frame.height],
      ...[this.#foot.root, this.#links],
    );
    root.classList.toggle("sourceless", !session.lines.sources.length);
    return root;
  }

  /** What of the view is kept, and how it gets there again. */
  #kept(): View {
    const { session } = this;
    return {
      ...{ session, graph: this.#graph, modes: this.#kinds.map(({ mode }) => mode) },
      ...{ id: this.options.id, model: this.options.model },
      find: (text) => this.#ask.find(text),
      follow: () => this.#reveal(session.firstNode ?? 0),
      ...{ foot: this.#foot.kept, details: this.#details.root, links: this.#links },
    };
  }

  #changed(change: Change): void {
    const { session } = this;
    if (change === "preview") {
      this.#source.light();
      this.#overview.hover();
      if (this.#fresh.has(session.mode)) this.pane?.hover ? this.pane?.hover() : this.pane?.light();
    } else if (change === "cost") {
      this.#source.fill();
      this.#overview.fill();
      void this.#relabel();
    } else if (change === "look") this.#light();
    else if (change === "notes") void this.#relabel();
    else if (change === "stage") void this.#showStage();
    else if (change === "mode") void this.#showMode().then(() => this.#follow());
    else if (change === "focus") this.#showFocus();
  }

  /** On a page of its own the keys are the view's before anything in it was clicked. */
  #takePageKeys(): () => void {
    const { body } = document;
    if (!body.classList.contains("explorer-page")) return () => {};
    const take = (event: KeyboardEvent) => event.target === body && this.#key(event);
    body.addEventListener("keydown", take);
    return () => body.removeEventListener("keydown", take);
  }

  /** Draw everything once; resolves when the graph is on the screen. */
  async start(): Promise<void> {
    await this.#keeping.begin(this.options.bookmark);
    this.#overview.fill();
    await this.#showStage();
    this.#frame.shrink(this.#needed);
    this.#graph.refit();
    this.#source.toCost();
    this.#stops.push(followPython(this.#links, this.options.id, this.options.model, (changed) => this.#show(changed)));
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        this.#frame.fitInto(this.root);
        this.root.dataset.ready = "true";
      }),
    );
  }

  get shown(): Shown {
    const { stage, mode } = this.session;
    const { bookmark } = this.#keeping;
    return { stage: stage.name, mode, ...(bookmark ? { bookmark } : {}) };
  }

  /** Put the switches under the bar, where they are already if these are another capture's. */
  holdWhatIf(switches: HTMLElement): void {
    this.#bar.root.after(switches);
  }

  async #toggleWhatIf(): Promise<void> {
    const switches = await this.options.whatIf!();
    if (this.root.contains(switches)) return switches.remove();
    this.holdWhatIf(switches);
    switches.querySelector("input")?.focus();
  }

  dispose(): void {
    this.#recorder.dispose();
    this.#keeping.dispose();
    this.#frame.dispose();
    this.#link.stop();
    for (const stop of this.#stops) stop();
    for (const pane of this.#paneOf.values()) pane.dispose?.();
  }

  /**
   * What Python set anew, null for what it took back; a stage that is not there, or a node beyond it, is passed over.
   */
  #show(changed: Steering): void {
    const { session, capture } = this;
    const { stage, highlight, filter, colour } = this.#keeping.show(changed);
    if (!this.#isLive) {
      this.#isLive = true;
      this.#fillTools();
    }
    const rowsOf = ({ stage: name, nodes }: { stage: string; nodes: number[] }) => {
      const of = capture.stages.find((stage) => stage.name === name);
      return of ? nodes.filter((node) => node >= 0 && node < of.size) : [];
    };
    if (stage && capture.stages.some(({ name }) => name === stage)) session.setStage(stage);
    if (colour?.stage && colour.nodes && colour.values) {
      const { graph } = capture.stage(colour.stage);
      const values = new Float32Array(graph.size).fill(NaN);
      for (const [i, node] of colour.nodes.entries()) values[node] = colour.values[i] ?? NaN;
      graph.c.measures[colour.by] = values;
    }
    if (colour !== undefined) session.setColour(colour?.by);
    if (filter !== undefined) session.clearFilter();
    if (filter) session.setFilter(filter.stage, rowsOf(filter));
    if (highlight === null) session.focusItem(undefined);
    if (!highlight) return;
    const lit = rowsOf(highlight);
    session.focusNodes(highlight.stage, lit);
    if (lit.length) this.#reveal(lit[0]!);
  }

  #fillTools(): void {
    const { findings } = this.capture.header.findings;
    const { isOn } = this.#full;
    const hasCode = (this.#isLive || this.options.isTrial) && this.capture.stage("hlo").name === "hlo";
    const pitfalls: Tool = {
      label: `${count(findings.length, "pitfall")}: show the next`,
      text: tally(findings),
      words: findings.length > 1 ? "pitfalls" : "pitfall",
      act: () => this.#source.showPitfall(),
    };
    const whatIf: Tool = {
      label: "compile it with a change, and compare",
      text: "what if",
      act: () => void this.#toggleWhatIf(),
    };
    this.#bar.setTools([
      ...(findings.length && this.session.lines.sources.length ? [pitfalls] : []),
      ...(this.options.whatIf && hasCode ? [whatIf] : []),
      ...this.#keeping.tools,
      {
        label: isOn ? "leave the full screen (f)" : "use the full screen (f)",
        text: isOn ? "leave full screen" : "full screen",
        act: () => void this.#full.toggle(),
      },
      { label: "keys and marks (?)", text: "?", words: "keys and marks", act: () => void this.#toggleHelp() },
    ]);
  }

  async #toggleHelp(): Promise<void> {
    const { Help } = await import("./help");
    if (!this.#help) this.root.append((this.#help = new Help(this.#middle.id)).root);
    this.#help.toggle();
  }

  /** A small program needs no tall panes. They can be pulled to any height afterwards. */
  get #needed(): number {
    const source = this.#source.root.lastElementChild;
    const lines = source instanceof HTMLElement ? source.offsetTop + source.offsetHeight + 8 : 0;
    return Math.max(lines, this.#graph.height + 24 + this.#head.root.offsetHeight, LOWEST);
  }

  /** After the panes got another size: what is chosen stays in sight. */
  #moved(): void {
    if (this.root.dataset.ready) requestAnimationFrame(() => this.#follow());
  }

  /** The pane of the current mode; not there while its code is on its way. */
  private get pane(): Pane | undefined {
    return this.#paneOf.get(this.session.mode);
  }

  async #made(mode: Mode): Promise<Pane> {
    const there = this.#paneOf.get(mode);
    if (there) return there;
    const made = await makePane(this.#kinds.find((kind) => kind.mode === mode)!, this.session);
    const pane = this.#paneOf.get(mode) ?? made; // chosen twice while it was made
    this.#paneOf.set(mode, pane);
    this.#middle.append(pane.root);
    return pane;
  }

  async #showStage(): Promise<void> {
    const { session } = this;
    this.root.dataset.stage = session.stage.name;
    this.#fresh.clear();
    const kind = this.#kinds.find(({ mode }) => mode === session.mode);
    if (kind?.stage !== undefined && kind.stage !== session.stage.name) session.mode = "graph";
    this.#source.fill();
    this.#foot.fill();
    await this.#showMode();
    this.#showFocus();
    if (session.focus.nodes.size) this.#follow();
  }

  async #showMode(): Promise<void> {
    const { mode, stage } = this.session;
    this.root.dataset.mode = mode;
    const tabs = [this.#bar.mark(), this.#head.mark()];
    this.#middle.setAttribute("aria-labelledby", tabs.flatMap((tab) => tab?.id ?? []).join(" "));
    const pane = await this.#made(mode);
    if (mode !== this.session.mode) return; // another was chosen meanwhile
    for (const [other, { root }] of this.#paneOf) root.classList.toggle("shown", other === mode);
    if (!this.#fresh.has(mode)) await pane.reset();
    // Another stage may have been chosen meanwhile.
    if (stage !== this.session.stage) return;
    this.#fresh.add(mode);
    this.#save.update();
    this.#light();
  }

  /** Mark what is in focus, unless the pane still shows another stage. */
  #light(): void {
    if (this.#fresh.has(this.session.mode)) this.pane?.light();
  }

  /** Show shares of another measure, or where there are notes. */
  async #relabel(): Promise<void> {
    this.#source.light();
    await this.#graph.relabel();
    this.#light();
  }

  #showFocus(): void {
    const { session } = this;
    this.#light();
    if (session.focus.line && session.mode === "graph") this.#graph.seek();
    this.#overview.light();
    this.#source.light();
    this.#details.fill();
    this.#keeping.fill();
    this.#sheet.filled(session.focus.nodes.size > 0 || session.focus.line !== undefined);
    if (session.focus.item !== undefined || session.focus.line) this.#source.scroll();
    this.pane?.scroll?.();
    if (!session.focus.query) this.#ask.forget();
    sendSelection(this.options.id, this.options.model, session.stage.name, session.focus.nodes);
  }

  #follow(): void {
    const { focus, mode, firstNode } = this.session;
    if (firstNode === undefined) return;
    if (mode !== "graph") this.pane?.scroll?.();
    else if (isNode(focus.item)) void this.#graph.reveal(firstNode); // a group is in sight where it was chosen
  }

  async #inGraph(): Promise<void> {
    if (this.session.mode === "graph") return;
    this.session.mode = "graph";
    await this.#showMode();
  }

  #reveal(node: number): void {
    if (this.session.mode === "graph") void this.#graph.reveal(node).then(() => this.#graph.light());
    else this.pane?.scroll?.();
  }

  #key(event: KeyboardEvent): void {
    event.stopPropagation();
    const { key } = event;
    const isTyped = (event.target as Element).matches("input, select, textarea");
    const isCommand = event.ctrlKey || event.metaKey;
    if (this.#help?.root.open) {
      if (key === "?") this.#help.root.close();
      return;
    }
    if (isCommand ? key === "k" : key === "/" && !isTyped) this.#ask.focus();
    else if (key === "Escape") {
      const { nodes, lines } = this.session.focus;
      if (this.#full.isOn && !nodes.size && !lines.size) this.#full.leave();
      else this.session.focusItem(undefined);
    } else if (isTyped || isCommand || event.altKey) return;
    else if (key === "f") void this.#full.toggle();
    else if (key === "?") void this.#toggleHelp();
    else if (!(key === "n" ? this.#ask.step(1) : key === "N" && this.#ask.step(-1))) return;
    event.preventDefault();
  }
}
