// A new cell below an output, made as a person would: JupyterLab and Notebook 7 give an output's script no other way.

import { copied as isCopied } from "../core/clipboard";

interface Editor {
  state: { doc: { length: number } };
  dispatch(change: { changes: { from: number; insert: string } }): void;
  focus(): void;
}

const PATIENCE = 2000; // milliseconds
const INSERT = '[data-command="notebook:insert-cell-below"]';

/** Whether the code stands in a new cell below the one that an element is in; false where there is no such notebook. */
export async function writeBelow(from: Element, code: string): Promise<boolean> {
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
