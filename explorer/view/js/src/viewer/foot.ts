// Under the panes: what the compile cost, how much of the stage is linked, and with what it was compiled.

import { tallied } from "../core/buckets";
import { element } from "../core/dom";
import { number, opText, secondsText, units } from "../core/labels";
import type { Session } from "../core/session";

const STEPS = { trace: "trace", lower: "lower", compile: "XLA" };

// What does nothing that an equation does: explorer/model/graph.py has the same.
const PASSIVE = /^(parameter|constant|tuple|get-tuple-element|(func\.)?return)$/;
const MOST_NAMED = 5; // operations

export class Foot {
  readonly root = element("div.explorer-foot");
  /** What is kept: filled by who keeps it. */
  readonly kept = element("span.kept", { role: "status" });

  constructor(
    private readonly session: Session,
    private readonly recorder: HTMLElement,
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

  /** The number of equations whose end is not known; in HLO, of those that it was made of. */
  #fates(): Node[] {
    const { stage, capture } = this.session;
    const { fates, name } = stage.fates ? stage : (capture.stages[0] ?? stage);
    if (!fates) return [];
    const counts = fates.counts();
    const all = counts.reduce((sum, [, nodes]) => sum + nodes.length, 0);
    const missing = counts.find(([kind]) => kind === "unknown")?.[1].length ?? 0;
    const kinds = counts.map(([kind, nodes]) => `${number(nodes.length)} ${kind}`);
    const title = `of ${units(name, all)}, ${kinds.join(", ")}`;
    const text = `what happened to ${number(missing)} of ${units(name, all)} is not known`;
    return missing ? [element("span", { title }, text)] : [];
  }

  /** Nothing where nothing was timed: a module from a file. */
  #times(): Node[] {
    const { durations, reused = [] } = this.session.capture.header;
    // What a look into JAX's cache took is no step's cost.
    const cost = (step: string) => (reused.includes(step) ? 0 : (durations[step] ?? 0));
    const steps = Object.entries(STEPS).map(([step, name]) => [step, name, cost(step)] as const);
    const before = reused.includes("compile") ? ["compiled before"] : [];
    const total = steps.reduce((all, [, , seconds]) => all + seconds, 0);
    if (!total) return before.map((text) => element("span.times", { title: "JAX already had the program" }, text));
    const bar = element("span.time", { "aria-hidden": "true" });
    for (const [step, , seconds] of steps)
      bar.append(
        element("span", { style: `background: var(--${step}); width: ${Math.max((seconds / total) * 100, 1.5)}%` }),
      );
    // A step that took no time has not ended.
    const times = steps
      .filter(([, , seconds]) => seconds)
      .map(([, name, seconds]) => `${name} ${secondsText(seconds)}`);
    return [element("span.times", { title: "duration of the compile" }, bar, [...times, ...before].join(" · "))];
  }

  /** The part that is linked to equations of what carries an op_name, or else how much has a source line. */
  #links(): Node {
    const { coverage, sets, grades } = this.session.stage;
    const note = this.session.capture.header.recording_note;
    const why = note ? ` · ${note}` : "";
    // Rounded down: 100% is all.
    const percent = (share: number) => Math.floor(share * 100 + 1e-6);
    const lines = `${percent(coverage)}%`;
    const [exact, inferred] = [percent(grades?.exact ?? 0), percent(grades?.inferred ?? 0)];
    if (!sets || !(exact || inferred)) return element("span", `source lines: ${lines}${why}`);
    const title = [
      "of the instructions that carry an op_name",
      ...this.#unnamed(),
      ...(inferred ? ["inferred from names and places"] : []),
      `${lines} of all have a source line`,
    ].join("; ");
    const parts = [exact ? `exact ${exact}%` : "", inferred ? `inferred ${inferred}%` : ""].filter(Boolean);
    return element("span", { title }, "source mapping ", element("b", parts.join(" · ")), why);
  }

  /** The operations without an op_name, the most frequent first. */
  #unnamed(): string[] {
    const { graph } = this.session.stage;
    const nodes = Array.from(graph.order.keys()).filter((node) => !graph.scope(node));
    const unnamed = nodes.map((node) => opText(graph.op(node))).filter((op) => !PASSIVE.test(op));
    const ops = tallied(unnamed)
      .slice(0, MOST_NAMED)
      .map(([op, amount]) => `${op} ×${number(amount)}`)
      .join(", ");
    return ops ? [`those without one are the compiler's own: ${ops}`] : [];
  }
}
