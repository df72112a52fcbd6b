import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";

/** A server that ends when it is disposed of. */
export interface DirectoryServer extends Disposable {
  /** Ends with "/". */
  url: string;
}

/** Serves `directory` on the loopback; `port` 0 takes a free one. Resolves once it listens. */
export async function serveDirectory(directory: string, port: number): Promise<DirectoryServer> {
  const types: Record<string, string> = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css",
    ".js": "text/javascript",
    ".png": "image/png",
  };
  const server = createServer(async (request, response) => {
    // Names of pages need no escapes. Whatever is asked for, nothing here is parsed that could be malformed.
    const [path = "/"] = (request.url ?? "/").split(/[?#]/);
    const file = join(directory, path.endsWith("/") ? `${path}index.html` : path);
    const content = path.split("/").includes("..") ? undefined : await readFile(file).catch(() => undefined);
    if (!content) return response.writeHead(404).end("not found\n");
    response
      .writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" })
      .end(content);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    [Symbol.dispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}
