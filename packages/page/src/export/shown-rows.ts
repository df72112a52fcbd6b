import type { Row, Value } from "./exports.ts";

const NOT_EXPORTED = ".unseen, [aria-hidden], tbody button, meter";
const BLOCKS = "div, p, li, dd";
// "3 min", as in "registered for 3 min". As the only text of a cell it is a time nonetheless.
const DURATION = /^\d+ (?:s|min|h|d)$/;
const NUMBER = /^-?\d+(?:\.\d+)?$/;

/** Returns the rows of a table as they are shown, with times in UTC and amounts without their units. */
export function rowsOfTable(table: HTMLTableElement): Row[] {
  const titles = [...table.querySelectorAll(":scope > thead th")].map((title) => textOf(title));
  const rows = [...table.querySelectorAll(":scope > tbody > tr:not(.below)")].map(({ children }) =>
    [...children].map(exportedValue),
  );
  // A column of buttons only has nothing to export.
  const isExported = titles.map(
    (_, at) =>
      !table.querySelector(`:scope > tbody > tr > :nth-child(${at + 1}) button`) ||
      rows.some((row) => row[at]),
  );
  return rows.map((values) =>
    Object.fromEntries(
      titles.flatMap((title, at) => (isExported[at] ? [[title, values[at] ?? null] as const] : [])),
    ),
  );
}

/** Returns the facts of a list of facts. */
export function rowsOfFacts(list: HTMLDListElement): Row[] {
  return [...list.querySelectorAll(":scope > div")].map(({ children: [what, value] }) => ({
    Fact: textOf(what!),
    Value: exportedValue(value!),
  }));
}

function exportedValue(cell: Element): Value {
  const time = cell.querySelector("time");
  if (time && time.dateTime !== "" && time.textContent === cell.textContent) return time.dateTime;
  const text = textOf(cell);
  if (text === "" || text === "–") return null;
  return NUMBER.test(text) && String(Number(text)) === text ? Number(text) : text;
}

function textOf(element: Element): string {
  return piecesOf(element)
    .join("")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/(?:; ?)+(?=;|$)/g, "")
    .trim();
}

function piecesOf(element: Element): string[] {
  return [...element.childNodes].flatMap((node) => {
    if (node instanceof Text) return [node.data];
    if (!(node instanceof Element) || node.matches(NOT_EXPORTED)) return [];
    if (node instanceof HTMLTimeElement)
      return [DURATION.test(node.textContent) ? node.textContent : node.dateTime];
    if (node instanceof HTMLDataElement) return [node.value];
    return [...piecesOf(node), ...(node.matches(BLOCKS) ? ["; "] : [])];
  });
}
