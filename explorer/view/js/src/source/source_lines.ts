// The user's lines, and the colour that follows each of them through every pane.

import { lineKey, type SourceLine } from "../core/attribution";
import type { Capture, Source } from "../core/capture";
import type { Graph } from "../core/graph";

export const COLOURS = 6;

export class Lines {
  /** The sources to read: the user's own first, libraries after. */
  readonly sources: Source[];
  readonly #colours = new Map<string, number>();

  constructor(private readonly capture: Capture) {
    const { sources, libraries = [] } = capture.header;
    const isLibrary = ({ file }: Source) => libraries.includes(file);
    this.sources = [...sources.filter((source) => !isLibrary(source)), ...sources.filter(isLibrary)];
    this.#assignColours();
  }

  /** The line that a node belongs to. */
  place(graph: Graph, node: number): SourceLine | undefined {
    return graph.c.attribution.place(node);
  }

  colour(place: SourceLine | undefined): number {
    return place ? this.colourOf(place.file, place.line) : -1;
  }

  colourOf = (file: string, line: number): number => this.#colours.get(lineKey(file, line)) ?? -1;

  /** Neighbouring lines get different colours; the same line has its colour in every stage. */
  #assignColours(): void {
    const places = new Map<string, { file: number; line: number }>();
    const order = new Map(this.sources.map((source, i) => [source.file, i]));
    for (const stage of this.capture.stages)
      for (const { file, line } of stage.attribution.places)
        places.set(lineKey(file, line), { file: order.get(file) ?? 1e9, line });
    const sorted = [...places].sort(([, a], [, b]) => a.file - b.file || a.line - b.line);
    for (const [i, [key]] of sorted.entries()) this.#colours.set(key, i % COLOURS);
  }
}
