// The answers of a capture: explorer/analysis/questions.py writes them, here they are looked up.

import { kernelsOf, opText } from "../core/labels";
import { lineKey } from "../core/links";
import type { FocusLine, Session } from "../core/session";
import { LINE, type Match, meant, type Question, rank, wordsOf } from "./matching";

export type Plain = [text: string, certainty: string, stage: string, nodes: number[], hint: string];

type OfLine = [file: string, line: number, ...answer: Plain];

/** What `answers` of explorer/analysis/questions.py gives: a file carries it, a kernel sends it. */
export interface AskHeader {
  /** Key, title, and the words, hints and slots of each. */
  questions?: [key: string, title: string, ...lists: string[]][];
  answers?: Record<string, Plain>;
  /** By how a person calls an operation, what the jaxpr calls it. */
  operations?: Record<string, string>;
  removed_ops?: Record<string, Plain>;
  removed_lines?: OfLine[];
  machine_lines?: OfLine[];
  /** Words of its arguments' names. */
  arguments?: string[];
  /** Words that no question needs. */
  silent?: string;
}

export interface Answer extends Record<"key" | "question" | "text" | "certainty" | "stage" | "hint", string> {
  nodes: number[];
}

/** What is chosen when a question begins: what `this` means. */
export type Chosen = { node?: number | undefined; line?: FocusLine | undefined };

/** Those that a kernel answers better than the page. */
const LIVE = ["recompiled", "remat", "hardware", "duration", "compiling", "passes"];

export class Answers {
  readonly #header: AskHeader;
  #names_?: Set<string>;
  #questions?: Question[];
  /** By question, what it says of each line. */
  readonly #lines: Record<string, Map<string, Plain>>;

  constructor(
    private readonly session: Session,
    header: AskHeader,
  ) {
    this.#header = header;
    const byLine = (rows: OfLine[] = []) =>
      new Map(rows.map(([file, line, ...answer]) => [lineKey(file, line), answer]));
    const { removed_lines: removed, machine_lines: machine } = this.#header;
    this.#lines = { removed: byLine(removed), machine: byLine(machine) };
  }

  get questions(): Question[] {
    const lists = (texts: string[]) => texts.map((text) => text.split(" ")) as [string[], string[], string[]];
    this.#questions ??= (this.#header.questions ?? []).map(([key, title, ...texts]) => [key, title, ...lists(texts)]);
    return this.#questions;
  }

  /** The questions that a text may mean, the likeliest first. */
  ranked(text: string): Match[] {
    const isName = this.#names;
    const silent = new Set(this.#header.silent?.split(" "));
    return rank(text, this.questions, silent, (word) => this.#operation([word]) !== "" || isName.has(word));
  }

  /** What a text means for certain; undefined where nothing does, or two as much. */
  meant(text: string): Question | undefined {
    return meant(this.ranked(text));
  }

  /** Whether only a kernel can answer a text as well as it can be: the page carries no answer for what it names. */
  isLive([key, , , , slots]: Question, text: string): boolean {
    const [line] = LINE.exec(text) ?? [];
    return LIVE.includes(key) || (line !== undefined && slots.includes("line") && !this.#lines[key]?.size);
  }

  answer([key, title]: Question, text: string, chosen: Chosen): Answer {
    const found = this.#particular[key]?.(text, chosen);
    return plain(key, title, found ?? this.#header.answers![key]!);
  }

  /** The questions that are about something a person writes or has chosen. */
  readonly #particular: Record<string, (text: string, chosen: Chosen) => Plain | undefined> = {
    made: (text, chosen) => this.#made(text, chosen),
    removed: (text, chosen) => this.#removed(text, chosen),
    machine: (text, chosen) => this.#ofLine("machine", text, chosen),
    slow: (text) => ofALine(text),
    totals: (text) => ofALine(text),
    sharded: (text, chosen) => this.#sharded(text, chosen),
  };

  get #names(): Set<string> {
    if (!this.#names_) {
      const { names } = this.session.capture.stage("hlo").graph.c;
      this.#names_ = new Set([...names.map((name) => name.toLowerCase()), ...(this.#header.arguments ?? [])]);
    }
    return this.#names_;
  }

  #operation(words: string[]): string {
    const names = this.#header.operations ?? {};
    const begun = (word: string) =>
      Object.entries(names).find(([name]) => name.length > 3 && word.startsWith(name))?.[1];
    const found = (word: string) => (Object.hasOwn(names, word) && names[word]) || begun(word);
    return words.map(found).find(Boolean) || "";
  }

  /** Of a line that is written or chosen, or of an operation. */
  #removed(text: string, chosen: Chosen): Plain | undefined {
    const op = this.#operation(wordsOf(text));
    if (op && !LINE.test(text)) return this.#header.removed_ops?.[op];
    const number = LINE.exec(text)?.[1];
    const none: Plain = [`There is no equation of line ${number}.`, "exact", "", [], ""];
    return this.#ofLine("removed", text, chosen) ?? (number === undefined ? undefined : none);
  }

  /** What a question says of the line that is written, else of the one that is chosen. */
  #ofLine(key: string, text: string, { line, node }: Chosen): Plain | undefined {
    const { capture } = this.session;
    const number = LINE.exec(text)?.[1];
    const place = line ?? (node === undefined ? undefined : this.session.lines.place(capture.stage("hlo").graph, node));
    if (number !== undefined) return this.#lines[key]?.get(lineKey(capture.header.file, Number(number)));
    return place && this.#lines[key]?.get(lineKey(place.file, place.line));
  }

  /** How a value that is named, else the one that is chosen, lies on the devices: as `sharded` of devices.py has it. */
  #sharded(text: string, { node }: Chosen): Plain | undefined {
    const stage = this.session.capture.stage("hlo");
    const { graph, shardings } = stage;
    if (!shardings) return undefined;
    const words: string[] = text.toLowerCase().match(/[\w.-]+/g) ?? [];
    const isArgument = (at: number) => graph.op(at) === "parameter" && graph.scope(at) !== "";
    const named = Array.from({ length: graph.size }, (_, at) => at).find(
      (at) =>
        (isArgument(at) && words.includes(graph.scope(at).toLowerCase().match(/\w+/g)?.at(-1) ?? "")) ||
        words.includes(graph.name(at).toLowerCase()),
    );
    const at = named ?? node;
    if (at === undefined) return undefined;
    const name = isArgument(at) ? graph.scope(at) : graph.name(at);
    const mesh = shardings.mesh.map(([axis, size]) => `${axis} ${size}`).join(" × ");
    const count = shardings.mesh.reduce((all, [, size]) => all * size, 1);
    const says = `On ${count} devices (${mesh}) ${name} is ${shardings.text(at)}: ${shardings.way(at)}.`;
    return [says, "exact", "hlo", [at], ""];
  }

  /** The lines that a kernel was made of: as `made` of explorer/analysis/kernel_questions.py has it. */
  #made(text: string, { node }: Chosen): Plain | undefined {
    const { capture } = this.session;
    const [first, stage] = [capture.stages[0]!, capture.stage("hlo")];
    if (stage.name !== "hlo") return undefined;
    const { graph } = stage;
    const named = text
      .split(/\s+/)
      .map((word) => graph.c.names.indexOf(word.replace(/^[?,;:()'"`]+|[?,;:()'"`]+$/g, "")));
    const at = named.find((index) => index >= 0) ?? node;
    if (at === undefined) return undefined;
    const kernel = kernelsOf(graph, [at])[0] ?? at;
    const lines = new Map<string, { name: string; order: string; ops: Set<string>; isSure: boolean }>();
    for (const inner of graph.within(kernel)) {
      const place = stage.attribution.place(inner);
      if (!place) continue;
      const key = lineKey(place.file, place.line);
      const label = this.session.lines.sources.find(({ file }) => file === place.file)?.label ?? place.file;
      const of = place.file === capture.header.file ? "" : ` of ${label}`;
      const order = `${place.file}\u0000${String(place.line).padStart(8)}`;
      const row = lines.get(key) ?? { name: `line ${place.line}${of}`, order, ops: new Set(), isSure: false };
      lines.set(key, row);
      for (const equation of capture.linked(stage, inner, first)) row.ops.add(opText(first.graph.op(equation)));
      row.isSure ||= stage.sets?.gradeOf(inner) === "exact";
    }
    const rows = [...lines.values()].sort((a, b) => (a.order < b.order ? -1 : 1));
    const name = graph.name(kernel);
    if (!rows.length) return [`The compiler names no line for ${name}.`, "unknown", "hlo", [kernel], ""];
    const parts = rows.map(({ name, ops }) => (ops.size ? `${name} (${[...ops].join(", ")})` : name));
    const certainty = rows.every(({ isSure }) => isSure) ? "exact" : "inferred";
    return [`${name} is made of ${listed(parts)}.`, certainty, "hlo", [kernel], ""];
  }
}

/** The answer about one line's cost where no kernel answers. */
const ofALine = (text: string): Plain | undefined =>
  LINE.test(text) ? ["The Lines tab has what each line costs.", "unknown", "", [], ""] : undefined;

export function plain(key: string, question: string, answer: Plain): Answer {
  const [text, certainty, stage, nodes, hint] = answer;
  return { key, question, text, certainty, stage, nodes, hint };
}

/** As a sentence has them; of more than four the first three, and how many follow. */
function listed(names: string[]): string {
  const parts = names.length <= 4 ? names : [...names.slice(0, 3), `${names.length - 3} more`];
  return [parts.slice(0, -1).join(", "), parts.at(-1)!].filter(Boolean).join(" and ");
}
