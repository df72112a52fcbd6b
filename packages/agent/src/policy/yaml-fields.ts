import { NodekeeperError, quote } from "@nodekeeper/core/lib";
import {
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  type YAMLMap,
} from "yaml";
import { ExpressionError } from "./expression-error.ts";

/** Something that is wrong in a YAML text, with its place: "policies[0] memory: when: 4:11: is empty". */
export class PlacedError extends NodekeeperError {
  readonly field: string;
  /** From 1; 0 where there is no place. */
  readonly line: number;
  readonly column: number;

  constructor(field: string, { line, col }: { line: number; col: number }, message: string) {
    super("invalid", message, { id: "NK1010" });
    this.field = field;
    this.line = line;
    this.column = col;
  }
}

/** The text that is read, and where its lines begin. */
export interface SourceText {
  text: string;
  lines: LineCounter;
}

/** Reads a value's text. @param placeAt returns where an offset of it is in the file, from 1 */
type Read<T> = (text: string, placeAt: (offset: number) => { line: number; col: number }) => T;

/** Parses a YAML text of one mapping, of at most so many characters. Throws `invalid`. @param known its fields */
export function parseYaml(
  text: string,
  longest: number,
  known: readonly string[],
): { fields: YamlFields; source: SourceText } {
  if (text.length > longest) {
    throw new NodekeeperError("invalid", `has ${text.length} characters, more than ${longest}`, {
      id: "NK1010",
    });
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [error] = document.errors;
  if (error) throw new PlacedError("", lines.linePos(error.pos[0]), error.message);
  const source = { text, lines };
  return { fields: new YamlFields(document.contents, source, "", known), source };
}

/** Reads the fields of one mapping; a wrong one is reported with its place. */
export class YamlFields {
  readonly #map: YAMLMap;
  readonly #source: SourceText;
  readonly #path: string;

  /** Throws PlacedError for what is no mapping, and for fields that are not known. @param path of the mapping; may be empty */
  constructor(node: unknown, source: SourceText, path: string, known: readonly string[]) {
    if (!isMap(node)) throw new PlacedError(path, placeOf(node, source), "must be a mapping");
    this.#map = node;
    this.#source = source;
    this.#path = path;
    for (const { key } of node.items) {
      const name = isScalar(key) ? String(key.value) : "?";
      if (known.includes(name)) continue;
      const message = `there is no field ${quote(name)}; there are: ${known.join(", ")}`;
      throw new PlacedError(path, placeOf(key, source), message);
    }
  }

  has(name: string): boolean {
    return this.#map.has(name);
  }

  /** A text, or `otherwise` where the field is absent. */
  text(name: string, otherwise?: string): string {
    const scalar = this.#scalar(name);
    if (scalar === undefined && otherwise !== undefined) return otherwise;
    if (typeof scalar?.value !== "string") throw this.error(name, "must be a text");
    return scalar.value;
  }

  oneOf<const W extends string>(name: string, words: readonly W[], otherwise?: W): W {
    const text = this.text(name, otherwise);
    const word = words.find((each) => each === text);
    if (word === undefined) throw this.error(name, `${quote(text)} is none of ${words.join(", ")}`);
    return word;
  }

  /** What `read` makes of a text; its errors are reported with their place. Undefined where the field is absent. */
  parsed<T>(name: string, read: Read<T>): T | undefined {
    const scalar = this.#scalar(name);
    return scalar === undefined ? undefined : this.#parse(name, scalar, read);
  }

  /** The same for each item of a list. */
  parsedList<T>(name: string, most: number, read: Read<T>): T[] | undefined {
    return this.items(name, most)?.map((item, index) => {
      const field = `${name}[${index}]`;
      if (isScalar(item)) return this.#parse(field, item, read);
      throw new PlacedError(this.#in(field), placeOf(item, this.#source), "must be a text");
    });
  }

  /** Texts by name; undefined where the field is absent. */
  texts(name: string): Record<string, string> | undefined {
    const node = this.#map.get(name, true);
    if (node === undefined) return undefined;
    if (!isMap(node)) throw this.error(name, "must be a mapping");
    const entries = node.items.map(({ key, value }) => {
      const isText = isScalar(key) && isScalar(value) && typeof value.value === "string";
      if (isText) return [String(key.value), value.value as string];
      const place = placeOf(value ?? key, this.#source);
      throw new PlacedError(this.#in(name), place, "must have texts alone; numbers need quotes");
    });
    return Object.fromEntries(entries);
  }

  /** The mappings of a list in this one; undefined where the field is absent. */
  fieldsList(name: string, most: number, known: readonly string[]): YamlFields[] | undefined {
    return this.items(name, most)?.map(
      (item, index) => new YamlFields(item, this.#source, this.#in(`${name}[${index}]`), known),
    );
  }

  /** A mapping in this one; undefined where the field is absent. */
  fields(name: string, known: readonly string[]): YamlFields | undefined {
    const node = this.#map.get(name, true);
    return node === undefined ? undefined : new YamlFields(node, this.#source, this.#in(name), known);
  }

  /** The items of a list as they are; undefined where the field is absent. */
  items(name: string, most: number): unknown[] | undefined {
    const list = this.#map.get(name, true);
    if (list === undefined) return undefined;
    if (!isSeq(list)) throw this.error(name, "must be a list");
    if (list.items.length <= most) return list.items;
    throw this.error(name, `has ${list.items.length} items, more than ${most}`);
  }

  /** An error at the field, or at the mapping where it is absent. */
  error(name: string, message: string): PlacedError {
    return new PlacedError(
      this.#in(name),
      placeOf(this.#map.get(name, true) ?? this.#map, this.#source),
      message,
    );
  }

  #scalar(name: string): Scalar | undefined {
    const node = this.#map.get(name, true) as Node | undefined;
    if (node === undefined || isScalar(node)) return node;
    throw this.error(name, "must be a single value");
  }

  #parse<T>(field: string, scalar: Scalar, read: Read<T>): T {
    const { value } = scalar;
    if (!["string", "number", "boolean"].includes(typeof value)) {
      throw new PlacedError(this.#in(field), placeOf(scalar, this.#source), "must be a text");
    }
    try {
      // YAML takes "5" for a number and "true" for a boolean; as expressions they are texts again.
      const text = typeof value === "string" ? value : (scalar.source ?? String(value));
      return read(text, (offset) => placeIn(scalar, offset, this.#source));
    } catch (error) {
      if (!(error instanceof NodekeeperError)) throw error;
      const offset = error instanceof ExpressionError ? error.offset : 0;
      throw new PlacedError(this.#in(field), placeIn(scalar, offset, this.#source), error.message);
    }
  }

  #in(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }
}

/** Where a node of the text begins. */
export function placeOf(node: unknown, { lines }: SourceText): { line: number; col: number } {
  const range = (node as Node | null | undefined)?.range;
  return range ? lines.linePos(range[0]) : { line: 1, col: 1 };
}

// Where an offset of a value is in the text. Indentation and line breaks may differ between the two; where other
// characters do, as with escapes, it is the beginning.
function placeIn(scalar: Scalar, offset: number, source: SourceText): { line: number; col: number } {
  const { range, value, type } = scalar;
  if (!range || typeof value !== "string") return placeOf(scalar, source);
  const written = source.text.slice(range[0], range[1]);
  let at = 0;
  if (type === "BLOCK_LITERAL" || type === "BLOCK_FOLDED") at = written.indexOf("\n") + 1;
  else if (type !== "PLAIN") at = 1;
  for (let index = 0; index <= offset; index++) {
    const character = value[index] ?? "";
    if (character.trim() === "" && index < offset) continue;
    while (at < written.length && isSpace(written[at]!)) at++;
    if (index === offset) break;
    if (written[at] !== character) return placeOf(scalar, source);
    at++;
  }
  return source.lines.linePos(range[0] + Math.min(at, written.length));
}

function isSpace(character: string): boolean {
  return character.trim() === "";
}
