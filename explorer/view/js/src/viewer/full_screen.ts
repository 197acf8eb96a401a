// The view on the whole screen; where the page may not have that, on all of the window or the output.

export class FullScreen {
  #isOn = false;
  readonly #left = () => {
    if (!this.#element) this.#show(false);
  };

  constructor(
    private readonly root: HTMLElement,
    private readonly changed: (isOn: boolean) => void,
  ) {
    root.addEventListener("fullscreenchange", this.#left);
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  async toggle(): Promise<void> {
    if (this.#isOn) return this.leave();
    this.#show(true);
    try {
      await this.root.requestFullscreen();
    } catch {
      // Denied, as in most sandboxed frames: it fills what it can without being asked.
    }
  }

  leave(): void {
    if (this.#element === this.root) void document.exitFullscreen();
    this.#show(false);
  }

  get #element(): Element | null {
    return (this.root.getRootNode() as Document | ShadowRoot).fullscreenElement ?? null;
  }

  #show(isOn: boolean): void {
    if (this.#isOn === isOn) return;
    this.#isOn = isOn;
    this.root.classList.toggle("full", isOn);
    this.changed(isOn);
  }
}
