import { open } from "node:fs/promises";
import {
  apiVersion,
  isSection,
  kind,
  type Section,
  schema,
  settings,
  wrongValue,
} from "@nodekeeper/api/settings";
import { describeAt, type Place, parseYaml, type YamlValue } from "@nodekeeper/core/yaml";
import { nearestName, type Problem, shortened } from "./problem.ts";

const MAX_FILE_BYTES = 1024 * 1024;

/** A value from a source, not yet validated. */
export interface GivenValue {
  value: unknown;
  source: string;
}

/** Content of a file: values by path, and structural problems. `loadConfiguration` validates the values. */
export interface FileContent {
  /** Undefined if the file could not be read. */
  text?: string;
  values: Map<string, GivenValue>;
  problems: Problem[];
}

/** Reads a configuration file. A failed read is returned as a problem. */
export async function readConfigurationFile(path: string): Promise<FileContent> {
  const refused = (message: string) => ({
    values: new Map(),
    problems: [{ source: path, path: "", message }],
  });
  try {
    const text = await readBounded(path);
    return text === undefined ? refused("the file is larger than 1 MiB") : parseConfigurationText(text, path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return refused(code === "ENOENT" ? "the file does not exist" : `failed to read: ${message}`);
  }
}

/** Parses a configuration file. @param file name of the file in problems */
export function parseConfigurationText(text: string, file: string): FileContent {
  const content: FileContent = { text, values: new Map(), problems: [] };
  const report = (place: Place | undefined, path: string, message: string) =>
    content.problems.push({ source: describeAt(file, place), path: shortened(path), message });
  const { root, problems } = parseYaml(text, MAX_FILE_BYTES);
  for (const { place, message } of problems) report(place, "", message);
  if (!root) return content;
  if (!root.isMapping) {
    report(root.place, "", "expected a map of settings");
    return content;
  }
  const readSection = (section: Section, prefix: string, value: YamlValue) => {
    for (const { name, namedAt, value: given } of value.entries()) {
      if (prefix === "" && Object.hasOwn(header, name)) continue;
      const { path } = given;
      const declared = Object.hasOwn(section.settings, name) ? section.settings[name] : undefined;
      if (!declared) report(namedAt, path, unknownSetting(name, section, prefix));
      else if (!isSection(declared)) readSetting(given);
      else if (given.isMapping) readSection(declared, `${path}.`, given);
      // A section whose lines are all commented out is empty and accepted.
      else if (!given.isEmpty) report(given.place, path, wrongValue(given.plain(), "a map of settings"));
    }
  };
  const readSetting = (given: YamlValue) => {
    const { path, place } = given;
    try {
      content.values.set(path, { value: given.plain(), source: describeAt(file, place) });
    } catch (error) {
      report(place, path, (error as Error).message);
    }
  };
  readSection(schema, "", root);
  const written = root.entries();
  for (const [name, wanted] of Object.entries(header)) {
    const value = written.find((entry) => entry.name === name)?.value;
    const expected = JSON.stringify(wanted);
    if (!value) report(undefined, name, `missing, expected ${expected}`);
    else if (value.plain() !== wanted) report(value.place, name, wrongValue(value.plain(), expected));
  }
  return content;
}

const header: Readonly<Record<string, string>> = { apiVersion, kind };

// The same name in another section is a better suggestion than a similar name in this section.
function unknownSetting(name: string, section: Section, prefix: string): string {
  const elsewhere = settings.find(({ path }) => path.split(".").at(-1) === name)?.path;
  const sibling = nearestName(name, Object.keys(section.settings));
  const guess = elsewhere ?? (sibling && `${prefix}${sibling}`);
  return guess === undefined ? "unknown setting" : `unknown setting; did you mean ${guess}?`;
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
