// Under the panes: what the compile cost, how surely the stage is linked, and with what it was compiled.

import { element } from "../core/dom";
import { number, opText, secondsText, units } from "../core/labels";
import type { EquationSets } from "../core/links";
import type { Session } from "../core/session";

const STEPS = [
  ["trace", "trace"],
  ["lower", "lower"],
  ["compile", "XLA"],
] as const;

// What does nothing that an equation does: explorer/model/graph.py has the same.
const PASSIVE = /^(parameter|constant|tuple|get-tuple-element|(func\.)?return)$/;
const MOST_NAMED = 5; // operations

export class Foot {
  readonly root = element("div.explorer-foot");

  constructor(
    private readonly session: Session,
    private readonly recorder: HTMLElement,
    private readonly kept: HTMLElement,
  ) {}

  fill(): void {
    const { header } = this.session.capture;
    const { jax, backend, target, caveat } = header.environment;
    const runs = target ? `for ${target}, which isn't here` : (backend ?? "?");
    const about = header.failure || (jax ? `jax ${jax} · ${runs}` : Object.values(header.environment).join(" · "));
    this.root.replaceChildren(
      ...this.#times(),
      this.#links(),
      ...this.#fates(),
      this.recorder,
      this.kept,
      element("span.stretch"),
      element("span", caveat ? { title: caveat } : {}, about),
    );
  }

  /** Of how many equations nobody knows what became; in HLO, of those that it was made of. */
  #fates(): Node[] {
    const { stage, capture } = this.session;
    const { fates, name } = stage.fates ? stage : (capture.stages[0] ?? stage);
    if (!fates) return [];
    const counts = fates.counts();
    const all = counts.reduce((sum, [, nodes]) => sum + nodes.length, 0);
    const missing = counts.find(([kind]) => kind === "unknown")?.[1].length ?? 0;
    const kinds = counts.map(([kind, nodes]) => `${number(nodes.length)} ${kind}`);
    const title = `of ${units(name, all)}, ${kinds.join(", ")}`;
    return missing ? [element("span", { title }, `fates: ${number(missing)} of ${number(all)} unknown`)] : [];
  }

  /** Nothing where nothing was timed: a module from a file. */
  #times(): Node[] {
    const { durations, reused = [] } = this.session.capture.header;
    // What a look into JAX's cache took is no step's cost.
    const cost = (step: string) => (reused.includes(step) ? 0 : (durations[step] ?? 0));
    const steps = STEPS.map(([step, name]) => [step, name, cost(step)] as const);
    const before = reused.includes("compile") ? ["compiled before"] : [];
    const total = steps.reduce((all, [, , seconds]) => all + seconds, 0);
    if (!total) return before.map((text) => element("span.times", { title: "JAX had the program already" }, text));
    const bar = element("span.time", { "aria-hidden": "true" });
    for (const [step, , seconds] of steps) {
      const part = element("span", { class: step });
      part.style.width = `${Math.max((seconds / total) * 100, 1.5)}%`;
      bar.append(part);
    }
    // A step that took no time has not ended.
    const times = steps
      .filter(([, , seconds]) => seconds)
      .map(([, name, seconds]) => `${name} ${secondsText(seconds)}`);
    return [element("span.times", { title: "what the compile took" }, bar, [...times, ...before].join(" · "))];
  }

  /** How surely the stage's nodes are linked to equations, or else how many have a line. */
  #links(): Node {
    const { coverage, sets, grades } = this.session.stage;
    // Never more than there is: what is not whole is not 100%.
    const [lines, exact, inferred] = [coverage, grades?.exact ?? 0, grades?.inferred ?? 0].map((share) =>
      Math.floor(share * 100 + 1e-6),
    );
    const title = `of what does something (no parameters, constants, tuples): ${lines}% with a source line`;
    if (!sets || !grades) return element("span", { title }, `source lines: ${lines}%`);
    const none = Math.ceil(grades.unknown * 100 - 1e-6);
    return element(
      "span",
      { title: title + (none ? this.#unlinked(sets) : "") },
      "links: ",
      element("b", `exact ${exact}%`),
      inferred ? ` · inferred ${inferred}%` : "",
      none ? ` · no link ${none}%` : "",
    );
  }

  /** What comes from no equation, by operation; who made it is known only of a recorded compile. */
  #unlinked(sets: EquationSets): string {
    const { graph, name } = this.session.stage;
    const counts = new Map<string, number>();
    for (let node = 0; node < graph.size; node++) {
      const op = opText(graph.op(node));
      if (sets.gradeOf(node) === "unknown" && !PASSIVE.test(op)) counts.set(op, (counts.get(op) ?? 0) + 1);
    }
    const ranked = [...counts].sort(([, a], [, b]) => b - a).slice(0, MOST_NAMED);
    const ops = ranked.map(([op, amount]) => `${op} ×${number(amount)}`).join(", ");
    const isRecorded = name === "hlo" && this.session.capture.passes !== undefined;
    return `; no link: ${isRecorded ? "most often what XLA made itself, here" : "here"} ${ops}`;
  }
}
