// Making elements.

type Attributes = Record<string, string | number>;

function made<E extends Element>(node: E, attributes: Attributes, children: (Node | string)[]): E {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** Text children become text: nothing of the user's is ever read as HTML. */
export const element = <K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] => made(document.createElement(name), attributes, children);

export const svg = <K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Node[]
): SVGElementTagNameMap[K] => made(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

/** A text with what a pattern finds in spans: the first group that matched names the kind, for the style sheet. */
export function spans(text: string, pattern: RegExp, kinds: string[]): (Node | string)[] {
  const parts: (Node | string)[] = [];
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) parts.push(text.slice(at, match.index));
    const kind = kinds[match.slice(1).findIndex((group) => group !== undefined)]!;
    parts.push(element("span", { class: `t-${kind}` }, match[0]));
    at = match.index + match[0].length;
  }
  parts.push(text.slice(at));
  return parts;
}
