import { readFile } from "node:fs/promises";
import { NodekeeperError } from "@nodekeeper/core/lib";

/** What the files of the configuration contain. */
export interface Access {
  /** PEM; undefined for the default. */
  ca: string | undefined;
  /** By name in lower case. */
  headers: Readonly<Record<string, string>>;
}

/** Paths; empty for none. */
export interface AccessFiles {
  caFile: string;
  headersFile: string;
}

/** Reads the files, which may be mounts of a Secret that is renewed. Rejects with a message that names the file. */
export async function readAccess({ caFile, headersFile }: AccessFiles): Promise<Access> {
  const [ca, headers] = await Promise.all([contentOf(caFile), contentOf(headersFile)]);
  return { ca, headers: headers === undefined ? {} : headersOf(headers, headersFile) };
}

async function contentOf(path: string): Promise<string | undefined> {
  return path === "" ? undefined : await readFile(path, "utf8");
}

const HEADER = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+)\s*:\s*([\t\x20-\x7e]*)$/;

/**
 * Parses lines of "Name: value" and returns the values by name in lower case. Empty lines and lines that start with "#"
 * are ignored. Throws `invalid`, naming the file and the line number but not the line's text.
 * @param path path of the file, for messages
 */
export function headersOf(text: string, path: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [at, line] of text.split("\n").entries()) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const [, name, value] = HEADER.exec(trimmed) ?? [];
    if (name === undefined || value === undefined)
      throw new NodekeeperError("invalid", `${path}: line ${at + 1} is not "Name: value"`);
    headers[name.toLowerCase()] = value;
  }
  return headers;
}
