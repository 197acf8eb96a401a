// In each output of findings: follows the page's theme, and adds the buttons that write a cure into a new cell.

import { element } from "../core/dom";
import { adoptStyle } from "../core/fragment";
import { type Answer, awaitAnswer, type Model, onModel, request } from "../core/kernel_link";
import { followTheme } from "../core/theme";
import { copied, writeBelow } from "./cell";

for (const host of document.querySelectorAll<HTMLElement>(".explorer-findings:not([data-started])")) start(host);

function start(host: HTMLElement): void {
  host.dataset.started = "";
  followTheme(host);
  adoptStyle(host);
  const id = host.dataset.explorerFindings ?? "";
  onModel(host, id, (model) => {
    for (const place of host.querySelectorAll<HTMLElement>("[data-fix]:not([data-offered])")) {
      if (!place.querySelector(".xf-text") && !model) continue; // Python has it, and is not there
      place.dataset.offered = "";
      place.append(applyButton(place, model));
    }
  });
}

function applyButton(place: HTMLElement, model: Model | undefined): HTMLElement {
  const button = element(
    "button",
    { type: "button", class: "xf-write" },
    place.closest(".jp-NotebookPanel") ? "write it into a new cell" : "copy the function with it",
  );
  const status = element("span.xf-said", { role: "status" });
  button.addEventListener("click", async () => {
    if (button.ariaBusy === "true") return;
    const answer = await awaitAnswer(button, codeOf(place, model), (text) => (status.textContent = text));
    status.textContent = answer.code
      ? await written(button, answer.code)
      : (answer.failed ?? "The kernel gave no answer.");
  });
  return element("div.xf-act", button, status);
}

async function written(button: HTMLElement, code: string): Promise<string> {
  if (await writeBelow(button, code)) return "It is in the cell below: run that to use it.";
  if (await copied(code, button.parentElement!)) return "It is on the clipboard: paste it into a new cell.";
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
  const summary = element("summary", "the function with it");
  place.lastElementChild!.before(
    element("pre.xf-diff", ...lines.slice(0, -1)),
    element("details.xf-code", summary, element("pre.xf-text", code)),
  );
}
