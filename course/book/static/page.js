// The home page of both sites opens the one that was read last.
try {
  localStorage.setItem("hookedu-language", document.documentElement.lang.slice(0, 2));
} catch {
  /* forgotten, then */
}

// A link to the other language leads to the same place of the same page, also in a search.
addEventListener("click", (event) => {
  const link = event.target.closest?.("a.language-switch");
  if (link) link.href = link.href.split(/[?#]/)[0] + location.search + location.hash;
});

// Search quotes from the text of a page, without the buttons and contents that the theme puts around it.
addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const whole = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const article = page.querySelector("article");
    article?.setAttribute("role", "main");
    return whole(article ? article.outerHTML : html, anchor);
  };
});

// From a disk, a browser may not read other pages to quote from them: the list of pages is what can be had.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
