// One language or both, as in the notebooks. Without scripts both show.
const page = document.documentElement;
const buttons = document.querySelectorAll("[data-choose]");
function show(choice) {
  page.dataset.show = choice;
  page.lang = choice === "en" ? "en" : "zh";
  for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.choose === choice);
}
let saved = null;
try {
  saved = localStorage.getItem("hookedu-language");
} catch {
  /* not allowed for files here */
}
show(["zh", "en", "both"].includes(saved) ? saved : navigator.language.startsWith("zh") ? "zh" : "en");
for (const button of buttons)
  button.addEventListener("click", () => {
    show(button.dataset.choose);
    try {
      localStorage.setItem("hookedu-language", button.dataset.choose);
    } catch {
      /* forgotten, then */
    }
  });
// A choice made in another tab holds here too, also one that arrives after this page has been shown.
addEventListener("storage", (event) => {
  if (event.key === "hookedu-language" && event.newValue) show(event.newValue);
});
