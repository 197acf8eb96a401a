// The language of the search field, as explorer/analysis/query.py has it: both are held to test/queries.json.

import type { Graph } from "./graph";
import { arrays, bytesOf, elements } from "./labels";

type Test = (graph: Graph) => Uint8Array;
type OnText = (text: string) => boolean;

const TEXTS = "name op type scope dtype shape file function in line through target attr".split(" ");
/** Where a custom call's target stands: in HLO, in StableHLO, in a jaxpr's `ffi_call`. */
export const TARGETS = ["custom_call_target", "call_target_name", "target_name"];
const NUMBERS = ["bytes", "elements", "rank", "operands", "users", "line"];
const UNITS: Record<string, number> = {
  ...{ "": 1, b: 1, k: 1e3, kb: 1e3, m: 1e6, mb: 1e6, g: 1e9, gb: 1e9, t: 1e12, tb: 1e12 },
  ...{ kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40 },
  ...{ s: 1, ms: 1e-3, us: 1e-6, µs: 1e-6, ns: 1e-9, "%": 0.01 },
};
const COMPARE: Record<string, (a: number, b: number) => boolean> = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "=": (a, b) => a === b,
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
};

/** A query that can't be read, or names a field that these nodes lack; the message says why. */
export class QueryError extends Error {}

/** The nodes that match a query, ascending; every node for an empty query. */
export function find(graph: Graph, query: string): number[] {
  const mask = new Parser(query).parse()(graph);
  return Array.from(mask.keys()).filter((node) => mask[node]);
}

class Parser {
  #at = 0;
  constructor(private readonly query: string) {}

  parse(): Test {
    this.#skip();
    if (this.#at === this.query.length) return (graph) => new Uint8Array(graph.size).fill(1);
    const test = this.#alternatives();
    if (this.#at < this.query.length) throw new QueryError("this parenthesis closes nothing");
    return test;
  }

  #alternatives(): Test {
    const tests = [this.#conjunction()];
    while (this.#takeWord("or")) tests.push(this.#conjunction());
    return joined(tests, (a, b) => a | b);
  }

  #conjunction(): Test {
    const tests = [this.#negation()];
    while (!this.#ends() && !this.#isWordNext("or")) {
      this.#takeWord("and");
      tests.push(this.#negation());
    }
    return joined(tests, (a, b) => a & b);
  }

  #negation(): Test {
    if (this.#takeWord("not") || this.#take("-")) return inverted(this.#negation());
    if (!this.#take("(")) return this.#term();
    this.#skip();
    const test = this.#alternatives();
    if (!this.#take(")")) throw new QueryError("a parenthesis is not closed");
    this.#skip();
    return test;
  }

  #term(): Test {
    if (this.#ends()) throw new QueryError("a word or a comparison should follow");
    const comparison = this.#match(/([A-Za-z_]\w*)\s*(<=|>=|==|!=|<|>|=)\s*/y);
    if (comparison) return this.#comparison(comparison);
    const start = this.#at;
    const [, field] = this.#match(/([A-Za-z_]\w*):(?=\S)/y) ?? [];
    if (field && TEXTS.includes(field.toLowerCase())) return this.#text(field.toLowerCase());
    this.#at = start;
    return this.#text("");
  }

  #comparison([all, name, sign]: RegExpExecArray): Test {
    const field = name!.toLowerCase();
    if (this.#ends()) throw new QueryError(`a value should follow ${all.trim()}`);
    const { kind, value } = this.#value();
    const number = kind === "word" ? numberOf(value) : undefined;
    if (NUMBERS.includes(field) || (number !== undefined && !TEXTS.includes(field))) {
      if (number === undefined) throw new QueryError(`${field} is a number, but ${value} is not`);
      return numbers(field, number, COMPARE[sign!]!);
    }
    if (!TEXTS.includes(field))
      throw new QueryError(`no node has a field ${field}; there are ${[...TEXTS, ...NUMBERS.slice(0, -1)].join(", ")}`);
    if (!/^(=|==|!=)$/.test(sign!))
      throw new QueryError(`${field} is text: it can be ==, != or ${field}:part, not ${sign}`);
    const test = field === "through" ? this.#onLines(field, value) : onText(field, same(field, value));
    return sign === "!=" ? inverted(test) : test;
  }

  #text(field: string): Test {
    const { kind, value } = this.#value();
    if (field === "line" || field === "through") return this.#onLines(field, value);
    if (kind === "regex") {
      let pattern: RegExp;
      try {
        pattern = new RegExp(value, "i");
      } catch {
        throw new QueryError(`/${value}/ is no regular expression`);
      }
      return onText(field, (text) => pattern.test(text));
    }
    if (field === "shape" || field === "dtype") return onText(field, same(field, value));
    const part = value.toLowerCase();
    const holds = (text: string) => text.toLowerCase().includes(part);
    return onText(field, field === "attr" ? attribute(value, (own, part) => own.includes(part)) : holds);
  }

  /** `12`, `10-20` or `train.py:12`: the lines that a node belongs to, or that its stack goes through. */
  #onLines(field: "line" | "through", value: string): Test {
    const span = /^(?:(.*):)?(\d+)(?:-(\d+))?$/.exec(value);
    if (!span) throw new QueryError(`a line is 12, a range like 10-20, or train.py:12, not ${value}`);
    const [low, high] = [Number(span[2]), Number(span[3] ?? span[2])];
    const file = (span[1] ?? "").toLowerCase();
    const passes = (place: { file: string; line: number }) =>
      low <= place.line && place.line <= high && isFile(place.file.toLowerCase(), file);
    return field === "line"
      ? ({ c }) => c.attribution.mask(c.attribution.places.map(passes))
      : (graph) => masked(graph, graph.through(passes));
  }

  /** A regular expression, a quoted string, or a word up to the next space or parenthesis that closes a group. */
  #value(): { kind: "regex" | "string" | "word"; value: string } {
    const regex = this.#match(/\/((?:[^/\\\s]|\\.)+)\/(?=[\s)]|$)/y);
    const string = regex ? null : this.#match(/"([^"]*)"|'([^']*)'/y);
    let value = regex?.[1] ?? string?.[1] ?? string?.[2];
    if (value === undefined) {
      const start = this.#at;
      for (let depth = 0; this.#at < this.query.length && /\S/.test(this.query[this.#at]!); this.#at++) {
        depth += { "(": 1, ")": -1 }[this.query[this.#at]!] ?? 0;
        if (depth < 0) break;
      }
      value = this.query.slice(start, this.#at);
    }
    this.#skip();
    return { kind: regex ? "regex" : string ? "string" : "word", value };
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.query);
    if (match) this.#at = pattern.lastIndex;
    return match;
  }

  #skip(): void {
    this.#match(/\s*/y);
  }

  #ends = (): boolean => this.#at >= this.query.length || this.query[this.#at] === ")";

  /** A sign that something follows; alone it is a word. */
  #take(sign: string): boolean {
    const isNext = this.query[this.#at] === sign && (sign === ")" || this.query.slice(this.#at + 1).trim() !== "");
    this.#at += isNext ? 1 : 0;
    return isNext;
  }

  /** An operator stands between spaces or parentheses, and something follows it. */
  #isWordNext(word: string): boolean {
    const rest = this.query.slice(this.#at + word.length);
    const isWord = this.query.slice(this.#at, this.#at + word.length).toLowerCase() === word && /^[\s(]/.test(rest);
    return isWord && !["", ")"].includes(rest.trim());
  }

  #takeWord(word: string): boolean {
    if (!this.#isWordNext(word)) return false;
    this.#at += word.length;
    this.#skip();
    return true;
  }
}

/** Whether a path is the one meant: all of it or its last parts; any is, if none was given. */
const isFile = (path: string, wanted: string): boolean =>
  !wanted || path === wanted || path.endsWith(`/${wanted}`) || path.endsWith(`\\${wanted}`);

function masked({ size }: Graph, nodes: number[]): Uint8Array {
  const mask = new Uint8Array(size);
  for (const node of nodes) mask[node] = 1;
  return mask;
}

function joined(tests: Test[], join: (a: number, b: number) => number): Test {
  if (tests.length === 1) return tests[0]!;
  return (graph) => {
    const [first, ...others] = tests.map((test) => test(graph));
    for (const mask of others) for (let i = 0; i < mask.length; i++) first![i] = join(first![i]!, mask[i]!);
    return first!;
  };
}

const inverted =
  (test: Test): Test =>
  (graph) =>
    test(graph).map((passes) => 1 - passes);

function numberOf(text: string): number | undefined {
  const [, digits, unit] = /^(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-zµ%]*)$/.exec(text.toLowerCase()) ?? [];
  return digits !== undefined && unit! in UNITS ? Number(digits) * UNITS[unit!]! : undefined;
}

function numbers(field: string, number: number, compare: (a: number, b: number) => boolean): Test {
  const single = Math.fround(number); // as the wire carries the others
  if (field === "line")
    return ({ c }) => c.attribution.mask(c.attribution.places.map(({ line }) => compare(Math.fround(line), single)));
  return (graph) => {
    const value = column(graph, field);
    // NaN is unknown, which is not "different" either.
    return Uint8Array.from({ length: graph.size }, (_, node) =>
      !Number.isNaN(value(node)) && compare(Math.fround(value(node)), single) ? 1 : 0,
    );
  };
}

function column(graph: Graph, field: string): (node: number) => number {
  const { c } = graph;
  const measure = c.measures[field];
  if (measure) return (node) => measure[node]!;
  const ofType = (read: (type: string) => number) => {
    const values = c.types.map(read);
    return (node: number) => values[c.type[node]!]!;
  };
  const columns: Record<string, () => (node: number) => number> = {
    operands: () => (node) => c.operandStart[node + 1]! - c.operandStart[node]!,
    users: () => (node) => graph.users(node).length,
    bytes: () => ofType(bytesOf),
    elements: () => ofType(elements),
    rank: () => ofType((type) => arrays(type)[0]?.dims.length ?? NaN),
  };
  const read = columns[field];
  if (read) return read();
  const names = [...new Set([...Object.keys(c.measures), ...NUMBERS])].join(", ");
  throw new QueryError(`these nodes have no number ${field}; they have ${names}`);
}

/** Tests each distinct string once, then looks the results up by row. */
function onText(field: string, test: OnText): Test {
  return (graph) => {
    const { c, size } = graph;
    const table = (strings: string[], code: ArrayLike<number>, parts = (text: string) => [text]) => {
      const passes = strings.map((text) => parts(text).some(test));
      return (node: number) => passes[code[node]!]!;
    };
    const ofTypes = (parts: (type: string) => string[]) => table(c.types, c.type, parts);
    const through = () => graph.through((frame) => test(frame.function));
    const fields: Record<string, () => (node: number) => boolean> = {
      name: () => (node) => test(c.names[node]!),
      op: () => table(c.ops, c.op),
      type: () => table(c.types, c.type),
      scope: () => table(c.scopes, c.scope),
      dtype: () => ofTypes((type) => arrays(type).map(({ dtype }) => dtype)),
      shape: () => ofTypes((type) => arrays(type).map(({ dims }) => dims.join(","))),
      in: () => within(c, test),
      file: () => isIn(c.attribution.mask(c.attribution.places.map((place) => test(place.file)))),
      function: () => isIn(masked(graph, through())),
      attr: () => isIn(graph.attributes?.mask((key, value) => test(`${key}=${value}`))),
      target: () => isIn(graph.attributes?.mask((key, value) => TARGETS.includes(key) && test(value))),
    };
    const searched = field ? [field] : ["name", "op", "type", "scope"];
    const passes = searched.map((name) => fields[name]!());
    return Uint8Array.from({ length: size }, (_, node) => (passes.some((pass) => pass(node)) ? 1 : 0));
  };
}

function within({ groups, groupOf }: Graph["c"], test: OnText): (node: number) => boolean {
  const passes: boolean[] = [];
  for (const { name, kind, parent } of groups) passes.push(test(name) || test(kind) || passes[parent] === true);
  return (node) => passes[groupOf[node]!] === true;
}

const isIn =
  (mask: Uint8Array | undefined) =>
  (node: number): boolean =>
    mask?.[node] === 1;

/** `key`: has it, whatever its value; `key=value`: has it with a value that compares. Tests a `key=value`. */
function attribute(query: string, compare: (own: string, wanted: string) => boolean): OnText {
  const halves = (pair: string): [key: string, value: string | undefined] => {
    const [key, ...rest] = pair.toLowerCase().split("=");
    return [key!, rest.length ? rest.join("=") : undefined];
  };
  const [key, value] = halves(query);
  return (pair) => {
    const [own, text] = halves(pair);
    return own === key && (value === undefined || compare(text!, value));
  };
}

function same(field: string, value: string): OnText {
  if (field === "attr") return attribute(value, (own, wanted) => own === wanted);
  const wanted = value.toLowerCase();
  if (field === "shape") {
    const inner = wanted.replace(/^\[+|\]+$/g, "");
    const dims = inner ? inner.replaceAll("x", ",").split(",") : [];
    return (text) => {
      const own = text ? text.toLowerCase().split(",") : [];
      return own.length === dims.length && own.every((dim, i) => ["*", "?", dim].includes(dims[i]!));
    };
  }
  // StableHLO's names carry their dialect, which nobody types.
  return (text) => text.toLowerCase() === wanted || (field === "op" && text.toLowerCase().split(".").pop() === wanted);
}
