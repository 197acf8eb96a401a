// The link to Python, where the kernel is alive: it opens what was compiled below the profile.

import { element } from "../core/dom";
import type { Model } from "../core/kernel_link";
import { box, button } from "./format";

interface Talking extends Omit<Model, "on"> {
  send(message: unknown): void;
  on(event: string, callback: (answer: Answer) => void): void;
}

interface Answer {
  of?: string;
  html?: string;
  failed?: string;
}

const SLOW = 600; // milliseconds

export class Wire {
  readonly slot = box("slot");
  #asked = 0;
  #waiting?: (answer: Answer) => void;
  #model: Talking | undefined;

  constructor(
    private readonly id: string,
    private readonly changed: () => void,
  ) {
    const registered = (event: Event) => {
      if ((event as CustomEvent<string>).detail === id) this.#follow();
    };
    window.addEventListener("explorer-wire", registered);
    this.#follow();
  }

  get isLive(): boolean {
    return this.#model !== undefined;
  }

  #follow(): void {
    const found = window.explorerModels?.get(this.id) as unknown as Talking | undefined;
    if (!found || found === this.#model) return;
    this.#model = found;
    found.on("msg:custom", (answer) => {
      if (answer.of === `${this.#asked}`) this.#waiting?.(answer);
    });
    this.changed();
  }

  /** A button that opens the program of a kernel in the viewer, with its times. */
  button(program: number, label: string): HTMLElement {
    const made = button({ class: "pf-open" }, () => void this.#open(made, program), label);
    return made;
  }

  async #open(from: HTMLElement, program: number): Promise<void> {
    const say = (text: string) => this.slot.replaceChildren(element("p.pf-mute", { role: "status" }, text));
    from.setAttribute("aria-busy", "true");
    say("reading it…");
    const slow = setTimeout(() => say("The kernel is busy: it answers when the running cell has ended."), SLOW);
    const answer = await this.#ask(program);
    clearTimeout(slow);
    from.removeAttribute("aria-busy");
    if (answer.html === undefined) return say(answer.failed ?? "The kernel gave no answer.");
    this.#insert(answer.html);
    this.slot.scrollIntoView({ block: "nearest" });
  }

  #ask(program: number): Promise<Answer> {
    const of = `${++this.#asked}`;
    return new Promise((resolve) => {
      this.#waiting = resolve;
      try {
        this.#model!.send({ ask: "capture", of, program });
      } catch {
        window.explorerModels?.delete(this.id); // its kernel is gone
        this.#model = undefined;
        resolve({ failed: "No kernel answers: run the notebook again." });
      }
    });
  }

  /** HTML as of an output: its scripts run only if they are made anew. It is explorer's own, from this kernel. */
  #insert(html: string): void {
    this.slot.innerHTML = html;
    for (const old of this.slot.querySelectorAll("script")) {
      if (old.type === "text/plain") continue;
      const script = element("script", { type: old.type }, old.textContent ?? "");
      old.replaceWith(script);
    }
  }
}
