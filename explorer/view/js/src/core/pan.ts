// Moving a picture in its pane: by dragging it, and with the wheel.

interface Moves {
  by(x: number, y: number): void;
  zoom(factor: number, x: number, y: number): void;
  /** The picture was pressed and not moved. */
  click(event: PointerEvent): void;
}

/** Dragging moves a picture, ctrl (what a pinch sends) zooms; it pans while its pane has the keyboard: pages scroll. */
export function pan(picture: SVGElement, pane: HTMLElement, moves: Moves): void {
  let pressed: { x: number; y: number; moved: boolean } | undefined;
  picture.addEventListener("pointerdown", (event) => {
    if (event.button === 0) pressed = { x: event.clientX, y: event.clientY, moved: false };
  });
  picture.addEventListener("pointermove", (event) => {
    if (!pressed) return;
    const [dx, dy] = [event.clientX - pressed.x, event.clientY - pressed.y];
    if (!pressed.moved && Math.hypot(dx, dy) < 4) return;
    if (!pressed.moved) picture.setPointerCapture(event.pointerId);
    pressed = { x: event.clientX, y: event.clientY, moved: true };
    moves.by(dx, dy);
  });
  picture.addEventListener("pointercancel", () => (pressed = undefined));
  picture.addEventListener("pointerup", (event) => {
    const wasClick = pressed && !pressed.moved;
    pressed = undefined;
    if (wasClick) moves.click(event);
  });
  const turned = (event: WheelEvent) => {
    const { left, top } = picture.getBoundingClientRect();
    const isZoom = event.ctrlKey || event.metaKey;
    if (!isZoom && !pane.contains(document.activeElement)) return;
    event.preventDefault();
    if (isZoom) moves.zoom(Math.exp(-event.deltaY / 200), event.clientX - left, event.clientY - top);
    else moves.by(-(event.shiftKey ? event.deltaY : event.deltaX), event.shiftKey ? 0 : -event.deltaY);
  };
  picture.addEventListener("wheel", turned, { passive: false });
}
