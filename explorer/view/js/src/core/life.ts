// What a view holds on to outside of itself, while it is in a page. A notebook takes an output out of the page when the
// cell runs again, and when it scrolls away, and tells nobody: what the page or a kernel's model would still call, it
// would keep alive.

const NAME = "explorer-life";

class Life extends HTMLElement {
  enter?: () => () => void;
  #leave?: (() => void) | undefined;

  connectedCallback(): void {
    this.#leave ??= this.enter?.();
  }

  disconnectedCallback(): void {
    this.#leave?.();
    this.#leave = undefined;
  }
}

/** Do `enter` whenever the element comes into a page, and what that gives when it leaves it; returns what ends this. */
export function whileInPage(root: HTMLElement, enter: () => () => void): () => void {
  // Another view of the page may have defined it, with its own class.
  if (!customElements.get(NAME)) customElements.define(NAME, Life);
  const life = document.createElement(NAME) as Life;
  life.hidden = true;
  life.enter = enter;
  root.append(life);
  return () => life.remove();
}
