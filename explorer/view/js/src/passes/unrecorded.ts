// What stands instead of what takes one more compilation, where that wasn't done.

import { element } from "../core/dom";

export const unrecorded = () =>
  missing(
    "The compiler's passes are not in this capture. explore() keeps them, " +
      "except for a program whose passes are too large, or with record=False.",
    "record the passes",
    " or %explore --passes f(x),",
    "passes",
  );

export const noCode = () =>
  missing(
    "The code of the kernels, below HLO, is not in this capture: that takes one more compilation.",
    "read the machine code",
    "",
    "machine_code",
  );

function missing(why: string, button: string, magic: string, attribute: string) {
  const text = `To have it here: press “${button}” under this pane while the kernel runs,${magic} or look at `;
  const read = element("code", `capture.${attribute}`);
  const how = element("p", text, read, " once before the capture is shown or saved.");
  const root = element("div.explorer-passes", element("div.empty", element("p", why), how));
  return { root, reset() {}, light() {} };
}
