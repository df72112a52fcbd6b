import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { createDevApiServer, type DevApiServer } from "../dev-api-server.ts";
import type { DevApiServerOptions } from "../options.ts";

/** A response with its parsed body. */
export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests read into answers of every shape
  body: any;
}

/** A running server and its clients for tests. */
export interface Harness extends AsyncDisposable {
  server: DevApiServer;
  clock: FakeClock;
  url: string;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Sends a server-side apply. */
  apply(path: string, object: unknown, manager: string, query?: string): Promise<Answer>;
  patch(path: string, type: "merge" | "json" | "strategic-merge", patch: unknown): Promise<Answer>;
  watch(path: string): Promise<WatchReader>;
}

export async function startServer(options: Partial<DevApiServerOptions> = {}): Promise<Harness> {
  const clock = new FakeClock();
  const server = createDevApiServer({ clock, log: silentLogger, ...options });
  const { url } = await server.start();
  const call: Harness["call"] = async (method, path, body, headers = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    return { status: response.status, body: isJson ? JSON.parse(text) : text };
  };
  return {
    server,
    clock,
    url,
    call,
    apply: (path, object, manager, query = "") =>
      call("PATCH", `${path}?fieldManager=${manager}${query}`, object, {
        "content-type": "application/apply-patch+yaml",
      }),
    patch: (path, type, patch) =>
      call("PATCH", path, patch, { "content-type": `application/${type}-patch+json` }),
    watch: (path) => openWatch(url + path),
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

/** Reads the events of a watch. */
export interface WatchReader {
  // biome-ignore lint/suspicious/noExplicitAny: tests read into events of every shape
  next(): Promise<any>;
  cancel(): Promise<void>;
}

async function openWatch(url: string): Promise<WatchReader> {
  const response = await fetch(url);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  return {
    async next() {
      while (!buffer.includes("\n")) {
        const { value, done } = await reader.read();
        if (done) return undefined;
        buffer += value;
      }
      const end = buffer.indexOf("\n");
      const line = buffer.slice(0, end);
      buffer = buffer.slice(end + 1);
      return JSON.parse(line);
    },
    cancel: () => reader.cancel(),
  };
}

export const NODES = "/api/v1/nodes";
export const PODS = "/api/v1/namespaces/default/pods";
export const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
export const NODE_RESOURCES = "/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources";
