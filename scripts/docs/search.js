// The search of the documentation, in the browser. The index is loaded when somebody first searches.

const MOST_RESULTS = 20;
const SNIPPET_LETTERS = 120;
const field = document.querySelector("#search");
const list = document.querySelector("#results");
const count = document.querySelector("#result-count");
// Of this script: pages of directories are further down.
const root = new URL(".", document.currentScript.src);
let loading;

function loadIndex() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("search-index.js", root).href;
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => {
      // The next input tries again.
      loading = undefined;
      script.remove();
      reject(new Error("The search index can't be loaded."));
    });
    document.head.append(script);
  });
  return loading;
}

/** The sections that have all words, those with a word in a heading first. */
function find(words) {
  const found = [];
  for (const section of globalThis.sections) {
    const [page, heading, text] = [section.page, section.heading, section.text].map((part) =>
      part.toLowerCase(),
    );
    let score = 0;
    for (const word of words) {
      if (heading.includes(word)) score += 4;
      else if (page.includes(word)) score += section.heading === "" ? 5 : 2;
      else if (text.includes(word)) score += 1;
      else {
        score = 0;
        break;
      }
    }
    if (score > 0) found.push({ section, score });
  }
  return found.sort((a, b) => b.score - a.score).map(({ section }) => section);
}

function snippetOf({ text }, [word]) {
  const at = Math.max(text.toLowerCase().indexOf(word) - SNIPPET_LETTERS / 3, 0);
  return `${at > 0 ? "…" : ""}${text.slice(at, at + SNIPPET_LETTERS)}`;
}

function itemOf(section, words) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = new URL(section.address, root).href;
  link.textContent = section.heading ? `${section.page}: ${section.heading}` : section.page;
  const snippet = document.createElement("p");
  snippet.textContent = snippetOf(section, words);
  item.append(link, snippet);
  return item;
}

async function show() {
  const asked = field.value;
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  try {
    if (words.length > 0) await loadIndex();
  } catch ({ message }) {
    list.replaceChildren();
    count.textContent = message;
    return;
  }
  // Typed meanwhile: the later call shows its results.
  if (field.value !== asked) return;
  const found = words.length > 0 ? find(words) : [];
  list.replaceChildren(...found.slice(0, MOST_RESULTS).map((section) => itemOf(section, words)));
  const more = found.length > MOST_RESULTS ? `, the first ${MOST_RESULTS} shown` : "";
  count.textContent = words.length === 0 ? "" : `${found.length} found${more}`;
}

/** Arrows move between the field and the results. */
function move(event, by) {
  const stops = [field, ...list.querySelectorAll("a")];
  const at = stops.indexOf(document.activeElement);
  if (at < 0) return;
  event.preventDefault();
  stops[Math.min(Math.max(at + by, 0), stops.length - 1)].focus();
}

document.querySelector("#searching").hidden = false;
field.addEventListener("input", () => void show());
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    field.focus();
  } else if (event.key === "ArrowDown") move(event, 1);
  else if (event.key === "ArrowUp") move(event, -1);
  else if (event.key === "Escape" && document.activeElement?.closest("#searching")) {
    field.value = "";
    field.focus();
    void show();
  }
});
