// The user's lines: which line a node belongs to, and the colour that follows it through every pane.

import type { Capture, Source } from "../core/capture";
import type { Frame, Graph } from "../core/graph";

export const COLOURS = 6;
const LIBRARY = /[/\\](site|dist)-packages[/\\]|[/\\]lib[/\\]python/;

export const lineKey = (file: string, line: number): string => `${line}\u0000${file}`;

export class Lines {
  /** The sources to read: the user's own first, libraries after. */
  readonly sources: Source[];
  readonly #own: Set<string>;
  readonly #colours = new Map<string, number>();
  readonly #ofFrame = new Map<Frame[], (Frame | undefined)[]>();

  constructor(private readonly capture: Capture) {
    const all = capture.header.sources;
    const own = all.filter((source) => !LIBRARY.test(source.file));
    this.sources = [...own, ...all.filter((source) => !own.includes(source))];
    this.#own = new Set((own.length ? own : all).map((source) => source.file));
    this.#assignColours();
  }

  /** The innermost frame in the user's own files; in a library only where there is no other. */
  place(graph: Graph, node: number): Frame | undefined {
    return this.framePlaces(graph.c.frames)[graph.c.frame[node]!];
  }

  /** For each frame of a graph, its place and the place's colour, -1 for none. */
  frames(graph: Graph): { place: Frame | undefined; colour: number }[] {
    return this.framePlaces(graph.c.frames).map((place) => ({ place, colour: this.colour(place) }));
  }

  /** For each frame of a table, its place. */
  framePlaces(frames: Frame[]): (Frame | undefined)[] {
    let places = this.#ofFrame.get(frames);
    if (!places) {
      places = frames.map((frame) => {
        for (let at: Frame | undefined = frame, steps = 0; at && steps < 64; at = frames[at.parent], steps++)
          if (this.#own.has(at.file)) return at;
        return frame;
      });
      this.#ofFrame.set(frames, places);
    }
    return places;
  }

  colour(frame: Frame | undefined): number {
    return frame ? (this.#colours.get(lineKey(frame.file, frame.line)) ?? -1) : -1;
  }

  colourOf = (file: string, line: number): number => this.#colours.get(lineKey(file, line)) ?? -1;

  /** Neighbouring lines get different colours; the same line has its colour in every stage. */
  #assignColours(): void {
    const places = new Map<string, { file: number; line: number }>();
    const order = new Map(this.sources.map((source, i) => [source.file, i]));
    for (const stage of this.capture.stages)
      for (const frame of this.framePlaces(stage.frames))
        if (frame)
          places.set(lineKey(frame.file, frame.line), { file: order.get(frame.file) ?? 1e9, line: frame.line });
    const sorted = [...places].sort(([, a], [, b]) => a.file - b.file || a.line - b.line);
    for (const [i, [key]] of sorted.entries()) this.#colours.set(key, i % COLOURS);
  }
}
