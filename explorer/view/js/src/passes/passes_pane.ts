// The pass timeline: which passes changed something, and what each of them did.

import { element } from "../core/dom";
import { number } from "../core/labels";
import type { Session } from "../core/session";
import { ChangesPane } from "./changes";

export class PassesPane {
  readonly root: HTMLElement;
  readonly #changes: ChangesPane | undefined;

  constructor(private readonly session: Session) {
    const { passes } = session.capture;
    if (passes) {
      const of = `${number(passes.all.length)} ${passes.isComplete ? "that ran" : "recorded"}`;
      const all = `${number(passes.shown.length)} that changed something, of ${of}`;
      this.#changes = new ChangesPane([passes], {
        goLine: (place) => session.focusLine(place.file, place.line),
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
