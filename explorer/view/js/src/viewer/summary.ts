// The sentence on top: each fact leads to what it speaks of.

import { element } from "../core/dom";
import { rove } from "../core/roving";
import type { Session } from "../core/session";

/** Nothing where nothing is known, as of a file of an earlier version. */
export function summary(session: Session, choose: (stage: string, nodes: number[]) => void): HTMLElement {
  const root = element("p.summary");
  for (const { text, stage, nodes } of session.capture.header.summary ?? []) {
    const leads = nodes.length && session.capture.stages.some(({ name }) => name === stage);
    const fact = leads
      ? element("button", { type: "button", title: "show what this is about" }, text)
      : element("span", text);
    if (leads) {
      fact.addEventListener("click", () => choose(stage, nodes));
      fact.addEventListener("pointerenter", () => session.previewNodes(stage, nodes));
      fact.addEventListener("pointerleave", () => session.previewItem(undefined));
    }
    root.append(fact, " ");
  }
  rove(root, "button");
  return root;
}
