// In each output of findings: follows the page's theme, and adds the buttons that write a cure into a new cell.

import { element } from "../core/dom";
import { type Answer, awaitAnswer, type Model, request } from "../core/kernel_link";
import { button } from "../core/parts";
import { copied, writeBelow } from "./cell";
import { offerOnce, startOutputs } from "./output";

startOutputs(".explorer-findings", (host) => ({
  id: host.dataset.explorerFindings,
  decorate: (model) =>
    offerOnce(host, "fix", (place) => {
      if (!place.querySelector(".xf-text") && !model()) return false; // Python has it, and is not there
      return place.append(applyButton(place, model()));
    }),
}));

function applyButton(place: HTMLElement, model: Model | undefined): HTMLElement {
  const status = element("span.xf-said", { role: "status" });
  const write = async () => {
    if (made.ariaBusy === "true") return;
    const answer = await awaitAnswer(made, codeOf(place, model), (text) => (status.textContent = text));
    const failed = answer.failed ?? "The kernel gave no answer.";
    status.textContent = answer.code ? await written(made, answer.code) : failed;
  };
  const text = place.closest(".jp-NotebookPanel") ? "write it into a new cell" : "copy the function with it";
  const made = button({ class: "xf-write" }, () => void write(), text);
  return element("div.xf-act", made, status);
}

async function written(from: HTMLElement, code: string): Promise<string> {
  if (await writeBelow(from, code)) return "It is in the cell below: run that to use it.";
  if (await copied(code, from.parentElement!)) return "It is on the clipboard: paste it into a new cell.";
  return "This page can't copy it or write a cell: copy the code above.";
}

/** The code in the output, or else the one that Python sends: proven there, and shown here from then on. */
async function codeOf(place: HTMLElement, model: Model | undefined): Promise<Answer> {
  const code = place.querySelector(".xf-text")?.textContent;
  if (code) return { code };
  const answer = await request(model!, "fix", Number(place.dataset.fix));
  if (answer.code) show(place, answer.code, answer.diff ?? "");
  return answer;
}

function show(place: HTMLElement, code: string, diff: string): void {
  const rows = diff.split("\n").filter((row) => row && !/^(---|\+\+\+)/.test(row));
  const kinds: Record<string, string> = { "+": "xf-plus", "-": "xf-minus", "@": "xf-cut" };
  const lines = rows.flatMap((row) => {
    const text = row.startsWith("@@") ? "  ⋯" : `${row[0]} ${row.slice(1)}`;
    return [element("span", { class: kinds[row[0]!] ?? "" }, text), "\n"];
  });
  if (rows[0]?.startsWith("@@")) lines.splice(0, 2);
  const whole = element("details.xf-code", element("summary", "the function with it"), element("pre.xf-text", code));
  place.lastElementChild!.before(element("pre.xf-diff", ...lines.slice(0, -1)), whole);
}
