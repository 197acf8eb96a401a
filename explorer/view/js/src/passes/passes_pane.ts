// The pass timeline: which passes changed something, and what each of them did.

import type { Frame } from "../core/graph";
import { number } from "../core/labels";
import type { Session } from "../core/session";
import { ChangesPane } from "./changes";
import type { Passes } from "./passes";

export { ChangesPane }; // a diff shows its stages as it shows passes

const MOST = 2000; // instructions that are followed

export class PassesPane {
  readonly root: HTMLElement;
  readonly #changes: ChangesPane;
  #nodeOf?: Map<string, number>;

  constructor(
    private readonly session: Session,
    passes: Passes,
  ) {
    const of = `${number(passes.all.length)} ${passes.isComplete ? "that ran" : "recorded"}`;
    const all = `${number(passes.shown.length)} that changed something, of ${of}`;
    this.#changes = new ChangesPane([passes], {
      goLine: (place) => session.focusLine(place.file, place.line),
      over: (name, place) => this.#over(name, place),
      chosen: () => this.#chosen(),
      ran: (position) => `${position + 1} of ${all}`,
    });
    this.root = this.#changes.root;
  }

  /** There is one timeline, whatever stage was shown before. */
  reset(): void {
    this.#changes.show();
  }

  light(): void {
    // The timeline has a choice of its own: instructions that died are in no stage.
    const pass = this.session.takePass();
    if (pass !== undefined) this.#changes.show(pass);
    else this.#changes.refilter();
  }

  hover(): void {
    const { preview, stage } = this.session;
    this.#changes.hover(new Set(Array.from(preview.nodes).slice(0, MOST).map(stage.graph.name)), preview.lines);
  }

  /** Snapshots are many: an instruction is that of the last stage while it bears its name, else its line. */
  #over(name?: string, place?: Frame): void {
    const { session } = this;
    this.#nodeOf ??= new Map(session.stage.graph.c.names.map((name, node) => [name, node]));
    const node = this.#nodeOf.get(name ?? "");
    if (node === undefined && place) session.previewLine(place.file, place.line);
    else session.previewNode(node);
  }

  #chosen() {
    const { focus, stage } = this.session;
    // A line's nodes come along with it: the line alone finds what left no node too.
    const nodes = focus.line ? [] : [...focus.nodes].slice(0, MOST);
    const names = new Set(stage.name === "hlo" ? nodes.map(stage.graph.name) : []);
    return { names, lines: names.size ? new Set<string>() : focus.lines };
  }

  dispose(): void {
    this.#changes.dispose();
  }
}
