// The views in a page are light or dark as the page is: they look for a class `dark` or `light`, Furo writes `data-theme`.
const follow = () => {
  const { theme } = document.body.dataset;
  document.body.classList.toggle("dark", theme === "dark");
  document.body.classList.toggle("light", theme === "light");
};
new MutationObserver(follow).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });
follow();

// Each block of code can be copied.
for (const block of document.querySelectorAll("article div.highlight")) {
  if (block.closest(".cell_output")) continue;
  const text = block.textContent.trimEnd();
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
  block.append(button);
}

// What scrolls can be scrolled by keyboard, and only what scrolls stops a Tab.
const scrolls = new ResizeObserver((entries) => {
  for (const { target } of entries)
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
});
for (const box of document.querySelectorAll("article pre, article .table-wrapper, article .output.text_html"))
  if (!box.closest(".explorer")) scrolls.observe(box);

document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages");
document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
