// The ledger: the verdict, the timeline, and below it one of functions, stacks and arguments.

import { button, choices, code, element, rove, sentence, words } from "../core/dom";
import { type Answer, PythonLink, showAnswer, unpacked } from "../core/kernel_link";
import { number } from "../core/labels";
import standalone from "../core/standalone.css";
import { addSheet, followTheme, style, whileInPage } from "../core/theme";
import tokens from "../core/tokens.css";
import { lasting } from "./clock";
import { type Call, Data, type Group, grouped, type Message, matching, type Status, type Varying } from "./data";
import { box, cure, cured, flag, keyed, part } from "./format";
import { Functions, Stacks } from "./functions";
import ledger from "./ledger.css";
import { Timeline } from "./timeline";
import timeline from "./timeline.css";

const TABS = ["functions", "stacks", "arguments"] as const;
const TICK = 500; // milliseconds, while something runs

/** What of the ledger is open, filtered and chosen: it outlives a new output of the same ledger. */
export interface State {
  filter: string;
  tab: (typeof TABS)[number];
  open: Set<string>;
  /** How many events of a group are drawn. */
  most: Map<string, number>;
  chosen?: Call;
  /** How far it is scrolled. */
  top: number;
}

export class LedgerViewer {
  readonly root = element("div.explorer.ledger");
  readonly #data: Data;
  /** explorer/view/ledger/link.py sends what is new, and answers requests; `since` has what the view lacked. */
  readonly #link: PythonLink<Answer & { since?: string }>;
  #isMissing = false;
  readonly #state: State = { filter: "", tab: "functions", open: new Set(), most: new Map(), top: 0 };
  readonly #head: Head;
  readonly #timeline: Timeline;
  readonly #functions: Functions;
  readonly #stacks: Stacks;
  readonly #arguments: Arguments;
  readonly #tabs = element("div.lg-tabs", { role: "tablist", "aria-label": "ledger" });
  readonly #markTab = choices(
    this.#tabs,
    TABS.map((name) => [name, name] as const),
    (name) => this.#turn(name),
    "tab",
  );
  readonly #reachTab = rove(this.#tabs, "button", (tab) => tab.click());
  readonly #tools = box("tools");
  readonly #watched = element("span.lg-watched");
  readonly #kept = element("span.lg-mute", { role: "status" });
  readonly #search = element("input", {
    type: "search",
    placeholder: "filter: step · cell [4] · weak-type",
    "aria-label": "filter by function, cell or reason",
  });
  readonly #body = element("div.lg-body", { role: "tabpanel", tabindex: "0" });
  #groups: Group[] = [];
  #timer?: ReturnType<typeof setInterval>;
  #drawing = 0;

  constructor(message: Message, id: string) {
    this.#data = new Data(message);
    this.#head = new Head(this.#data, (name) => this.#openFunction(name));
    this.#timeline = new Timeline(
      this.#data,
      (call) => this.#choose(call),
      (group) => this.#openFunction(group.name),
    );
    const light = (call?: Call) => this.#timeline.light(call);
    this.#functions = new Functions(this.#state, (call) => this.#buttons(call), light);
    this.#stacks = new Stacks(this.#state, (name) => this.#openFunction(name));
    this.#arguments = new Arguments(this.#data);
    this.#search.addEventListener("input", () => {
      this.#state.filter = this.#search.value;
      this.#update();
    });
    this.#body.addEventListener("scroll", () => (this.#state.top = this.#body.scrollTop));
    this.#tools.append(this.#tabs, this.#kept, element("span.stretch"), this.#watched, this.#search);
    this.root.append(this.#head.root, this.#timeline.root, this.#tools, this.#body);
    followTheme(this.root);
    this.#link = new PythonLink(this.root, id, {
      updated: (text) => this.#take(text),
      answered: ({ since }) => since && this.#take(since),
    });
  }

  start(): void {
    const worst = this.#data.status.verdict.function;
    const group = grouped(this.#data.calls).find(({ name }) => name === worst);
    if (group) this.#state.open.add(group.key);
    this.#update();
    this.root.dataset.ready = "true";
  }

  /** A newer output of the same ledger. */
  load(message: Message): void {
    if (message.status.now >= this.#data.status.now) this.#data.take(message);
    const { top } = this.#state;
    this.#update();
    this.#body.scrollTop = top; // what leaves the page for a moment is at its top again
  }

  #take(text: string): void {
    const message = JSON.parse(text) as Message;
    if (message.status.now < this.#data.status.now) return; // an output of a later time is here already
    if (this.#data.take(message)) this.#isMissing = false;
    else if (!this.#isMissing) {
      this.#isMissing = true;
      this.#link.send({ ask: "since", sizes: message.epoch === this.#data.epoch ? this.#data.sizes : {} });
    }
    this.#later();
  }

  /** What Python shows of a call: its capture, or what differs from the nearest earlier one. */
  #buttons(call: Call): HTMLElement {
    const place = box("slot");
    const look = (ask: "capture" | "diff", label: string) => {
      const { number, process } = call;
      const open = () => showAnswer(node, this.#link.request({ ask, call: number, process }), place, "lg-mute");
      const node = button({ class: "lg-open", "data-ask": ask }, () => void open(), label);
      return node;
    };
    const root = box("look", look("capture", "open its capture"));
    if (call.isAgain) root.append(look("diff", "differences in what the compiler made"));
    if (!this.#link.isLive) root.append(part("mute", "needs the kernel that compiled it"));
    root.append(place);
    return root;
  }

  #turn(tab: State["tab"]): void {
    this.#state.tab = tab;
    this.#update();
  }

  #openFunction(name: string): void {
    const group = this.#groups.find((group) => group.name === name);
    if (group) this.#state.open.add(group.key);
    this.#turn("functions");
    if (group) keyed(this.#functions.root, group.key)?.scrollIntoView({ block: "nearest" });
  }

  #choose(call: Call): void {
    this.#state.tab = "functions";
    this.#state.chosen = call;
    this.#update();
    this.#functions.reveal(call);
    this.#timeline.light(call);
  }

  /** Messages come up to four times a second, and more may wait: they are drawn together, and where they are seen. */
  #later(): void {
    if (this.#drawing) return;
    this.#drawing = requestAnimationFrame(() => {
      this.#drawing = 0;
      if (this.root.isConnected) this.#update();
    });
  }

  #update(): void {
    const calls = matching(this.#data.calls, this.#state.filter);
    const isAll = calls.length === this.#data.calls.length;
    this.#groups = grouped(calls);
    this.#head.update();
    this.#timeline.show(calls, this.#groups);
    this.#tools.hidden = !this.#data.calls.length;
    this.#body.hidden = !this.#data.calls.length;
    this.#kept.textContent = isAll ? "" : `${number(calls.length)} of ${number(this.#data.calls.length)}`;
    const watching = this.#link.isLive ? "● watching" : "● watching when saved";
    this.#watched.textContent = this.#data.status.watching ? watching : "";
    this.#reachTab(this.#markTab(this.#state.tab));
    this.#body.setAttribute("aria-label", this.#state.tab);
    this.#showTab(calls);
    this.#keepTime();
  }

  #showTab(calls: readonly Call[]): void {
    const panes = { functions: this.#functions, stacks: this.#stacks, arguments: this.#arguments };
    const pane = panes[this.#state.tab];
    if (this.#body.firstChild !== pane.root) this.#body.replaceChildren(pane.root);
    if (pane === this.#functions) this.#functions.show(this.#groups, this.#data.calls[0]?.start ?? 0);
    else if (pane === this.#stacks) this.#stacks.show(calls);
    else this.#arguments.show(this.#state.filter);
  }

  /** What runs is drawn on by this page's clock, for as long as something does. */
  #keepTime(): void {
    const isRunning = this.#data.status.running.length > 0;
    if (isRunning === (this.#timer !== undefined)) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (!isRunning) return;
    this.#timer = setInterval(() => {
      if (!this.root.isConnected) return;
      this.#head.tick();
      this.#timeline.draw();
    }, TICK);
  }
}

const NAMED = 3;
const MOST = 20;

class Head {
  readonly root = box("head");
  readonly #verdict = element("div.lg-verdict", { role: "status" });
  readonly #running = box("running");
  readonly #storms = box("storms");
  readonly #foreseen = box("foreseen");
  readonly #notes = box("notes");
  #shown = "";

  constructor(
    private readonly data: Data,
    private readonly open: (name: string) => void,
  ) {
    this.root.append(this.#verdict, this.#storms, this.#running, this.#foreseen, this.#notes);
  }

  update(): void {
    const { verdict, storms, foreseen, notes } = this.data.status;
    this.tick();
    const now = JSON.stringify([verdict, storms, foreseen, notes]);
    if (now === this.#shown) return; // a button in use stays where it is
    this.#shown = now;
    const own = storms.find((storm) => storm.function === verdict.function);
    this.root.classList.toggle("again", verdict.kind === "again");
    this.root.classList.toggle("storm", own !== undefined);
    this.#verdict.replaceChildren(...this.#block(verdict, own ? "recompile storm" : ""));
    const others = storms.filter((storm) => storm !== own);
    const names = others.slice(0, NAMED).flatMap(({ function: name }) => [" ", code(name)]);
    const rest = others.length > NAMED ? ` and ${others.length - NAMED} more` : "";
    const title = others.length > 1 ? `${others.length} more storms` : own ? "another storm" : "recompile storm";
    const blocks = others.slice(0, MOST).map((storm) => box("storm", ...this.#block(storm, "")));
    const summary = element("summary", element("b.lg-badge", "⚠ ", title), ...names, rest);
    this.#storms.replaceChildren(...(others.length ? [element("details", summary, ...blocks)] : []));
    this.#foreseen.replaceChildren(
      ...foreseen.map(({ text, cure: fix }) =>
        element("details", element("summary", part("foresight", "◇ predicted"), text), ...(fix ? [cure(fix)] : [])),
      ),
    );
    this.#notes.replaceChildren(...notes.map((note) => element("p", note)));
  }

  #block(about: Status["storms"][0], badge: string): Node[] {
    const sign = badge ? [element("b.lg-badge", "⚠ ", badge)] : [];
    const title = element("p.lg-title", ...sign, ...sentence(about.text));
    const name = title.querySelector("code");
    if (name && about.function)
      name.replaceWith(button({ class: "lg-link" }, () => this.open(about.function), name.cloneNode(true)));
    const parts: Node[] = [title];
    if (about.cause.length) parts.push(element("p.lg-cause", ...sentence(about.cause)));
    if (about.cure) parts.push(cured(about.cure));
    return parts;
  }

  /** What runs goes on by this page's clock. */
  tick(): void {
    const { running, now } = this.data.status;
    const later = (performance.now() - this.data.received) / 1000;
    this.#running.hidden = running.length === 0;
    this.#running.replaceChildren(
      ...running.map(({ function: name, stage, place, since }) => {
        const verb = { trace: "tracing", lower: "lowering" }[stage] ?? "compiling";
        const where = place ? part("mute", ` ${place}`) : "";
        const soFar = `… ${lasting(Math.max(now - since + later, 0))}`;
        return element("p", element("i.lg-pulse"), `${verb} `, code(name), soFar, where);
      }),
    );
  }
}

const VALUES = 8;

class Arguments {
  readonly root = box("arguments");
  #shown = "";

  constructor(private readonly data: Data) {}

  show(filter: string): void {
    const { varying } = this.data.status;
    const now = JSON.stringify([varying, filter]);
    if (now === this.#shown) return;
    this.#shown = now;
    const wanted = words(filter);
    const matches = varying.filter(({ function: name }) => wanted.every((word) => name.toLowerCase().includes(word)));
    const shown = matches.length || !wanted.length ? matches : varying;
    this.root.replaceChildren(...shown.map((entry) => this.#table(entry)));
    if (!varying.length) this.root.append(element("p.lg-none-yet", "no function compiled twice: nothing has varied"));
  }

  #table({ function: name, rows }: Status["varying"][0]): HTMLElement {
    const inOrder = [...rows].sort((a, b) => Number(b.distinct > 1) - Number(a.distinct > 1));
    const head = ["argument", "what of it", "", "values"].map((title) =>
      title ? element("th", { scope: "col" }, title) : element("td"),
    );
    const [top, body] = [element("tr", ...head), inOrder.map((row) => this.#row(row))];
    const caption = element("caption", code(name));
    return box("varying", element("table", caption, element("thead", top), element("tbody", ...body)));
  }

  #row({ path, aspect, values, distinct }: Varying): HTMLElement {
    const total = values.reduce((sum, [, count]) => sum + count, 0) || 1;
    const shown = values.slice(0, VALUES).map(([value, count]) => {
      const share = element("i", { style: `width:${Math.max((60 * count) / total, 2)}px`, "aria-hidden": "true" });
      return part("value", code(value), ...(distinct > 1 ? [share, element("small", `×${number(count)}`)] : []));
    });
    if (distinct > shown.length) shown.push(part("mute", `and ${number(distinct - shown.length)} more`));
    const verdict = distinct > 1 ? part("varies", flag(), `${number(distinct)} values`) : part("mute", "constant");
    const cells = [[aspect], [verdict], shown].map((cell) => element("td", ...cell));
    return element("tr", element("th", { scope: "row" }, code(path)), ...cells);
  }
}

addSheet(tokens + standalone + timeline + ledger);

const ORPHANED = 10_000; // milliseconds in which a newer output takes over what a notebook has taken out of the page

declare global {
  interface Window {
    /** By id, what shows a ledger: an output that is updated takes over what is there, with all that is open in it. */
    explorerLedgers?: Map<string, LedgerViewer[]>;
  }
}

export async function mount(host: HTMLElement, bytes: Uint8Array, { id }: { id: string }): Promise<LedgerViewer> {
  style(host);
  const message = await unpacked<Message>(bytes);
  const ledgers: Map<string, LedgerViewer[]> = (window.explorerLedgers ??= new Map());
  const all = ledgers.get(id) ?? [];
  ledgers.set(id, all);
  const orphan = all.find((viewer) => !viewer.root.isConnected || host.contains(viewer.root));
  if (orphan) {
    host.replaceChildren(orphan.root);
    orphan.load(message);
    return orphan;
  }
  const viewer = new LedgerViewer(message, id);
  whileInPage(viewer.root, () => {
    if (!all.includes(viewer)) all.push(viewer);
    return () => setTimeout(() => viewer.root.isConnected || all.splice(all.indexOf(viewer), 1), ORPHANED);
  });
  host.replaceChildren(viewer.root);
  viewer.start();
  return viewer;
}
