import { readFile } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { errorReply, type Reply } from "./reply.ts";

/** Reads a file of the page by its name; undefined where there is none of that name. */
export type ReadPageFile = (name: string) => Promise<Uint8Array | undefined>;

/** The address below which the page's files are served, index.html excepted, which is at "/". */
export const PAGE_ROOT = "/page/";

const contentTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

// Nothing but the agent's own files and answers, and nothing in another page's frame: https://www.w3.org/TR/CSP3/
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

/** Whether a client wants the page at "/" rather than the list of addresses: browsers do, curl does not. */
export function prefersPage(accept: string | undefined): boolean {
  return accept?.includes("text/html") === true;
}

/** The page, or a file of it. Files are read when they are asked for: they take none of the agent's memory. */
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

/** Reads from a folder, as `npm run page` makes it. A folder that is absent has no files. */
export function pageFolder(folder: string): ReadPageFile {
  if (!isAbsolute(folder)) throw new TypeError(`${folder} is not absolute`);
  return async (name) => {
    try {
      return await readFile(join(folder, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  };
}
