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
