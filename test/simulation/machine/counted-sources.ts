import { join } from "node:path";

const census = join(import.meta.dirname, "census.ts");

// A map or set, or a controller, whose signal has listeners. A RecentMap bounds itself.
const CREATED = /\bnew (Map|Set|AbortController)\b/g;
// A field of a class, which may be assigned another array later.
const FIELD = /^ {2}(?:readonly )?(#?\w+)(?:: (?:[^=]|=>)+)? = (?=\[\];$)/;
const DECLARED = /(#?\w+)\??(?:: [^=]+)? = (?:[^=]* \?\? )?$/;

/**
 * Returns a source whose maps, sets, controllers, and arrays in fields are counted (`Census`) by their place. Lines stay
 * where they are.
 * @param path as in the places
 */
export function countedSource(text: string, path: string): string {
  const lines = text.split("\n").map((line, at) => countedLine(line, (name) => `${path} ${name ?? at + 1}`));
  const source = lines.join("\n");
  return source === text
    ? text
    : `${source}\nimport { censusIfAny as $census, counted as $counted } from ${JSON.stringify(census)};\n`;
}

function countedLine(line: string, placeOf: (name: string | undefined) => string): string {
  const [declared, name] = FIELD.exec(line) ?? [];
  if (declared !== undefined) {
    const place = JSON.stringify(placeOf(name));
    return `${declared}($census()?.add(${place}, this, (self) => self.${name}.length), []);`;
  }
  return line.replaceAll(CREATED, (_all, Class: string, offset: number) => {
    const [, variable] = DECLARED.exec(line.slice(0, offset)) ?? [];
    return `new ($counted(${Class}, ${JSON.stringify(placeOf(variable))}))`;
  });
}
