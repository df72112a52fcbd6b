import { readFile } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { errorReply, type Reply } from "./reply.ts";

/** Reads a file of the page by name. Resolves with undefined if there is no such file. */
export type ReadPageFile = (name: string) => Promise<Uint8Array | undefined>;

/** The path prefix of the page's files, except index.html, which is at "/". */
export const PAGE_ROOT = "/page/";

const contentTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

// Allows only the agent's own files and responses, and no framing: https://www.w3.org/TR/CSP3/
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Whether a client prefers the page at "/" to the list of paths: browsers do, curl does not. */
export function prefersPage(accept: string | undefined): boolean {
  return accept?.includes("text/html") === true;
}

/** Serves the page or one of its files. Files are read on request and not cached in memory. */
export async function pageReply(read: ReadPageFile, name: string): Promise<Reply> {
  const [, ending] = /^[\w-]+\.([a-z]+)$/.exec(name) ?? [];
  const contentType = contentTypes[ending ?? ""];
  const body = contentType === undefined ? undefined : await read(name);
  if (contentType === undefined || body === undefined)
    return errorReply(
      new NodekeeperError("notFound", `the page has no file ${JSON.stringify(name.slice(0, 100))}`),
    );
  return {
    status: 200,
    contentType,
    body,
    headers: { "Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer", Vary: "Accept" },
  };
}

/** Reads files from a directory built by `npm run page`. A missing directory has no files. */
export function pageDirectory(directory: string): ReadPageFile {
  if (!isAbsolute(directory)) throw new TypeError(`${directory} is not absolute`);
  return async (name) => {
    try {
      return await readFile(join(directory, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  };
}
