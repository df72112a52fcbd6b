import { NodekeeperError } from "@nodekeeper/api/errors";
import { quote } from "@nodekeeper/api/text";
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  type Scalar,
  visit,
} from "yaml";

/** Position in a text. Line and column are 1-based. */
export interface Place {
  line: number;
  column: number;
}

/** A problem in a YAML text. */
export class YamlError extends NodekeeperError {
  /** Path of the value, such as "policies[0].when". Empty for the whole text. */
  readonly path: string;
  /** Undefined if the problem concerns the whole text. */
  readonly place: Place | undefined;

  constructor(path: string, place: Place | undefined, message: string) {
    super("invalid", message);
    this.path = path;
    this.place = place;
  }
}

/** Formats "policies.yaml:4:11: when: is empty". Empty parts are omitted. */
export function describeAt(file: string, place: Place | undefined, ...parts: readonly string[]): string {
  const at = place ? `${file}:${place.line}:${place.column}` : file;
  return [at, ...parts.filter((part) => part !== "")].join(": ");
}

const MOST_PROBLEMS = 20;
// Nested aliases could expand without bound.
const MOST_ALIASES = 100;
/** Aliases of a text in all. */
const MOST_ALIASES_WRITTEN = 1_000;

/** The parsed text that values belong to. */
interface Source {
  text: string;
  lines: LineCounter;
  document: Document;
  /** The nodes that aliases refer to. */
  targets: ReadonlyMap<Alias, Node>;
}

/**
 * Parses a YAML text that contains one document. Does not throw. Returns a root if there are no problems.
 * @param longest maximum length in characters
 */
export function parseYaml(text: string, longest: number): { root?: YamlValue; problems: YamlError[] } {
  const refused = (message: string, place?: Place) => ({ problems: [new YamlError("", place, message)] });
  if (text.length > longest) return refused(`has ${text.length} characters, more than ${longest}`);
  const lines = new LineCounter();
  const placeOf = (offset: number) => placeAt(lines, offset);
  const documents = parseAllDocuments(text, { lineCounter: lines, uniqueKeys: true, prettyErrors: false });
  const errors = [...documents].flatMap((parsed) => parsed.errors).slice(0, MOST_PROBLEMS);
  if (errors.length > 0)
    return { problems: errors.map(({ pos, message }) => new YamlError("", placeOf(pos[0]), message)) };
  const [document, second] = documents as Document.Parsed[];
  if (second) return refused("more than one YAML document", placeOf(second.range[0]));
  if (!document || document.contents === null) return refused("the file is empty");
  const { targets, unusable } = resolveAliases(document);
  if (unusable) return refused(unusable.message, placeOf(unusable.alias.range?.[0] ?? 0));
  return { root: new YamlValue(document.contents, { text, lines, document, targets }, ""), problems: [] };
}

/** Value of a YAML text. Its methods throw YamlError if the value has another type. */
export class YamlValue {
  readonly path: string;
  readonly #node: Node | null | undefined;
  readonly #source: Source;
  readonly #offset: number;

  /**
   * @param node null if the value is empty, undefined if it is missing @param fallback offset to report in both cases
   */
  constructor(node: Node | null | undefined, source: Source, path: string, fallback = 0) {
    this.#node = isAlias(node) ? source.targets.get(node) : node;
    this.#source = source;
    this.#offset = node?.range?.[0] ?? fallback;
    this.path = path;
  }

  get place(): Place {
    return placeAt(this.#source.lines, this.#offset);
  }

  get isMapping(): boolean {
    return isMap(this.#node);
  }

  get isText(): boolean {
    return isScalar(this.#node) && typeof this.#node.value === "string";
  }

  /** Whether nothing is written, as for a mapping whose lines are all comments. */
  get isEmpty(): boolean {
    return !this.#node || (isScalar(this.#node) && this.#node.value === null);
  }

  error(message: string): YamlError {
    return new YamlError(this.path, this.place, message);
  }

  #wrong(form: string): YamlError {
    return this.error(this.#node === undefined ? `is missing; it must be ${form}` : `must be ${form}`);
  }

  /** Returns the value as plain JSON. */
  plain(): unknown {
    try {
      return this.#node?.toJS(this.#source.document, { maxAliasCount: MOST_ALIASES }) ?? null;
    } catch (error) {
      throw this.error((error as Error).message);
    }
  }

  text(): string {
    if (isScalar(this.#node) && typeof this.#node.value === "string") return this.#node.value;
    throw this.#wrong("a string");
  }

  oneOf<const W extends string>(words: readonly W[]): W {
    const text = this.text();
    const word = words.find((each) => each === text);
    if (word === undefined) throw this.error(`${quote(text)} is none of ${words.join(", ")}`);
    return word;
  }

  /**
   * Returns the result of `read` for the text of a scalar. An error of `read` is reported at its `offset` in the text.
   * @param read also receives a function that returns the position of an offset
   */
  parse<T>(read: (text: string, placeAt: (offset: number) => Place) => T): T {
    const node = this.#node;
    if (!isScalar(node) || !["string", "number", "boolean"].includes(typeof node.value))
      throw this.#wrong("a single value");
    const at = (offset: number) => placeIn(node, offset, this.#source);
    try {
      // YAML parses 5 as a number and true as a boolean, but expressions need the text.
      return read(typeof node.value === "string" ? node.value : (node.source ?? String(node.value)), at);
    } catch (error) {
      if (!(error instanceof NodekeeperError)) throw error;
      const offset = "offset" in error ? Number(error.offset) : 0;
      throw new YamlError(this.path, at(offset), error.message);
    }
  }

  /** Returns the items of a list. Throws if there are more than `most`. */
  items(most: number): YamlValue[] {
    if (!isSeq(this.#node)) throw this.#wrong("a list");
    const { items } = this.#node;
    if (items.length > most) throw this.error(`has ${items.length} items, more than ${most}`);
    return items.map((item, index) => new YamlValue(item as Node, this.#source, `${this.path}[${index}]`));
  }

  /** Returns the entries of a mapping with the positions of their names. */
  entries(): { name: string; namedAt: Place; value: YamlValue }[] {
    if (!isMap(this.#node)) throw this.#wrong("a mapping");
    return this.#node.items.map(({ key, value: written }) => {
      const name = isScalar(key) ? String(key.value) : String(key);
      const offset = (key as Node).range?.[0] ?? 0;
      const value = new YamlValue(written as Node | null, this.#source, this.#pathOf(name), offset);
      return { name, namedAt: placeAt(this.#source.lines, offset), value };
    });
  }

  /** Returns the values of a mapping, which must be strings, by name. */
  texts(): Record<string, string> {
    return Object.fromEntries(
      this.entries().map(({ name, value }) => {
        if (isScalar(value.#node) && typeof value.#node.value === "string") return [name, value.#node.value];
        throw new YamlError(this.path, value.place, "must contain only strings; quote numbers");
      }),
    );
  }

  /** Returns the fields of a mapping. Throws for unknown fields. */
  fields(known: readonly string[]): YamlFields {
    const fields = new Map<string, YamlValue>();
    for (const { name, namedAt, value } of this.entries()) {
      if (!known.includes(name)) {
        const message = `there is no field ${quote(name)}; there are: ${known.join(", ")}`;
        throw new YamlError(this.path, namedAt, message);
      }
      fields.set(name, value);
    }
    const missing = (name: string) =>
      new YamlValue(undefined, this.#source, this.#pathOf(name), this.#offset);
    return {
      get: (name) => fields.get(name),
      need: (name) => fields.get(name) ?? missing(name),
    };
  }

  #pathOf(name: string): string {
    return this.path === "" ? name : `${this.path}.${name}`;
  }
}

/** The fields of a mapping. */
export interface YamlFields {
  get(name: string): YamlValue | undefined;
  /** Returns the field. If it is absent, returns a value whose methods throw at the position of the mapping. */
  need(name: string): YamlValue;
}

function placeAt(lines: LineCounter, offset: number): Place {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

/**
 * Resolves each alias to the last node before it with its anchor. `unusable` is the first alias that has no anchor, is
 * within the node of its own anchor, or exceeds the maximum number of aliases. The parser accepts the first two.
 */
function resolveAliases(document: Document): {
  targets: Map<Alias, Node>;
  unusable?: { alias: Alias; message: string };
} {
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  let unusable: { alias: Alias; message: string } | undefined;
  const refuse = (alias: Alias, why: string) => {
    unusable = { alias, message: `*${alias.source.slice(0, 120)} ${why}` };
    return visit.BREAK;
  };
  visit(document, {
    Value(_, node) {
      if (node.anchor) anchors.set(node.anchor, node);
    },
    Alias(_, alias, ancestors) {
      const target = anchors.get(alias.source);
      if (!target) return refuse(alias, "refers to an undefined anchor");
      if (ancestors.includes(target)) return refuse(alias, "refers to a value that contains it");
      if (targets.size >= MOST_ALIASES_WRITTEN)
        return refuse(alias, `is one of more than ${MOST_ALIASES_WRITTEN} aliases`);
      targets.set(alias, target);
      return undefined;
    },
  });
  return { targets, ...(unusable && { unusable }) };
}

// Maps an offset in a value to a position in the source. The two may differ in indentation and line breaks. If other
// characters differ, as with escapes, returns the start of the value.
function placeIn({ range, value, type }: Scalar, offset: number, { text, lines }: Source): Place {
  if (!range || typeof value !== "string") return placeAt(lines, range?.[0] ?? 0);
  const written = text.slice(range[0], range[1]);
  let at = 0;
  if (type === "BLOCK_LITERAL" || type === "BLOCK_FOLDED") at = written.indexOf("\n") + 1;
  else if (type !== "PLAIN") at = 1;
  for (let index = 0; index <= offset; index++) {
    const character = value[index] ?? "";
    if (character.trim() === "" && index < offset) continue;
    while (at < written.length && written[at]!.trim() === "") at++;
    if (index === offset) break;
    if (written[at] !== character) return placeAt(lines, range[0]);
    at++;
  }
  return placeAt(lines, range[0] + Math.min(at, written.length));
}
