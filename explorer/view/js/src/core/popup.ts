// What a button opens beside itself: a menu, a sheet of tools.

/**
 * Let a button open and close what lies in `around` with it: Escape and going elsewhere close it too. Returns what
 * does that.
 */
export function popup(
  opener: HTMLElement,
  around: HTMLElement,
  show: (isOpen: boolean) => void,
): (isOpen: boolean) => void {
  const isOpen = () => opener.getAttribute("aria-expanded") === "true";
  const open = (opens: boolean) => {
    opener.setAttribute("aria-expanded", String(opens));
    show(opens);
  };
  opener.addEventListener("click", () => open(!isOpen()));
  around.addEventListener("focusout", ({ relatedTarget }) => {
    if (!around.contains(relatedTarget as Node | null)) open(false);
  });
  around.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    event.preventDefault();
    event.stopPropagation();
    open(false);
    opener.focus();
  });
  open(false);
  return open;
}
