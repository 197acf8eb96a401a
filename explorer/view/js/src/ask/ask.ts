// Behind the field that finds and answers: a query lights what it finds, a question is answered in a sentence.

import { button, coded, dataAt, element, hasFocus } from "../core/dom";
import { number } from "../core/labels";
import { find, QueryError } from "../core/query";
import type { Finder, Session } from "../core/session";
import { addSheet } from "../core/theme";
import { type Answer, Answers, type Chosen, plain } from "./answers";
import sheet from "./ask.css";
import type { AskKernel, AskParts } from "./ask_field";
import { nearest, type Question, wordsOf } from "./matching";

addSheet(sheet);

const ASKS = "what which who why where when how is are was were did does do has can could would in".split(" ");
const MOST_NAMES = 20_000; // that a word is held against, for a typing error
const MARKS: Record<string, string> = { inferred: "inferred", unknown: "not known" };

type Option = { text: string; note?: string; act: () => void };

export const finder: Finder = (graph, query) => {
  try {
    return { nodes: new Set(find(graph, query)) };
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    return { nodes: new Set(), fault: error.message };
  }
};

export class Ask {
  #answers: Answers;
  #pending: Promise<void> | undefined;
  readonly #root: HTMLElement;
  readonly #field: HTMLInputElement;
  readonly #list: HTMLElement;
  #options: Option[] = [];
  #active = -1;
  #found: number[] = [];
  #current = -1;
  #chosen: Chosen = {};
  #last: Node[] = [];

  constructor(
    private readonly session: Session,
    private readonly reveal: (node: number) => void,
    private readonly parts: AskParts,
    private readonly kernel?: AskKernel,
  ) {
    const { ask } = session.capture.header;
    this.#answers = new Answers(session, ask ?? {});
    if (!ask) this.#pending = this.#load();
    [this.#root, this.#field, this.#list] = [parts.root, parts.field, parts.list];
    session.finder = finder;
    const step = (by: number, sign: string, title: string) =>
      button({ tabindex: "-1", "aria-label": title, title }, () => this.step(by), sign);
    parts.steps.append(step(-1, "‹", "the hit before (N)"), step(1, "›", "the next hit (n)"));
    this.#field.title = HELP;
    this.#show([]);
    this.#listen();
    if (this.#isFocused) this.#begin();
    if (this.#text) this.#typed();
  }

  /** A display doesn't wait for answers to questions that may never be asked: they come once the kernel is idle. */
  async #load(): Promise<void> {
    const header = await this.kernel?.answers();
    this.#pending = undefined;
    this.#answers = new Answers(this.session, header ?? {});
    if (this.#isFocused && !this.#last.length) this.#typed();
  }

  /** What is chosen otherwise is no longer what was searched. */
  forget(): void {
    this.#found = [];
    this.#count();
    if (!hasFocus(this.#root)) this.#field.value = "";
  }

  step(by: number): boolean {
    const { length } = this.#found;
    if (!length) return false;
    this.#current = this.#current < 0 && by < 0 ? length - 1 : (this.#current + by + length) % length;
    this.#count();
    this.reveal(this.#found[this.#current]!);
    return true;
  }

  #listen(): void {
    const root = this.#root;
    this.#field.addEventListener("focus", () => this.#begin());
    this.#field.addEventListener("input", () => this.#typed());
    root.addEventListener("keydown", (event) => this.#key(event));
    root.addEventListener("focusout", ({ relatedTarget }) => {
      if (!root.contains(relatedTarget as Node | null)) this.#expand(false);
    });
    this.#list.addEventListener("pointerdown", (event) => {
      if ((event.target as Element).closest("[role=option]")) event.preventDefault(); // the field keeps the keyboard
    });
    this.#list.addEventListener("click", (event) => {
      this.#options[Number(dataAt(event, "option") ?? -1)]?.act();
    });
  }

  /** What is chosen now is what *this* means: typing may light something else. */
  #begin(): void {
    const { session } = this;
    const { stage, focus, chosenNode } = session;
    if (!focus.query) this.#chosen = { node: stage.name === "hlo" ? chosenNode : undefined, line: focus.line };
    if (this.#last.length && !this.#field.value) this.#open(this.#last);
    else this.#suggest();
  }

  get #text(): string {
    return this.#field.value.trim();
  }

  /** A question, by its first word or its end; while that may still become one, nothing is searched. */
  get #isQuestion(): boolean {
    const [first = "", ...rest] = this.#text.toLowerCase().split(/\s+/);
    if (!this.#answers.questions.length && !this.#pending) return false;
    return this.#text.endsWith("?") || ASKS.some((word) => word === first || (!rest.length && word.startsWith(first)));
  }

  #typed(): void {
    this.#current = -1;
    this.#last = [];
    if (this.#isQuestion && this.#text) this.#found = [];
    else {
      this.session.search(this.#field.value);
      this.#found = [...this.session.focus.nodes].sort((a, b) => a - b);
    }
    this.#count();
    this.#suggest();
  }

  #count(): void {
    const { length } = this.#found;
    const all = this.#current < 0 ? `${number(length)} found` : `${number(this.#current + 1)} of ${number(length)}`;
    this.parts.steps.hidden = !length;
    this.parts.hits.textContent = length ? all : "";
  }

  /** The questions that the words may mean; all of them for none, and a spelling that finds something. */
  #suggest(): void {
    const text = this.#text;
    const { focus, stage } = this.session;
    const questions = text ? this.#likely(text) : this.#answers.questions;
    const options = this.#offered(questions, text);
    if (text && !this.#isQuestion && !this.#found.length && !focus.fault) {
      const word = text.split(/\s+/).at(-1)!.replace(/^\w+:/, "");
      const { names, ops, scopes } = stage.graph.c;
      const parts = scopes.flatMap((scope) => scope.split("/"));
      const near = nearest(word, new Set([...ops, ...parts, ...names.slice(0, MOST_NAMES)]));
      const meant = near && text.replace(word, near);
      if (meant) options.unshift({ text: meant, note: "did you mean", act: () => this.#search(meant) });
    }
    const isNone = text && !this.#isQuestion && !options.length && !this.#found.length; // a question may be unfinished
    this.#show(options, isNone ? this.#nothing(focus.fault) : undefined);
  }

  /** The questions that have the words; while the last one is being typed, those that it may become. */
  #likely(text: string): Question[] {
    const ranked = this.#answers.ranked(text).map(({ question }) => question);
    if (ranked.length) return ranked;
    const typed = text.toLowerCase();
    const last = wordsOf(text).at(-1) ?? "";
    return this.#answers.questions.filter(
      ([, title, words]) =>
        title.toLowerCase().startsWith(typed) ||
        (this.#isQuestion && last.length > 2 && words.some((word) => word.startsWith(last))),
    );
  }

  #nothing(fault?: string): Node {
    const { length } = this.#answers.questions;
    const search = length ? "No results." : "No results. Questions need a running kernel: run this cell again.";
    const none = this.#isQuestion ? "I can't answer that yet. Try one of the questions in the list." : search;
    return element("p.none", fault ?? none);
  }

  /** Find what a text finds, as if it had been typed. */
  find(text: string): void {
    this.#field.value = text;
    this.#typed();
  }

  #search(text: string): void {
    this.find(text);
    this.step(1);
  }

  /** The likeliest question; where two are as likely, they are there to choose from. */
  async #ask(text: string): Promise<void> {
    await this.#pending;
    const question = this.#answers.meant(text);
    if (question) void this.#reply(question, text);
    else if (this.#options.length === 1) this.#options[0]!.act();
    else if (!this.#options.length) this.#show(this.#offered(this.#answers.questions), this.#nothing());
  }

  #offered(questions: Question[], asked = ""): Option[] {
    return questions.map((question) => ({
      text: question[1],
      act: () => void this.#reply(question, asked || question[1]),
    }));
  }

  async #reply(question: Question, text: string): Promise<void> {
    const answer = this.#answers.answer(question, text, this.#chosen);
    this.#tell(answer);
    const asked = this.#answers.isLive(question, text) ? this.kernel?.question(text || question[1]) : undefined;
    if (!asked) return;
    this.#list.append(element("p.none", { role: "status" }, "asking the kernel…"));
    const live = await asked;
    if (live) this.#tell(plain(question[0], question[1], live));
    else this.#list.lastElementChild?.remove();
  }

  #tell({ question, text, certainty, stage, nodes, hint }: Answer): void {
    const { session } = this;
    const leads = nodes.length > 0 && session.capture.stages.some(({ name }) => name === stage);
    const select = () => {
      session.focusNodes(stage, nodes, "in this answer");
      this.reveal(nodes[0]!);
    };
    const follow = () => {
      select();
      this.#expand(false);
    };
    if (leads) select();
    const about = { class: "sentence", title: "show what this is about" };
    const sentence = leads ? button(about, follow, ...coded(text)) : element("p.sentence", ...coded(text));
    const mark = MARKS[certainty] ? [element("em", MARKS[certainty])] : [];
    const more = hint ? [element("code", hint)] : [];
    this.#open([element("div.answer", { role: "status" }, element("small", question), sentence, ...mark, ...more)]);
  }

  #open(content: Node[]): void {
    this.#options = [];
    this.#active = -1;
    this.#last = content;
    this.#list.replaceChildren(...content);
    this.#list.role = "group";
    this.#expand(true);
  }

  #show(options: Option[], before?: Node): void {
    this.#options = options;
    this.#active = -1;
    this.#list.role = "listbox";
    const rows = options.map(({ text, note }, i) => {
      const about = { role: "option", id: `${this.#list.id}-${i}`, "data-option": i, "aria-selected": "false" };
      return element("div.option", about, ...(note ? [element("small", `${note} `)] : []), text);
    });
    this.#list.replaceChildren(...(before ? [before] : []), ...rows);
    this.#expand(this.#list.childElementCount > 0 && this.#isFocused);
    this.#mark();
  }

  get #isFocused(): boolean {
    return (this.#root.getRootNode() as Document | ShadowRoot).activeElement === this.#field;
  }

  #expand(isOpen: boolean): void {
    this.#root.classList.toggle("open", isOpen);
    this.#field.setAttribute("aria-expanded", String(isOpen));
  }

  #mark(): void {
    for (const [i, option] of [...this.#list.querySelectorAll("[role=option]")].entries())
      option.setAttribute("aria-selected", String(i === this.#active));
    if (this.#active < 0) this.#field.removeAttribute("aria-activedescendant");
    else this.#field.setAttribute("aria-activedescendant", `${this.#list.id}-${this.#active}`);
    this.#list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }

  #key(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.target !== this.#field && event.key !== "Escape") return;
    const { length } = this.#options;
    if (event.key === "Escape") this.#leave();
    else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && length) {
      this.#expand(true);
      this.#active = (this.#active + (event.key === "ArrowDown" ? 1 : this.#active < 0 ? 0 : -1) + length) % length;
      this.#mark();
    } else if (event.key === "Enter") this.#enter(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  }

  #enter(by: number): void {
    const text = this.#text;
    if (this.#active >= 0) this.#options[this.#active]!.act();
    else if (this.#isQuestion && text) void this.#ask(text);
    else if (!this.step(by) && this.#options.length) this.#options[0]!.act();
  }

  #leave(): void {
    this.#expand(false);
    this.#last = [];
    if (this.session.focus.query) this.session.search("");
    this.#field.value = "";
    this.forget();
    this.#field.blur();
  }
}

const HELP = `questions: why are there transposes?  who removed line 5?
words: softmax exp
in a field: op:dot  scope:attention  line:12  through:12  shape:8,*  dtype:bf16  function:block  in:body
attributes: target:getrf  attr:replica_groups  attr:dimensions={1}
whole: op == "copy"
numbers: bytes > 1MB  flops >= 2G  rank == 3  users > 4
regular expressions: /^dot/  name:/fusion/
combined: and, or, not, ( )`;
