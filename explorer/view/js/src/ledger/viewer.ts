// The ledger: the verdict, the timeline, and below it one of functions, stacks and arguments.

import { element } from "../core/dom";
import type { Model } from "../core/kernel_link";
import { button } from "../core/parts";
import { followTheme } from "../core/theme";
import { Arguments } from "./arguments";
import { type Call, Data, type Group, grouped, type Message, matching } from "./data";
import { box, keyed, number } from "./format";
import { Functions } from "./functions";
import { Head } from "./head";
import { buttons } from "./slot";
import { Stacks } from "./stacks";
import { newState } from "./state";
import { Timeline } from "./timeline";
import { Wire } from "./wire";

const TABS = ["functions", "stacks", "arguments"] as const;
const TICK = 500; // milliseconds, while something runs

export class LedgerViewer {
  readonly root = element("div.explorer.ledger");
  readonly #data: Data;
  readonly #wire: Wire;
  readonly #state = newState();
  readonly #head: Head;
  readonly #timeline: Timeline;
  readonly #functions: Functions;
  readonly #stacks: Stacks;
  readonly #arguments: Arguments;
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
  readonly #stopTheme: () => void;
  #timer?: ReturnType<typeof setInterval>;
  #drawing = 0;

  constructor(message: Message, id: string, model?: Model) {
    this.#data = new Data(message);
    this.#head = new Head(this.#data, (name) => this.#openFunction(name));
    this.#timeline = new Timeline(
      this.#data,
      (call) => this.#choose(call),
      (group) => this.#openFunction(group.name),
    );
    this.#functions = new Functions(this.#state, { buttons: (call) => buttons(call, () => this.#wire) }, (call) =>
      this.#timeline.light(call),
    );
    this.#stacks = new Stacks(this.#state, (name) => this.#openFunction(name));
    this.#arguments = new Arguments(this.#data);
    this.#search.addEventListener("input", () => {
      this.#state.filter = this.#search.value;
      this.#update();
    });
    this.#body.addEventListener("scroll", () => (this.#state.top = this.#body.scrollTop));
    this.#makeTools();
    this.root.append(this.#head.root, this.#timeline.root, this.#tools, this.#body);
    this.#stopTheme = followTheme(this.root);
    this.#wire = new Wire(this.root, id, this.#data, () => this.#later(), model);
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

  dispose(): void {
    clearInterval(this.#timer);
    this.#stopTheme();
  }

  #makeTools(): void {
    const tabs = element("div.lg-tabs", { role: "tablist", "aria-label": "ledger" });
    for (const name of TABS) {
      tabs.append(button({ role: "tab", "data-tab": name }, () => this.#turn(name), name));
    }
    tabs.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const at = TABS.indexOf(this.#state.tab as (typeof TABS)[number]);
      this.#turn(TABS[(at + step + TABS.length) % TABS.length]!);
      tabs.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
    });
    this.#tools.append(tabs, this.#kept, element("span.stretch"), this.#watched, this.#search);
  }

  #turn(tab: string): void {
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

  /**
   * Messages come up to four times a second, and more may wait: they are drawn together, and only where they are seen.
   */
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
    this.#watched.textContent = this.#data.status.watching
      ? this.#wire.isLive
        ? "● watching"
        : "● watching when saved"
      : "";
    for (const tab of this.#tools.querySelectorAll<HTMLElement>("[data-tab]")) {
      const isThis = tab.dataset.tab === this.#state.tab;
      tab.setAttribute("aria-selected", String(isThis));
      tab.tabIndex = isThis ? 0 : -1;
    }
    this.#body.setAttribute("aria-label", this.#state.tab);
    this.#showTab(calls);
    this.#keepTime();
  }

  #showTab(calls: readonly Call[]): void {
    const pane = { functions: this.#functions, stacks: this.#stacks, arguments: this.#arguments }[
      this.#state.tab as (typeof TABS)[number]
    ];
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
