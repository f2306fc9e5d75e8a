// What Sphinx's search page says, in both languages. The keys are Sphinx's own (searchtools.js).
Documentation.addTranslations({
  locale: "en",
  plural_expr: "n === 1 ? 0 : 1",
  messages: {
    "Hide Search Matches": "不再标出搜索的词 · Hide Search Matches",
    "Preparing search...": "正在准备搜索…… · Preparing search…",
    "Search Results": "搜索结果 · Search Results",
    "Searching": "正在搜索 · Searching",
    "Search finished, found one page matching the search query.": [
      "找到的页数 · Pages found: 1",
      "找到的页数 · Pages found: ${resultCount}",
    ],
    "Your search did not match any documents. Please make sure that all words are spelled correctly and that you've selected enough categories.":
      "没有找到。请换个说法，或者少用几个词。 · Nothing found. Try other words, or fewer of them.",
  },
});

// From a disk, a browser may not read other pages to quote from them: the list of pages is what can be had.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
