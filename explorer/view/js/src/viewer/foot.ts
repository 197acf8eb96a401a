// Under the panes: what the compile cost, how surely the stage is linked, and with what it was compiled.

import { element } from "../core/dom";
import { number, STAGE_TITLES, secondsText, units } from "../core/labels";
import type { Session } from "../core/session";

const STEPS = ["trace", "lower", "compile"];

export class Foot {
  readonly root = element("div.explorer-foot");

  constructor(
    private readonly session: Session,
    private readonly recorder: HTMLElement,
  ) {}

  fill(): void {
    const { header } = this.session.capture;
    const { jax, backend } = header.environment;
    const about =
      header.failure || (jax ? `jax ${jax} · ${backend ?? "?"}` : Object.values(header.environment).join(" · "));
    this.root.replaceChildren(
      ...this.#times(),
      this.#linked(),
      this.recorder,
      element("span.stretch"),
      element("span", about),
    );
  }

  /** The equations whose fate is unknown; in HLO, of those that it was made of. */
  get #unknown(): { text: string; title: string } {
    const { stage, capture } = this.session;
    const { fates, name } = stage.fates ? stage : (capture.stages[0] ?? stage);
    if (!fates) return { text: "", title: "" };
    const counts = fates.counts();
    const all = counts.reduce((sum, [, nodes]) => sum + nodes.length, 0);
    const missing = counts.find(([kind]) => kind === "unknown")?.[1].length ?? 0;
    const what = units(name, all);
    return {
      text: ` · ${number(missing)} of unknown fate`,
      title: `; of ${what}, ${counts.map(([kind, nodes]) => `${number(nodes.length)} ${kind}`).join(", ")}`,
    };
  }

  /** Nothing where nothing was timed: a module from a file. */
  #times(): Node[] {
    const { durations } = this.session.capture.header;
    const steps = STEPS.map((step) => [step, durations[step] ?? 0] as const);
    const total = steps.reduce((all, [, seconds]) => all + seconds, 0);
    if (!total) return [];
    const bar = element("span", {
      class: "time",
      role: "img",
      "aria-label": steps.map(([step, seconds]) => `${step} ${secondsText(seconds)}`).join(", "),
    });
    for (const [step, seconds] of steps) {
      const share = seconds / total;
      const label = step === "compile" ? "XLA" : step;
      const part = element(
        "span",
        { class: step, title: `${step} ${secondsText(seconds)}` },
        share > 0.3 ? `${label} ${secondsText(seconds)}` : share > 0.12 ? label : "",
      );
      part.style.width = `${Math.max(share * 100, 1.5)}%`;
      bar.append(part);
    }
    return [bar];
  }

  #linked(): Node {
    const { coverage } = this.session.stage;
    const lines = `${Math.floor(coverage * 100 + 1e-6)}% with a source line`;
    const title = `of what does something (no parameters, constants, tuples): ${lines}${this.#unknown.title}`;
    return element("span", { title }, `${this.#grades ?? lines}${this.#unknown.text}`);
  }

  /** How surely the stage's nodes are linked to equations: what does something counts, no parameters and tuples. */
  get #grades(): string | undefined {
    const { sets, grades, name } = this.session.stage;
    if (!sets || !grades) return undefined;
    // Never more than there is: what is not whole is not 100%.
    const [exact, inferred] = [grades.exact, grades.inferred].map((share) => Math.floor(share * 100 + 1e-6));
    const parts = [
      [exact, "exact"],
      [inferred, "inferred"],
      [Math.ceil(grades.unknown * 100 - 1e-6), "unknown"],
    ] as const;
    const shown = parts.filter(([share]) => share);
    return `${STAGE_TITLES[name] ?? name}: ${shown.map(([share, grade]) => `${share}% ${grade}`).join(" · ")}`;
  }
}
