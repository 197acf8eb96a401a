// What brings a view back to where it was: a page of its own has it in its address, an output in the browser's storage.

import type { Header } from "../core/capture";
import type { Bookmark } from "./bookmark";

const PLACES = "explorer.places";
const MOST = 40; // places that are remembered: of more, those that were left longest ago are forgotten

/** The place where a person was, and the address of the one that Python had opened there, if it had. */
export type Stored = { place: Bookmark; of: string };

/** Is this the one view of a page of its own? Its address is the view's. */
export function isOwnPage(id: string): boolean {
  const hosts = document.querySelectorAll<HTMLElement>("body.explorer-page > main > [data-explorer]");
  return hosts.length === 1 && hosts[0]!.dataset.explorer === id;
}

/** The same function, called alike, is found again however often its cell was run; on a page of its own, this page. */
export const nameOf = ({ function: name, signature, file }: Header, id: string): string =>
  isOwnPage(id) ? id : `${name}${signature} ${file.split(/[\\/]/).at(-1)}`;

const all = (): [string, Stored][] => {
  try {
    return JSON.parse(localStorage.getItem(PLACES) ?? "[]") as [string, Stored][];
  } catch {
    return []; // a sandboxed output has no storage
  }
};

export const storedPlace = (name: string): Stored | undefined => all().find(([other]) => other === name)?.[1];

export function storePlace(name: string, stored: Stored | undefined): void {
  const others = all().filter(([other]) => other !== name);
  try {
    localStorage.setItem(PLACES, JSON.stringify([...(stored ? [[name, stored]] : []), ...others].slice(0, MOST)));
  } catch {
    // Nor is there place to keep it in.
  }
}
