// The views in a page are light or dark as the page is: they look for a class `dark` or `light`, Furo writes `data-theme`.
const follow = () => {
  const { theme } = document.body.dataset;
  document.body.classList.toggle("dark", theme === "dark");
  document.body.classList.toggle("light", theme === "light");
};
new MutationObserver(follow).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });
follow();
