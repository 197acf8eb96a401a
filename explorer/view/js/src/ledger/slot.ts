// Where Python's answer to a click is shown: the capture of a compile, or what differs from the one before.

import { element } from "../core/dom";
import type { Call } from "./data";
import { box, button, part } from "./format";
import type { Wire } from "./wire";

const SLOW = 600; // milliseconds

export function buttons(call: Call, wire: () => Wire): HTMLElement {
  const place = box("slot");
  const root = box("look");
  const look = (what: "capture" | "diff", label: string) => {
    const made = button(
      { class: "lg-open", "data-ask": what },
      () => void show(made, what, call, wire(), place),
      label,
    );
    return made;
  };
  root.append(look("capture", "open its capture"));
  if (call.isAgain) root.append(look("diff", "what the compiler made differently"));
  if (!wire().isLive) root.append(part("mute", "needs the kernel that compiled it"));
  root.append(place);
  return root;
}

async function show(
  button: HTMLButtonElement,
  what: "capture" | "diff",
  call: Call,
  wire: Wire,
  place: HTMLElement,
): Promise<void> {
  const say = (text: string) => place.replaceChildren(element("p.lg-mute", { role: "status" }, text));
  button.setAttribute("aria-busy", "true");
  say("reading it…");
  const slow = setTimeout(() => say("The kernel is busy: it answers when the running cell has ended."), SLOW);
  const answer = await wire.ask(what, call);
  clearTimeout(slow);
  button.removeAttribute("aria-busy");
  if (answer.html === undefined) return say(answer.failed ?? "The kernel gave no answer.");
  insert(place, answer.html);
}

/** HTML as of an output: its scripts run only if they are made anew. It is explorer's own, from this kernel. */
function insert(place: HTMLElement, html: string): void {
  place.innerHTML = html;
  for (const old of place.querySelectorAll("script")) {
    if (old.type === "text/plain") continue;
    const script = document.createElement("script");
    script.type = old.type;
    script.textContent = old.textContent;
    old.replaceWith(script);
  }
}
