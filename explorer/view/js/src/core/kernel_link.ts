// The link to Python, where a kernel is alive: explorer/view/live.py registers a model for each capture it shows.

import type { AnyModel } from "@anywidget/types";
import type { AskHeader, Plain } from "../ask/answers";
import type { Bookmark, Note } from "../keep/bookmark";
import { element } from "./dom";
import { whileInPage } from "./theme";

type NodesOfStage = { stage: string; nodes: number[] };

/** What Python wants to be seen; see `View._message` in explorer/view/steer.py. */
export interface Steering {
  stage?: string;
  highlight?: NodesOfStage | null;
  filter?: NodesOfStage | null;
  /** A column of the view's menu, or numbers of Python's own. */
  colour?: ({ by: string } & Partial<NodesOfStage & { values: (number | null)[] }>) | null;
  /** Where the view shall be, as Python assigned it last. */
  bookmark?: Bookmark | null;
  /** What was written in any view of it. */
  notes?: Note[] | null;
  /** The passes are kept and not read yet. */
  reads?: boolean;
  /** The passes aren't kept: about how many seconds the compilation takes that records them. */
  records?: number;
  /** The machine code isn't there, and can be. */
  codes?: boolean;
  /** It is known what this was compiled from: the same can be compiled with something changed. */
  changes?: boolean;
}

/** The traits of Python's models; each model has those that its view needs. */
export interface Traits {
  /** The packed capture, of a widget. */
  wire: DataView;
  /** The capture's id, of a widget. */
  capture: string;
  shown: Steering;
  selected: NodesOfStage;
  /** Where a person is in the view. */
  place: Bookmark;
  /** What is new in a ledger, as JSON. */
  update: string;
}

export type Model = Omit<AnyModel<Traits>, "widget_manager">;

/** Python's answer to a request: HTML as an output has it, or code, or why there is neither. */
export interface Answer extends Partial<Record<"html" | "code" | "diff" | "failed", string>> {
  of?: number | string;
  /** To a question about the capture, as its file has them. */
  answer?: Plain;
  answers?: AskHeader;
}

declare global {
  interface Window {
    explorerModels?: Map<string, Model>;
  }
}

export const NO_KERNEL = "No kernel answers: run the notebook again.";
const SLOW = 600; // milliseconds after which a view says that the kernel is busy

export const registeredModel = (id: string): Model | undefined => window.explorerModels?.get(id);

/** What a view does when its model has something: by event, `change:shown` or `msg:custom`. */
// biome-ignore lint/suspicious/noExplicitAny: each event gives its own
type Handlers = Record<string, (...given: any[]) => void>;

/**
 * Call back with a view's own model or the one registered under an id, and whenever another takes its place: the model
 * may come after the view. Undefined where there is none, and when the view leaves the page, for a model must not keep
 * what it calls. Returns what ends it.
 */
export function onModel(
  root: HTMLElement,
  id: string,
  callback: (model: Model | undefined) => void,
  own?: Model,
  handlers: Handlers = {},
): () => void {
  let model: Model | undefined | null = null; // not known yet
  const follow = (next: Model | undefined) => {
    if (next === model) return;
    for (const [event, handler] of Object.entries(handlers)) {
      model?.off(event, handler);
      next?.on(event, handler);
    }
    model = next;
    callback(model);
  };
  return whileInPage(root, () => {
    const listener = (event: Event) => {
      if ((event as CustomEvent<string>).detail === id) follow(registeredModel(id));
    };
    follow(own ?? registeredModel(id));
    window.addEventListener("explorer-wire", listener);
    return () => {
      window.removeEventListener("explorer-wire", listener);
      follow(undefined);
    };
  });
}

/** Send the selection to Python; without a kernel nobody listens, and nothing is lost. */
export function sendSelection(id: string, model: Model | undefined, stage: string, nodes: Iterable<number>): void {
  const live = model ?? registeredModel(id);
  if (!live) return;
  try {
    live.set("selected", { stage, nodes: [...nodes] });
    live.save_changes();
  } catch {
    window.explorerModels?.delete(id); // its kernel is gone
  }
}

/** Call back with what Python sets, now and later, only what changed (null: taken back); returns what ends it. */
export function followPython(
  root: HTMLElement,
  id: string,
  model: Model | undefined,
  callback: (changed: Steering) => void,
): () => void {
  let live: Model | undefined;
  let last: Steering = {};
  const update = () => {
    const steering = live?.get("shown") ?? {};
    const keys = ["stage", "highlight", "filter", "colour", "bookmark", "notes"] as const;
    const changed = keys.filter((key) => JSON.stringify(steering[key] ?? null) !== JSON.stringify(last[key] ?? null));
    last = steering;
    if (changed.length) callback(Object.fromEntries(changed.map((key) => [key, steering[key] ?? null])));
  };
  return onModel(root, id, (next) => (live = next) && update(), model, { "change:shown": update });
}

/** Ask the kernel about one thing, which its answer names: for where answers may come in any order. */
export const request = (model: Model, ask: string, of: number | string): Promise<Answer> =>
  answered<Answer>(model, { ask, of }, (answer) => answer.of === of);

/** Send a message, and wait for the answer that passes: `patience` milliseconds at most, where that is given. */
export function answered<A extends { failed?: string }>(
  model: Model,
  message: object,
  passes: (answer: A) => boolean,
  patience?: number,
): Promise<A> {
  return new Promise((resolve) => {
    const finish = (answer: A) => {
      model.off("msg:custom", listen);
      resolve(answer);
    };
    const listen = (answer: A) => passes(answer) && finish(answer);
    model.on("msg:custom", listen);
    if (patience) setTimeout(finish, patience, { failed: NO_KERNEL });
    try {
      model.send(message);
    } catch {
      finish({ failed: NO_KERNEL } as A);
    }
  });
}

/** Wait for an answer with `button` marked as busy; where that takes long, say why. */
export async function awaitAnswer(
  button: HTMLElement,
  answer: Promise<Answer>,
  say: (text: string) => void,
): Promise<Answer> {
  button.setAttribute("aria-busy", "true");
  const slow = setTimeout(() => say("The kernel is busy: it answers when the running cell has ended."), SLOW);
  const received = await answer;
  clearTimeout(slow);
  button.removeAttribute("aria-busy");
  return received;
}

/** Show an answer's HTML, or why there is none. */
export async function showAnswer(
  button: HTMLElement,
  answer: Promise<Answer>,
  place: HTMLElement,
  className: string,
): Promise<boolean> {
  const say = (text: string) => place.replaceChildren(element("p", { class: className, role: "status" }, text));
  say("reading it…");
  const { html, failed } = await awaitAnswer(button, answer, say);
  if (html === undefined) say(failed ?? "The kernel gave no answer.");
  else insertOutput(place, html);
  return html !== undefined;
}

/** HTML as of an output: its scripts run only if they are made anew. It is explorer's own, from this kernel. */
export function insertOutput(place: HTMLElement, html: string): void {
  place.innerHTML = html;
  for (const old of place.querySelectorAll("script")) {
    if (old.type === "text/plain") continue;
    old.replaceWith(element("script", { type: old.type }, old.textContent ?? ""));
  }
}

interface Heard<A> {
  /** A kernel came, or went. */
  changed?(model: Model | undefined): void;
  /** Python wrote its output anew. */
  updated?(text: string): void;
  answered?(answer: A, buffers: DataView[]): void;
}

export class PythonLink<A extends Answer = Answer> {
  model: Model | undefined;
  readonly stop: () => void;
  #requests = 0;
  readonly #waiting = new Map<Answer["of"], (answer: Answer) => void>();

  constructor(
    root: HTMLElement,
    private readonly id: string,
    heard: Heard<A>,
    own?: Model,
  ) {
    const updated = () => {
      const text = this.model?.get("update");
      if (text) heard.updated?.(text);
    };
    const answered = (answer: A, buffers: DataView[]) => {
      heard.answered?.(answer, buffers);
      this.#waiting.get(answer.of)?.(answer);
      this.#waiting.delete(answer.of);
    };
    const follow = (model: Model | undefined) => {
      this.model = model;
      updated();
      heard.changed?.(model);
    };
    this.stop = onModel(root, id, follow, own, { "change:update": updated, "msg:custom": answered });
  }

  get isLive(): boolean {
    return this.model !== undefined;
  }

  /** The answer to a request; the kernel may be busy for long. */
  request(message: { ask: string } & Record<string, unknown>): Promise<Answer> {
    const of = `${++this.#requests}`;
    return new Promise((resolve) => {
      this.#waiting.set(of, resolve);
      if (!this.send({ ...message, of })) resolve({ failed: NO_KERNEL });
    });
  }

  send(message: unknown): boolean {
    try {
      this.model?.send(message);
    } catch {
      window.explorerModels?.delete(this.id);
      this.model = undefined;
    }
    return this.model !== undefined;
  }
}

/** A message that an output carries. */
export async function unpacked<T>(bytes: Uint8Array): Promise<T> {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text()) as T;
}
