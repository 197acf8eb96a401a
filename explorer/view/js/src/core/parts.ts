// Small elements that several views are made of.

import { element } from "./dom";

/** Text in parts, each with whether it is code. */
export type Sentence = [text: string, isCode: boolean][];

type Attributes = Record<string, string | number>;

export const code = (text: string): HTMLElement => element("code", text);

/** A text whose pieces between backticks are code. */
export const coded = (text: string): (Node | string)[] =>
  text.split(/`([^`]+)`/).map((part, i) => (i % 2 ? code(part) : part));

export const sentence = (text: Sentence): Node[] =>
  text.map(([part, isCode]) => (isCode ? code(part) : document.createTextNode(part)));

export function button(
  attributes: Attributes,
  act: (event: MouseEvent) => void,
  ...children: (Node | string)[]
): HTMLButtonElement {
  const node = element("button", { type: "button", ...attributes }, ...children);
  node.addEventListener("click", act);
  return node;
}
