// What stands in the place of the passes where they were not recorded.

import { element } from "../core/dom";

export const unrecorded = () => ({ root: element("div.explorer-passes", missing()), reset() {}, light() {} });

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
