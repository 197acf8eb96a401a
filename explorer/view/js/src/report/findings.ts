// In each output of findings: follows the page's theme, and adds the buttons that write a cure into a new cell, made as
// a person would: JupyterLab and Notebook 7 give an output's script no other way.

import { button, element, copied as isCopied } from "../core/dom";
import { type Answer, awaitAnswer, type Model, request } from "../core/kernel_link";
import { offerOnce, startOutputs } from "./output";

const PATIENCE = 2000; // milliseconds
const INSERT = '[data-command="notebook:insert-cell-below"]';

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
  const text = place.closest(".jp-NotebookPanel") ? "write it into a new cell" : "copy the fixed function";
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
  const whole = element("details.xf-code", element("summary", "the fixed function"), element("pre.xf-text", code));
  place.lastElementChild!.before(element("pre.xf-diff", ...lines.slice(0, -1)), whole);
}

interface Editor {
  state: { doc: { length: number } };
  dispatch(change: { changes: { from: number; insert: string } }): void;
  focus(): void;
}

/** Whether the code stands in a new cell below the one that an element is in; false where there is no such notebook. */
async function writeBelow(from: Element, code: string): Promise<boolean> {
  const cell = from.closest(".jp-Cell");
  const notebook = from.closest(".jp-Notebook");
  const panel = from.closest(".jp-NotebookPanel");
  if (!cell || !notebook || !panel) return false;
  press(cell.querySelector(".jp-InputPrompt") ?? cell); // commands are about the cell that is active
  const tool = panel.querySelector(`.jp-NotebookPanel-toolbar ${INSERT}`) ?? panel.querySelector(INSERT);
  if (!tool || !cell.classList.contains("jp-mod-active")) return false;
  const before = new Set(notebook.querySelectorAll(".jp-Cell"));
  press(tool);
  for (const end = performance.now() + PATIENCE; performance.now() < end; ) {
    const editor = editorOf(notebook.querySelector(".jp-Cell.jp-mod-active"), before);
    if (editor) {
      editor.dispatch({ changes: { from: 0, insert: code.trimEnd() } });
      editor.focus();
      return true;
    }
    await new Promise((next) => setTimeout(next, 20));
  }
  return false;
}

/** JupyterLab's buttons answer to a mouse that is pressed, not to a click. */
function press(target: Element): void {
  for (const kind of ["mousedown", "mouseup"])
    target.dispatchEvent(new MouseEvent(kind, { bubbles: true, cancelable: true, button: 0 }));
}

/** CodeMirror's own object, of a cell that is new and empty; by either name that its versions give it. */
function editorOf(cell: Element | null, before: Set<Element>): Editor | undefined {
  if (!cell || before.has(cell)) return undefined;
  type Content = Element & { cmTile?: { view?: Editor }; cmView?: { view?: Editor } };
  const content = cell.querySelector<Content>(".cm-content");
  const editor = content?.cmTile?.view ?? content?.cmView?.view;
  return editor?.state.doc.length === 0 ? editor : undefined;
}

/** Whether a text is on the clipboard. A frame of another site has none; the old way works in some. */
export async function copied(text: string, near: Element): Promise<boolean> {
  if (await isCopied(text)) return true;
  const area = document.createElement("textarea");
  area.value = text;
  near.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
