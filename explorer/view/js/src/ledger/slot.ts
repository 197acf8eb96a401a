// Where Python's answer to a click is shown: the capture of a compile, or what differs from the one before.

import { showAnswer } from "../core/kernel_link";
import { button } from "../core/parts";
import type { Call } from "./data";
import { box, part } from "./format";
import type { Wire } from "./wire";

export function buttons(call: Call, wire: () => Wire): HTMLElement {
  const place = box("slot");
  const root = box("look");
  const look = (what: "capture" | "diff", label: string) => {
    const node = button(
      { class: "lg-open", "data-ask": what },
      () => void showAnswer(node, wire().request(what, call), place, "lg-mute"),
      label,
    );
    return node;
  };
  root.append(look("capture", "open its capture"));
  if (call.isAgain) root.append(look("diff", "what the compiler made differently"));
  if (!wire().isLive) root.append(part("mute", "needs the kernel that compiled it"));
  root.append(place);
  return root;
}
