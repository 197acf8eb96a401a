// On top: what recompiled most, what it cost and the cure; storms; and what compiles right now.

import { element } from "../core/dom";
import { button, code, sentence } from "../core/parts";
import { lasting } from "./clock";
import type { Data, Status } from "./data";
import { box, cure, cured, part } from "./format";

const NAMED = 3;
const MOST = 20;

export class Head {
  readonly root = box("head");
  readonly #verdict = element("div.lg-verdict", { role: "status" });
  readonly #running = box("running");
  readonly #storms = box("storms");
  readonly #foreseen = box("foreseen");
  readonly #notes = box("notes");
  #shown = "";

  constructor(
    private readonly data: Data,
    private readonly open: (name: string) => void,
  ) {
    this.root.append(this.#verdict, this.#storms, this.#running, this.#foreseen, this.#notes);
  }

  update(): void {
    const { verdict, storms, foreseen, notes } = this.data.status;
    this.tick();
    const now = JSON.stringify([verdict, storms, foreseen, notes]);
    if (now === this.#shown) return; // a button in use stays where it is
    this.#shown = now;
    const own = storms.find((storm) => storm.function === verdict.function);
    this.root.classList.toggle("again", verdict.kind === "again");
    this.root.classList.toggle("storm", own !== undefined);
    this.#verdict.replaceChildren(...this.#block(verdict, own ? "recompile storm" : ""));
    const others = storms.filter((storm) => storm !== own);
    const names = others.slice(0, NAMED).flatMap(({ function: name }) => [" ", code(name)]);
    const rest = others.length > NAMED ? ` and ${others.length - NAMED} more` : "";
    const title = others.length > 1 ? `${others.length} more storms` : own ? "another storm" : "recompile storm";
    const blocks = others.slice(0, MOST).map((storm) => box("storm", ...this.#block(storm, "")));
    const summary = element("summary", element("b.lg-badge", "⚠ ", title), ...names, rest);
    this.#storms.replaceChildren(...(others.length ? [element("details", summary, ...blocks)] : []));
    this.#foreseen.replaceChildren(
      ...foreseen.map(({ text, cure: fix }) =>
        element("details", element("summary", part("foresight", "◇ foreseen"), text), ...(fix ? [cure(fix)] : [])),
      ),
    );
    this.#notes.replaceChildren(...notes.map((note) => element("p", note)));
  }

  #block(about: Status["storms"][0], badge: string): Node[] {
    const sign = badge ? [element("b.lg-badge", "⚠ ", badge)] : [];
    const title = element("p.lg-title", ...sign, ...sentence(about.text));
    const name = title.querySelector("code");
    if (name && about.function)
      name.replaceWith(button({ class: "lg-link" }, () => this.open(about.function), name.cloneNode(true)));
    const parts: Node[] = [title];
    if (about.cause.length) parts.push(element("p.lg-cause", ...sentence(about.cause)));
    if (about.cure) parts.push(cured(about.cure));
    return parts;
  }

  /** What runs goes on by this page's clock. */
  tick(): void {
    const { running, now } = this.data.status;
    const later = (performance.now() - this.data.received) / 1000;
    this.#running.hidden = running.length === 0;
    this.#running.replaceChildren(
      ...running.map(({ function: name, stage, place, since }) => {
        const verb = { trace: "tracing", lower: "lowering" }[stage] ?? "compiling";
        const where = place ? part("mute", ` ${place}`) : "";
        const soFar = `… ${lasting(Math.max(now - since + later, 0))}`;
        return element("p", element("i.lg-pulse"), `${verb} `, code(name), soFar, where);
      }),
    );
  }
}
