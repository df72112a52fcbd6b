import { open } from "node:fs/promises";
import { messageOf } from "@nodekeeper/core/lib";
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  LineCounter,
  parseAllDocuments,
  visit,
  type YAMLMap,
} from "yaml";
import { nearestName, type Problem, wrongValue } from "./problem.ts";
import { apiVersion, kind, schema } from "./schema.ts";
import type { Section } from "./section.ts";
import { isSection } from "./setting.ts";
import { settings } from "./settings.ts";

const MAX_FILE_BYTES = 1024 * 1024;

/** A value from a source, not yet validated. */
export interface GivenValue {
  value: unknown;
  source: string;
}

/** Content of a file: values by path, and structural problems. Values are validated by `loadConfiguration`. */
export interface FileContent {
  values: Map<string, GivenValue>;
  problems: Problem[];
}

/** Reads a configuration file. A file that cannot be read is returned as a problem. */
export async function readConfigurationFile(path: string): Promise<FileContent> {
  try {
    const text = await readBounded(path);
    if (text === undefined) return invalid(path, "the file is larger than 1 MiB");
    return parseConfigurationText(text, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return invalid(
      path,
      code === "ENOENT" ? "the file does not exist" : `failed to read: ${(error as Error).message}`,
    );
  }
}

/** Parses the text of a configuration file. Problems name it `name`. */
export function parseConfigurationText(text: string, name: string): FileContent {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, uniqueKeys: true, prettyErrors: false });
  if (!Array.isArray(documents) || documents.length === 0) return invalid(name, "the file is empty");
  const [document] = documents as Document.Parsed[];
  const line = (offset: number) => `${name}:${lines.linePos(offset).line}`;

  const errors = documents.flatMap((parsed) => parsed.errors);
  if (errors.length > 0) {
    const problems = errors
      .slice(0, 20)
      .map(({ pos, message }) => ({ source: line(pos[0]), path: "", message }));
    return { values: new Map(), problems };
  }
  if (documents.length > 1) return invalid(line(documents[1]!.range[0]), "more than one YAML document");
  if (document!.contents === null) return invalid(name, "the file is empty");
  if (!isMap(document!.contents))
    return invalid(line(document!.contents.range[0]), "expected a map of settings");

  const alias = unusableAlias(document!);
  if (alias) return invalid(line(alias.offset), alias.message);

  const content: FileContent = { values: new Map(), problems: [] };
  const reader = { document: document!, line, content };
  readSection(reader, document!.contents, schema, "");
  readHeader(reader, document!.contents, name);
  return content;
}

interface Reader {
  document: Document;
  line(offset: number): string;
  content: FileContent;
}

function readHeader({ line, content }: Reader, map: YAMLMap, name: string): void {
  for (const [key, wanted] of Object.entries({ apiVersion, kind })) {
    const node = map.get(key, true);
    if (node?.value === wanted) continue;
    const source = node?.range ? line(node.range[0]) : name;
    const message = node
      ? wrongValue(node.value, JSON.stringify(wanted))
      : `missing, expected ${JSON.stringify(wanted)}`;
    content.problems.push({ source, path: key, message });
  }
}

function readSection(reader: Reader, map: YAMLMap, section: Section, prefix: string): void {
  const { document, line, content } = reader;
  for (const { key, value: written } of map.items) {
    const name = isScalar(key) ? String(key.value) : String(key);
    const source = line((key as { range?: [number, number, number] }).range?.[0] ?? 0);
    const path = `${prefix}${name}`;
    if (prefix === "" && (name === "apiVersion" || name === "kind")) continue;

    const declared = Object.hasOwn(section.settings, name) ? section.settings[name] : undefined;
    if (!declared) {
      content.problems.push({
        source,
        path: shortened(path),
        message: unknownSetting(name, section, prefix),
      });
      continue;
    }
    const value = isAlias(written) ? written.resolve(document) : written;
    if (!isSection(declared)) {
      try {
        content.values.set(path, { value: plainValue(value, document), source });
      } catch (error) {
        // Nested aliases could expand without bound.
        content.problems.push({ source, path, message: messageOf(error) });
      }
    } else if (isMap(value)) {
      readSection(reader, value, declared, `${path}.`);
    } else if (!isEmpty(value)) {
      // A section whose lines are all commented out is null, which is accepted.
      content.problems.push({
        source,
        path,
        message: wrongValue(plainValue(value, document), "a map of settings"),
      });
    }
  }
}

/** The first alias without an anchor, or within its own anchor. The parser accepts both. */
function unusableAlias(document: Document): { offset: number; message: string } | undefined {
  let found: { offset: number; message: string } | undefined;
  visit(document, {
    Alias(_, alias, ancestors) {
      const target = alias.resolve(document);
      if (target && !ancestors.includes(target)) return undefined;
      const why = target ? "a value that contains it" : "an undefined anchor";
      found = { offset: alias.range?.[0] ?? 0, message: `*${shortened(alias.source)} refers to ${why}` };
      return visit.BREAK;
    },
  });
  return found;
}

// The same name in another section is a better suggestion than a similar name in this section.
function unknownSetting(name: string, section: Section, prefix: string): string {
  const elsewhere = settings.find(({ path }) => path.split(".").at(-1) === name)?.path;
  const sibling = nearestName(name, Object.keys(section.settings));
  const guess = elsewhere ?? (sibling && `${prefix}${sibling}`);
  return guess === undefined ? "unknown setting" : `unknown setting; did you mean ${guess}?`;
}

function plainValue(node: unknown, document: Document): unknown {
  if (node === null || node === undefined) return null;
  return (node as { toJS(document: Document, options: object): unknown }).toJS(document, {
    maxAliasCount: 100,
  });
}

function isEmpty(node: unknown): boolean {
  return node === null || node === undefined || (isScalar(node) && node.value === null);
}

function invalid(source: string, message: string): FileContent {
  return { values: new Map(), problems: [{ source, path: "", message }] };
}

function shortened(path: string): string {
  return path.length > 120 ? `${path.slice(0, 120)}...` : path;
}

// Reads at most one byte beyond the limit, so that a huge file or an endless device is rejected early.
async function readBounded(path: string): Promise<string | undefined> {
  await using file = await open(path, "r");
  const buffer = Buffer.alloc(MAX_FILE_BYTES + 1);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return length > MAX_FILE_BYTES ? undefined : buffer.toString("utf8", 0, length);
}
