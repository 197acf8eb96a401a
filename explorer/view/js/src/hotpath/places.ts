// `cell [3], line 5` as a link to that line, in JupyterLab and Notebook 7; elsewhere it stays text.

const CELL = /^cell \[(\d+)\]/;
const SHOWN = 1600; // milliseconds that the line stays marked

export function linkPlaces(host: HTMLElement): void {
  if (!host.closest(".jp-Notebook")) return;
  for (const place of host.querySelectorAll<HTMLElement>(".xf-body span.hp-where[data-line]")) {
    const count = CELL.exec(place.textContent ?? "")?.[1];
    if (!count) continue;
    const link = document.createElement("button");
    link.type = "button";
    link.className = "hp-where";
    link.textContent = place.textContent;
    link.addEventListener("click", () => {
      const line = lineOf(host, count, Number(place.dataset.line));
      line?.scrollIntoView({ block: "center", behavior: "instant" });
      line?.animate([{ outline: "2px solid #0b62c4" }, { outline: "2px solid transparent" }], SHOWN);
    });
    place.replaceWith(link);
  }
}

/** A line of the cell that ran as the count-th; a cell that runs has no number yet, and is the host's own. */
function lineOf(host: HTMLElement, count: string, line: number): Element | undefined {
  const cells = [...host.closest(".jp-Notebook")!.querySelectorAll(".jp-CodeCell")];
  const prompt = (cell: Element) => cell.querySelector(".jp-InputPrompt")?.textContent?.trim();
  const cell = cells.find((one) => prompt(one) === `[${count}]:`) ?? host.closest(".jp-CodeCell") ?? undefined;
  return cell?.querySelectorAll(".cm-line")[line - 1] ?? cell;
}
