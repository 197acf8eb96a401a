// On top: where the time of a call went, in a sentence and in one bar as long as the call.

import { element } from "../core/dom";
import { button, sentence } from "../core/parts";
import { secondsText } from "../core/units";
import type { Chosen, Data, Line } from "./data";
import { box, heated, placeText, shareText } from "./format";

const NAMED = 6; // lines with a part of their own
const LEAST = 0.02; // of the call
const WORDED = 0.08;

export class Head {
  readonly root = box("head");
  readonly #bar = box("call");

  constructor(
    private readonly data: Data,
    private readonly choose: (line: Line) => void,
  ) {
    const { headline, notes } = data.message;
    this.root.append(element("p.pf-title", ...sentence(headline.text)));
    const sign = element("b", { "aria-hidden": "true" }, "◌ ");
    if (headline.waits.length) this.root.append(element("p.pf-waits", sign, ...sentence(headline.waits)));
    this.#fill();
    if (this.#bar.childElementCount) this.root.append(this.#bar);
    this.root.append(element("p.pf-facts", headline.facts.join(" · ")));
    for (const note of notes) this.root.append(element("p.pf-note", note));
  }

  #fill(): void {
    const { wall, device, gap, unattributed } = this.data.message;
    const whole = Math.max(wall, device + gap) || 1;
    const named = this.data.lines.slice(0, NAMED).filter(({ seconds }) => seconds >= LEAST * whole);
    for (const line of named) {
      const text = `line ${line.number}: ${secondsText(line.seconds)}`;
      const style = this.#style(line.seconds / whole, this.data.heat("line", line.seconds));
      const title = `${text} (${shareText(this.data.share(line.seconds))} of the device's time)\n${line.text}`;
      const about = { style, title, "aria-label": `${text}, ${line.text}`, "aria-pressed": "false" };
      const word = line.seconds > WORDED * whole ? placeText(line, this.data) : String(line.number);
      const take = () => this.choose(line);
      this.#bar.append(button({ class: "pf-piece", "data-of": line.index, ...about }, take, element("span", word)));
    }
    const others = device - unattributed - named.reduce((sum, { seconds }) => sum + seconds, 0);
    this.#piece(others, whole, "other lines", "others");
    this.#piece(unattributed, whole, "no line known", "unknown");
    this.#piece(gap, whole, "waiting", "waiting");
  }

  #piece(seconds: number, whole: number, name: string, kind: string): void {
    if (!(seconds > 1e-4 * whole)) return;
    const text = `${name}: ${secondsText(seconds)}, ${shareText(seconds / whole)} of the call`;
    const about = { role: "img", style: this.#style(seconds / whole, 0), title: text, "aria-label": text };
    this.#bar.append(element("span", { class: `pf-piece pf-${kind}`, ...about }, element("span", name)));
  }

  #style = (share: number, heat: number): string => `flex-grow:${(1000 * share).toFixed(2)};${heated(heat)}`;

  light({ lines }: Chosen): void {
    for (const piece of this.#bar.querySelectorAll<HTMLElement>("[data-of]"))
      piece.setAttribute("aria-pressed", String(lines.has(this.data.lines[Number(piece.dataset.of)]!)));
  }
}
