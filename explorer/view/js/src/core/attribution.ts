// Which line of the user's code each node belongs to: explorer/analysis/attribution.py decides, here it is looked up.

import { rowOf } from "./buckets";

export const lineKey = (file: string, line: number): string => `${line}\u0000${file}`;

/** A line of the source; the function that it stands in, as frames call it. */
export type SourceLine = { file: string; line: number; function: string };

/** See explorer/model/attribution.py; a node's row each, and compressed rows of the nodes of each place. */
export type AttributionColumns = Record<"line" | "mark" | "by" | "equation" | "start" | "node", Int32Array>;

const SERVES = 3;
const EQUATION = 2;

export class Attribution {
  #codes_?: Map<string, number>;

  constructor(
    readonly places: SourceLine[],
    private readonly c: AttributionColumns,
  ) {}

  /** The line of a node, of a kernel the one that it is named for. */
  place = (node: number): SourceLine | undefined => this.places[this.c.line[node] ?? -1];

  /** The nodes that belong to a line, a kernel to each line of what is inside it. */
  nodes(file: string, line: number): Int32Array {
    this.#codes_ ??= new Map(this.places.map((place, code) => [lineKey(place.file, place.line), code]));
    return this.nodesAt(this.#codes_.get(lineKey(file, line)) ?? -1);
  }

  nodesAt = (code: number): Int32Array => rowOf({ start: this.c.start, list: this.c.node }, code);

  /** Which nodes belong to one of the places that pass. */
  mask(passes: boolean[]): Uint8Array {
    const mask = new Uint8Array(this.c.line.length);
    for (const [code, does] of passes.entries()) if (does) for (const node of this.nodesAt(code)) mask[node] = 1;
    return mask;
  }

  /** The node whose line a node has, if it has one: itself, or the one that it serves. */
  owner(node: number): number {
    const by = this.c.by[node]!;
    return by >= 0 ? by : node;
  }

  /** The node that one serves, whose line it therefore has. */
  served = (node: number): number | undefined => (this.c.mark[node] === SERVES ? this.c.by[node] : undefined);

  /** The equation whose line a node has that lost its own: its row in the first stage. */
  equation = (node: number): number | undefined => (this.c.mark[node] === EQUATION ? this.c.equation[node] : undefined);
}
