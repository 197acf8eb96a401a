// JupyterLab's sidebar with the page of the session. A prebuilt extension is a module of webpack's federation: a
// container under its name, which is given what JupyterLab shares and gives the plugin.

import { button, element } from "../core/dom";
import { insertOutput } from "../core/kernel_link";
import { followTheme } from "../core/theme";

const NAME = "explorer-session";
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16"><g class="jp-icon3" fill="#616161">' +
  '<rect x="1" y="2" width="14" height="3" rx="1"/><rect x="1" y="6.5" width="9" height="3" rx="1"/>' +
  '<rect x="1" y="11" width="5" height="3" rx="1"/></g></svg>';

async function extension() {
  const found = await lab(ICON);
  const plugin = {
    id: `${NAME}:plugin`,
    description: "Sidebar with the functions that JAX compiled in this session.",
    autoStart: true,
    requires: [found.tracker],
    activate(app: Application, tracker: Tracker) {
      const sidebar = new Sidebar(app, found, tracker);
      app.shell.add(sidebar.widget, "right", { rank: 900 });
      app.commands.addCommand("explorer:session", {
        label: "Explorer: what was compiled in this session",
        execute: () => app.shell.activateById(sidebar.widget.id),
      });
    },
  };
  return () => ({ __esModule: true, default: plugin });
}

const PANEL = "__import__('importlib').import_module('explorer.sessions.panel')";
const IS_LOADED = "'explorer' in __import__('sys').modules and 'jax' in __import__('sys').modules";
const SLOW = 600; // milliseconds after which it says that the kernel is busy

type Answer = { version?: string; html?: string; style?: string; watching?: boolean; failed?: string };

/** Asks the kernel when it is seen and a cell has ended, another notebook is in front, or the kernel is another. */
export class Sidebar {
  readonly widget: Widget;
  #live = element("div.sp-live");
  #host = element("div.explorer-session", { style: "margin: 0; border: 0; border-radius: 0" }, this.#live);
  #version = "";
  #shown: NotebookPanel | null = null;
  #asking = false;
  #again = false;

  constructor(
    private app: Application,
    private lab: Lab,
    private tracker: Tracker,
  ) {
    this.widget = new lab.Widget();
    this.widget.id = "explorer-session";
    this.widget.title.caption = "Explorer: what was compiled in this session";
    this.widget.title.icon = lab.icon;
    this.widget.node.style.cssText = "overflow: auto; background: var(--jp-layout-color1)";
    this.widget.node.setAttribute("aria-label", "what was compiled in this session");
    this.widget.node.append(this.#host);
    this.widget.node.addEventListener("click", (event) => this.#click(event));
    const ask = () => void this.#ask();
    // A method of Lumino's, called after the panel was shown.
    this.widget.onAfterShow = ask;
    tracker.currentChanged.connect(() => {
      tracker.currentWidget?.sessionContext.kernelChanged.connect(ask);
      ask();
    });
    lab.executed.connect(ask);
    followTheme(this.#host);
  }

  get #kernel(): Kernel | null {
    return this.tracker.currentWidget?.sessionContext.session?.kernel ?? null;
  }

  async #ask(expression?: string): Promise<void> {
    if (!this.widget.isVisible) return;
    if (this.#asking) {
      this.#again = true;
      return;
    }
    const notebook = this.tracker.currentWidget;
    if (notebook !== this.#shown) [this.#version, this.#shown] = ["", notebook];
    this.#asking = true;
    try {
      await this.#update(notebook, expression ?? `page(${JSON.stringify(this.#version)})`);
    } catch (error) {
      this.#say(`The page can't be shown: ${error}`);
    } finally {
      this.#asking = false;
      if (this.#again) {
        this.#again = false;
        void this.#ask();
      }
    }
  }

  async #update(notebook: NotebookPanel | null, expression: string): Promise<void> {
    const kernel = this.#kernel;
    if (!notebook || !kernel) return this.#say("Open a notebook: what JAX compiles in it is listed here.");
    const busy = "The kernel is busy: the page appears when the running cell has ended.";
    const slow = setTimeout(() => this.#version || this.#say(busy), SLOW);
    const answer = await evaluate(kernel, `${PANEL}.${expression} if ${IS_LOADED} else None`);
    clearTimeout(slow);
    if (notebook !== this.tracker.currentWidget) return;
    if (!answer)
      return this.#say("import explorer in this notebook, and what JAX compiles from then on is listed here.");
    if (answer.failed) return this.#say(answer.failed);
    if (answer.html === undefined) return;
    this.#version = answer.version ?? "";
    this.#show(answer);
  }

  #show({ html, style, watching }: Answer): void {
    this.#live.innerHTML = html ?? "";
    for (const item of this.#live.querySelectorAll<HTMLElement>("[data-open]")) {
      item.dataset.offered = "";
      item.replaceChildren(element("button", { type: "button" }, item.textContent ?? ""));
    }
    const watch = button({ class: "xf-write" }, () => void this.#ask("watch()"), "watch from now on");
    if (!watching) this.#live.querySelector(".sp-head")?.append(element("p", watch));
    this.#host.querySelector("style")?.remove();
    this.#host.prepend(element("style", style ?? ""));
  }

  #say(text: string): void {
    const style = "padding: 12px; color: var(--jp-ui-font-color1); font: 13px/1.5 system-ui, sans-serif";
    this.#version = "";
    this.#live.replaceChildren(element("p", { role: "status", style }, text));
  }

  #click(event: Event): void {
    const pressed = (event.target as Element).closest("button");
    const item = pressed?.closest<HTMLElement>("[data-open]");
    if (pressed && item) void this.#open(pressed, item);
  }

  /** A capture wants room: what is opened is a tab of its own, beside the notebook. */
  async #open(pressed: HTMLButtonElement, item: HTMLElement): Promise<void> {
    const kernel = this.#kernel;
    if (!kernel || pressed.ariaBusy === "true") return;
    pressed.ariaBusy = "true";
    try {
      const answer = await evaluate(kernel, `${PANEL}.item(${JSON.stringify(item.dataset.open)})`);
      const tab = new this.lab.Widget();
      const name = item.closest(".sp-row")?.querySelector("h3 code")?.textContent ?? "";
      tab.id = `explorer-session-${Date.now()}`;
      tab.title.label = `${name}: ${item.textContent?.split(" (")[0]}`;
      tab.title.icon = this.lab.icon;
      tab.title.closable = true;
      tab.node.style.cssText = "overflow: auto; padding: 8px; background: var(--jp-layout-color1)";
      // Lab's own keys must not take those typed in a view.
      tab.node.dataset.lmSuppressShortcuts = "true";
      this.app.shell.add(tab, "main", { mode: "split-bottom" });
      this.app.shell.activateById(tab.id);
      if (answer?.html === undefined) tab.node.textContent = answer?.failed ?? "The kernel gave no answer.";
      else insertOutput(tab.node, answer.html);
    } finally {
      pressed.ariaBusy = "false";
    }
  }
}

/** The value of an expression of Python's, of a kind that is displayed as JSON; undefined for None. */
async function evaluate(kernel: Kernel, expression: string): Promise<Answer | undefined> {
  const request = { code: "", silent: true, store_history: false, user_expressions: { answer: expression } };
  const { content } = await kernel.requestExecute(request).done;
  const answer = content.user_expressions?.answer;
  if (answer?.status === "error") return { failed: `Explorer failed: ${answer.evalue}` };
  return answer?.data?.["application/json"] as Answer | undefined;
}

// The few things of JupyterLab that the sidebar uses: its packages are not installed for this.

export type Signal<A = unknown> = { connect(slot: (sender: unknown, args: A) => void): void };

export interface Kernel {
  requestExecute(content: {
    code: string;
    silent: boolean;
    store_history: boolean;
    user_expressions: Record<string, string>;
  }): { done: Promise<{ content: { user_expressions?: Record<string, Expression> } }> };
}

interface Expression {
  status: string;
  data?: { "application/json"?: Record<string, unknown> };
  evalue?: string;
}

export interface NotebookPanel {
  id: string;
  title: { label: string };
  sessionContext: { session: { kernel: Kernel | null } | null; kernelChanged: Signal };
}

export type Tracker = { currentWidget: NotebookPanel | null; currentChanged: Signal };

export interface Widget {
  id: string;
  node: HTMLElement;
  isVisible: boolean;
  title: { label: string; caption: string; icon?: unknown; closable: boolean };
  onAfterShow(): void;
}

export interface Application {
  shell: {
    add(widget: Widget, area: string, options?: { rank?: number; mode?: string }): void;
    activateById(id: string): void;
  };
  commands: { addCommand(id: string, options: { label: string; execute: () => void }): void };
}

type Module = Record<string, unknown>;
type Scope = Record<string, Record<string, { get: () => Promise<() => Module> }>>;

let scope: Scope = {};

export const share = (shared: Scope): void => void (scope = shared);

/** A package of the running JupyterLab; it shares one version of each. */
async function shared(name: string): Promise<Module> {
  const versions = Object.values(scope[name] ?? {});
  if (!versions.length) throw new Error(`this JupyterLab doesn't share ${name}`);
  return (await versions[0]!.get())();
}

export type Lab = { Widget: new () => Widget; tracker: unknown; executed: Signal; icon: unknown };

export async function lab(svg: string): Promise<Lab> {
  const [widgets, notebook, components] = await Promise.all(
    ["@lumino/widgets", "@jupyterlab/notebook", "@jupyterlab/ui-components"].map(shared),
  );
  const Icon = components!.LabIcon as new (options: { name: string; svgstr: string }) => unknown;
  return {
    Widget: widgets!.Widget as new () => Widget,
    tracker: notebook!.INotebookTracker,
    executed: (notebook!.NotebookActions as { executed: Signal }).executed,
    icon: new Icon({ name: "explorer:session", svgstr: svg }),
  };
}

const containers = ((window as unknown as { _JUPYTERLAB?: Record<string, unknown> })._JUPYTERLAB ??= {});
containers[NAME] = {
  init: share,
  get: (module: string) =>
    module === "./extension" ? extension() : Promise.reject(new Error(`${NAME} has no module ${module}`)),
};
