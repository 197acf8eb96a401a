// Making elements.

type Attributes = Record<string, string | number>;
/** A tag, and classes: `div.row.lit`. */
type Selector<Tag extends string> = Tag | `${Tag}.${string}`;
type Child = Node | string;
/** Attributes may be left out. */
type Parts = [Attributes, ...Child[]] | Child[];

function filled<E extends Element>(node: E, classes: string[], parts: Parts): E {
  if (classes.length) node.setAttribute("class", classes.join(" "));
  for (const part of parts)
    if (part instanceof Node || typeof part === "string") node.append(part);
    // A strict page forbids the attribute, but not what a script makes of it.
    else
      for (const [name, value] of Object.entries(part))
        if (name === "style") (node as unknown as HTMLElement).style.cssText = String(value);
        else node.setAttribute(name, String(value));
  return node;
}

/** Text children become text: nothing of the user's is ever read as HTML. */
export function element<K extends keyof HTMLElementTagNameMap>(selector: Selector<K>, ...parts: Parts) {
  const [tag, ...classes] = selector.split(".");
  return filled(document.createElement(tag as K), classes, parts);
}

export function svg<K extends keyof SVGElementTagNameMap>(selector: Selector<K>, ...parts: Parts) {
  const [tag, ...classes] = selector.split(".");
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag as K), classes, parts);
}

export const svgText = (text: string, x: number, y: number, kind: string): SVGTextElement =>
  svg("text", { x, y, class: kind }, text);

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
