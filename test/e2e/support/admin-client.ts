import { readFileSync } from "node:fs";
import https from "node:https";
import { parseWithBigInts } from "@nodekeeper/core/lib";
import type { KeyPair } from "./certificates.ts";

/** An object as the API server returns it; integers beyond 2^53 are bigints. */
// biome-ignore lint/suspicious/noExplicitAny: tests read fields of any kind
export type ApiObject = Record<string, any>;

export class ApiError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface AdminClientOptions {
  port: number;
  authority: string;
  identity: KeyPair;
}

const DEADLINE_MS = 60_000;

/** A plain client of the suite's own with every right, so that the agent's client is not checked by itself. */
export class AdminClient {
  readonly #options: AdminClientOptions;

  constructor(options: AdminClientOptions) {
    this.#options = options;
  }

  get(path: string): Promise<ApiObject> {
    return this.#call("GET", path);
  }

  create(path: string, object: ApiObject): Promise<ApiObject> {
    return this.#call("POST", path, object);
  }

  /** @param options fields of DeleteOptions, such as preconditions */
  delete(path: string, options?: ApiObject): Promise<ApiObject> {
    return this.#call("DELETE", path, options && { apiVersion: "v1", kind: "DeleteOptions", ...options });
  }

  /** JSON merge patch as another field manager. */
  patch(path: string, patch: ApiObject, manager = "someone-else"): Promise<ApiObject> {
    return this.#call("PATCH", `${path}?fieldManager=${manager}`, patch, "application/merge-patch+json");
  }

  /** Forced server-side apply as another field manager. */
  apply(path: string, object: ApiObject, manager = "someone-else"): Promise<ApiObject> {
    return this.#call(
      "PATCH",
      `${path}?force=true&fieldManager=${manager}`,
      object,
      "application/apply-patch+yaml",
    );
  }

  #call(
    method: string,
    path: string,
    body?: ApiObject,
    contentType = "application/json",
  ): Promise<ApiObject> {
    const { port, authority, identity } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<ApiObject>();
    const sent = body ? JSON.stringify(body) : "";
    const request = https.request(
      {
        host: "127.0.0.1",
        port,
        method,
        path,
        ca: readFileSync(authority),
        cert: readFileSync(identity.certificate),
        key: readFileSync(identity.key),
        // Node would send the body of a DELETE without its length, and the server would ignore it.
        headers: {
          ...{ accept: "application/json", "content-type": contentType },
          "content-length": Buffer.byteLength(sent),
        },
        agent: false,
        signal: AbortSignal.timeout(DEADLINE_MS),
      },
      async (response) => {
        try {
          let text = "";
          for await (const chunk of response) text += chunk;
          const status = response.statusCode ?? 0;
          if (status >= 300)
            reject(new ApiError(status, `${method} ${path}: ${status} ${text.slice(0, 500)}`));
          else resolve(text.startsWith("{") ? (parseWithBigInts(text) as ApiObject) : { text });
        } catch (error) {
          reject(error);
        }
      },
    );
    request.on("error", reject);
    request.end(sent);
    return promise;
  }
}
