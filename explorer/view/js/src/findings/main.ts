// In each output of findings: follows the page's theme, and adds the buttons that write a cure into a new cell.

import { element } from "../core/dom";
import type { Model } from "../core/kernel_link";
import { followTheme } from "../core/theme";
import { copied, writeBelow } from "./cell";

interface Talking extends Omit<Model, "on"> {
  send(message: unknown): void;
  on(event: string, callback: (answer: Answer) => void): void;
}

interface Answer {
  of?: number;
  code?: string;
  diff?: string;
  failed?: string;
}

const SLOW = 600; // milliseconds

for (const host of document.querySelectorAll<HTMLElement>(".explorer-findings:not([data-started])")) start(host);

function start(host: HTMLElement): void {
  host.dataset.started = "";
  followTheme(host);
  adoptStyle(host);
  const id = host.dataset.explorerFindings ?? "";
  const offer = () => {
    const wire = window.explorerModels?.get(id) as unknown as Talking | undefined;
    for (const place of host.querySelectorAll<HTMLElement>("[data-fix]:not([data-offered])")) {
      if (!place.querySelector(".xf-text") && !wire) continue; // Python has it, and is not there
      place.dataset.offered = "";
      place.append(offered(place, wire));
    }
  };
  offer();
  window.addEventListener("explorer-wire", (event) => {
    if ((event as CustomEvent<string>).detail === id) offer();
  });
}

/** A strict page forbids a <style>, but not what a script makes of it. */
function adoptStyle(host: HTMLElement): void {
  if (getComputedStyle(host).getPropertyValue("--xf-bg")) return;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(host.querySelector("style")!.textContent!);
  (host.getRootNode() as Document).adoptedStyleSheets.push(sheet);
}

function offered(place: HTMLElement, wire: Talking | undefined): HTMLElement {
  const button = element(
    "button",
    { type: "button", class: "xf-write" },
    place.closest(".jp-NotebookPanel") ? "write it into a new cell" : "copy the function with it",
  );
  const said = element("span.xf-said", { role: "status" });
  button.addEventListener("click", async () => {
    if (button.ariaBusy === "true") return;
    button.ariaBusy = "true";
    const slow = setTimeout(
      () => (said.textContent = "The kernel is busy: it answers when the running cell has ended."),
      SLOW,
    );
    const answer = await codeOf(place, wire);
    clearTimeout(slow);
    button.ariaBusy = "false";
    said.textContent = answer.code
      ? await written(button, answer.code)
      : (answer.failed ?? "The kernel gave no answer.");
  });
  return element("div.xf-act", button, said);
}

async function written(button: HTMLElement, code: string): Promise<string> {
  if (await writeBelow(button, code)) return "It is in the cell below: run that to use it.";
  if (await copied(code, button.parentElement!)) return "It is on the clipboard: paste it into a new cell.";
  return "This page allows neither: it stands above, to be copied.";
}

/** What stands in the output, or else what Python says: proven there, and shown here from then on. */
async function codeOf(place: HTMLElement, wire: Talking | undefined): Promise<Answer> {
  const code = place.querySelector(".xf-text")?.textContent;
  if (code) return { code };
  const answer = await asked(Number(place.dataset.fix), wire!);
  if (answer.code) show(place, answer.code, answer.diff ?? "");
  return answer;
}

function asked(of: number, wire: Talking): Promise<Answer> {
  return new Promise((resolve) => {
    const listen = (answer: Answer) => {
      if (answer.of !== of) return;
      wire.off("msg:custom", listen as () => void);
      resolve(answer);
    };
    wire.on("msg:custom", listen);
    try {
      wire.send({ ask: "fix", of });
    } catch {
      resolve({ failed: "No kernel answers: run the notebook again." });
    }
  });
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
