// The pass timeline: which passes changed something, and what each of them did.

import { element } from "../core/dom";
import type { Frame } from "../core/graph";
import { number } from "../core/labels";
import type { Session } from "../core/session";
import { ChangesPane } from "./changes";

const MOST = 2000; // instructions that are followed

export class PassesPane {
  readonly root: HTMLElement;
  readonly #changes: ChangesPane | undefined;
  #nodeOf?: Map<string, number>;

  constructor(private readonly session: Session) {
    const { passes } = session.capture;
    if (passes) {
      const of = `${number(passes.all.length)} ${passes.isComplete ? "that ran" : "recorded"}`;
      const all = `${number(passes.shown.length)} that changed something, of ${of}`;
      this.#changes = new ChangesPane([passes], {
        goLine: (place) => session.focusLine(place.file, place.line),
        over: (name, place) => this.#over(name, place),
        chosen: () => this.#chosen(),
        ran: (position) => `${position + 1} of ${all}`,
      });
    }
    this.root = this.#changes?.root ?? element("div.explorer-passes", missing());
  }

  /** There is one timeline, whatever stage was shown before. */
  reset(): void {
    this.#changes?.show();
  }

  light(): void {
    // The timeline has a choice of its own: instructions that died are in no stage.
    const pass = this.session.takePass();
    if (pass !== undefined) this.#changes?.show(pass);
    else this.#changes?.refilter();
  }

  hover(): void {
    const { preview, stage } = this.session;
    this.#changes?.hover(new Set(Array.from(preview.nodes).slice(0, MOST).map(stage.graph.name)), preview.lines);
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
    this.#changes?.dispose();
  }
}

function missing(): HTMLElement {
  return element(
    "div.empty",
    element(
      "p",
      "The compiler's passes are not recorded in this capture: that takes one more compilation, " +
        "and this program is a large one.",
    ),
    element(
      "p",
      "To have them here: ",
      "press “record the passes” under this pane while the kernel runs, or ",
      element("code", "%explore --passes f(x)"),
      ", or look at ",
      element("code", "capture.passes"),
      " once before the capture is shown or saved.",
    ),
  );
}
