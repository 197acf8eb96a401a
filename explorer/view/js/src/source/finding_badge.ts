// What may go wrong with a line, in plain words under it: quiet until it is opened.

import { element } from "../core/dom";
import { coded } from "../core/parts";

/** See explorer/model/findings.py. */
export interface Finding {
  rule: string;
  severity: "error" | "warning" | "note";
  message: string;
  file: string;
  line: number;
  evidence: string;
  fix: { text: string };
  code: string;
  documentation: string;
}

// A severity is never shown by colour alone.
const SIGNS = { error: "✖", warning: "▲", note: "●" };

export function badge({ severity, message, evidence, fix, code, rule, documentation }: Finding): HTMLElement {
  const facts = Object.entries({ seen: evidence, cure: fix.text, silence: `# explorer: ignore[${code || rule}]` });
  const page = element(
    "a",
    { href: documentation, target: "_blank", rel: "noopener noreferrer" },
    "JAX’s documentation",
  );
  return element(
    "div",
    { role: "listitem", class: `pit ${severity}` },
    element(
      "details",
      element(
        "summary",
        element("b", element("i", { "aria-hidden": "true" }, `${SIGNS[severity]} `), severity),
        "\u00a0",
        ...coded(message),
      ),
      ...facts.map(([name, text]) => element("p", element("i", name), " ", ...coded(text || "–"))),
      element("p", element("i", `${code} ${rule} `), ...(/^https?:/.test(documentation) ? [page] : [])),
    ),
  );
}

/** `✖ 1 ▲ 2`: how many there are of each kind. */
export const tally = (findings: Finding[]): string =>
  Object.entries(SIGNS)
    .map(([severity, sign]) => [sign, findings.filter((finding) => finding.severity === severity).length] as const)
    .filter(([, count]) => count)
    .map(([sign, count]) => `${sign} ${count}`)
    .join(" ");
