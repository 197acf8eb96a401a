// The panes around one session.

import type { Capture } from "../core/capture";
import { element } from "../core/dom";
import { followPython, type Model, type Steering, sendSelection } from "../core/kernel_link";
import { count } from "../core/labels";
import { type Mode, Session } from "../core/session";
import { addSheet } from "../core/style";
import { followTheme } from "../core/theme";
import { DetailsPane } from "../details/details_pane";
import { GraphPane } from "../graph/graph_pane";
import { tally } from "../source/finding_badge";
import { SourcePane } from "../source/source_pane";
import { Bar } from "./bar";
import { Extractor } from "./extractor";
import { Foot } from "./foot";
import { makePane, type Pane, type PaneKind, paneKinds } from "./panes";
import { Recorder } from "./recorder";
import { SaveMenu } from "./save_menu";
import sheets from "./sheets";
import { summary } from "./summary";

addSheet(sheets);

const LOWEST = 330; // pixels of the panes: the details need them

export interface Options {
  id: string;
  stage?: string;
  /** The widget that shows it, if one does; else the wire registered under `id`. */
  model?: Model;
  mode?: Mode;
  /** Called with the capture as it is once its passes are recorded, and with what was shown of it. */
  recorded?: (wire: Uint8Array, shown: Pick<Options, "stage" | "mode">) => void;
}

export class Viewer {
  readonly root: HTMLElement;
  private readonly session: Session;
  readonly #source: SourcePane;
  readonly #graph: GraphPane;
  readonly #details: DetailsPane;
  readonly #bar: Bar;
  readonly #foot: Foot;
  readonly #recorder: Recorder;
  readonly #extractor: Extractor;
  readonly #save: SaveMenu;
  readonly #kinds: PaneKind[];
  readonly #paneOf = new Map<Mode, Pane>();
  readonly #middle = element("div.middle");
  readonly #panes: HTMLElement;
  readonly #stops: (() => void)[];
  /** The modes whose pane shows the current stage. */
  readonly #fresh = new Set<Mode>();

  constructor(
    private readonly capture: Capture,
    private readonly options: Options,
  ) {
    const session = (this.session = new Session(capture, options.stage));
    session.mode = options.mode ?? session.mode;
    this.#graph = new GraphPane(session);
    this.#kinds = paneKinds(this.#graph, capture);
    this.#source = new SourcePane(session);
    this.#extractor = new Extractor(options.id, options.model, () => this.#details?.fill());
    this.#details = new DetailsPane(
      session,
      (node) => this.#reveal(node),
      {
        pathsFrom: (item) => void this.#inGraph().then(() => this.#graph.pathsFrom(item)),
        widen: (by) => void this.#inGraph().then(() => this.#graph.widen(by)),
      },
      this.#extractor,
    );
    this.#recorder = new Recorder(options.id, options.model, (wire) => this.#recorded(wire));
    this.#foot = new Foot(session, this.#recorder.root);
    const tools = [
      { label: "zoom in (+)", sign: "+", act: () => this.#graph.zoom(1.25) },
      { label: "zoom out (−)", sign: "−", act: () => this.#graph.zoom(0.8) },
      { label: "fit (0)", sign: "⤢", act: () => this.#graph.fitAll() },
    ];
    const { findings } = capture.header.findings ?? { findings: [] };
    if (findings.length && session.lines.sources.length)
      tools.unshift({
        label: `${count(findings.length, "pitfall")}: show the next`,
        sign: tally(findings),
        act: () => this.#source.showPitfall(),
      });
    this.#bar = new Bar(session, this.#kinds, tools, (node) => this.#reveal(node));
    this.#save = new SaveMenu(
      () => this.pane?.root.querySelector("svg") ?? null,
      () => `${capture.header.function}-${session.stage.name}-${session.mode}`.replace(/[^\w.-]+/g, "_"),
    );
    this.#bar.root.append(this.#save.root);
    this.#panes = element("div.panes", this.#source.root, this.#middle, this.#details.root);
    // Lab's own shortcuts must not take the keys typed here.
    this.root = element(
      "div.explorer",
      { "data-capture": options.id, "data-lm-suppress-shortcuts": "true" },
      this.#bar.root,
      summary(session, (stage, nodes) => {
        session.focusNodes(stage, nodes, "in this sentence");
        this.#reveal(nodes[0]!);
      }),
      this.#panes,
      this.#foot.root,
    );
    // Without a text there is nothing to stand on the left: a module from a file, its sources elsewhere.
    this.root.classList.toggle("sourceless", !session.lines.sources.length);
    this.#stops = [followTheme(this.root)];
    this.root.addEventListener("keydown", (event) => this.#key(event));
    session.listen((change) => {
      if (change === "preview") {
        this.#source.light();
        if (this.#fresh.has(session.mode)) this.pane?.hover ? this.pane?.hover() : this.pane?.light();
      } else if (change === "look") this.#light();
      else if (change === "stage") void this.#showStage();
      else if (change === "mode") void this.#showMode().then(() => this.#follow());
      else this.#showFocus();
    });
  }

  /** Draw everything once; resolves when the graph is on the screen. */
  async start(): Promise<void> {
    await this.#showStage();
    this.#shrink();
    this.#source.toFunction();
    this.#stops.push(followPython(this.options.id, this.options.model, (changed) => this.#show(changed)));
    requestAnimationFrame(() => requestAnimationFrame(() => (this.root.dataset.ready = "true")));
  }

  #recorded(wire: Uint8Array): void {
    const { stage, mode } = this.session;
    this.options.recorded?.(wire, { stage: stage.name, mode });
  }

  dispose(): void {
    this.#recorder.dispose();
    this.#extractor.dispose();
    for (const stop of this.#stops) stop();
    for (const pane of this.#paneOf.values()) pane.dispose?.();
  }

  /**
   * What Python set anew, null for what it took back; a stage that is not there, or a node beyond it, is passed over.
   */
  #show({ stage, highlight, filter, colour }: Steering): void {
    const { session, capture } = this;
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

  /** A small program needs no tall panes. They can be pulled to any height afterwards. */
  #shrink(): void {
    const source = this.#source.root.lastElementChild;
    const lines = source instanceof HTMLElement ? source.offsetTop + source.offsetHeight + 8 : 0;
    const needed = Math.max(lines, this.#graph.height + 24, LOWEST);
    if (needed >= this.#panes.clientHeight) return;
    this.#panes.style.height = `${needed}px`;
    this.#graph.refit();
  }

  /** The pane of the current mode; not there while its code is on its way. */
  private get pane(): Pane | undefined {
    return this.#paneOf.get(this.session.mode);
  }

  async #made(mode: Mode): Promise<Pane> {
    const there = this.#paneOf.get(mode);
    if (there) return there;
    const made = await makePane(this.#kinds.find((kind) => kind.mode === mode)!, this.session, (node) =>
      this.#reveal(node),
    );
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
    this.#bar.mark();
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

  #showFocus(): void {
    const { session } = this;
    this.#light();
    this.#source.light();
    this.#details.fill();
    if (session.focus.item !== undefined || session.focus.line) this.#source.scroll();
    this.pane?.scroll?.();
    if (!session.focus.query) this.#bar.forget();
    sendSelection(this.options.id, this.options.model, session.stage.name, session.focus.nodes);
  }

  /** Bring what is in focus into sight. */
  #follow(): void {
    const { focus, mode, firstNode } = this.session;
    if (firstNode === undefined) return;
    if (mode !== "graph") this.pane?.scroll?.();
    else if (focus.item !== undefined) void this.#graph.reveal(firstNode);
  }

  /** Go to the graph, where it isn't shown. */
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
    if (event.key === "/") {
      event.preventDefault();
      this.#bar.search.focus();
    } else if (event.key === "Escape") this.session.focusItem(undefined);
  }
}
