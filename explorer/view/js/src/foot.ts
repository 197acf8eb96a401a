// Under the panes: what the compile cost, how much of the stage is linked to a line, and with what it was compiled.

import { element } from "./dom";
import { secondsText } from "./labels";
import type { Session } from "./session";

const STEPS = ["trace", "lower", "compile"];

export class Foot {
  readonly root = element("div", { class: "explorer-foot" });

  constructor(private readonly session: Session) {}

  fill(): void {
    const { header } = this.session.capture;
    const { jax, backend } = header.environment;
    const about = header.failure || (jax ? `jax ${jax} · ${backend ?? "?"}` : Object.values(header.environment).join(" · "));
    this.root.replaceChildren(...this.times(), this.linked(), element("span", { class: "stretch" }), element("span", {}, about));
  }

  /** Nothing where nothing was timed: a module from a file. */
  private times(): Node[] {
    const { durations } = this.session.capture.header;
    const steps = STEPS.map((step) => [step, durations[step] ?? 0] as const);
    const total = steps.reduce((all, [, seconds]) => all + seconds, 0);
    if (!total) return [];
    const bar = element("span", { class: "time", role: "img", "aria-label": steps.map(([step, seconds]) => `${step} ${secondsText(seconds)}`).join(", ") });
    for (const [step, seconds] of steps) {
      const share = seconds / total;
      const label = step === "compile" ? "XLA" : step;
      const part = element("span", { class: step, title: `${step} ${secondsText(seconds)}` }, share > 0.3 ? `${label} ${secondsText(seconds)}` : share > 0.12 ? label : "");
      part.style.width = `${Math.max(share * 100, 1.5)}%`;
      bar.append(part);
    }
    return [bar];
  }

  private linked(): Node {
    const { graph, coverage } = this.session.stage;
    let known = 0;
    for (let node = 0; node < graph.size; node++) if (graph.c.frame[node]! >= 0) known++;
    const percent = (share: number) => `${Math.floor(share * 100)}%`;
    return element(
      "span",
      { title: "nodes whose line the compiler kept, and those placed by what they belong to: parameters, constants, layout plumbing" },
      `linked ${percent(coverage)} · ${percent(graph.size ? known / graph.size : 0)} told by the compiler, the rest by structure`,
    );
  }
}
