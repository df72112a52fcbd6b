import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf, parseExactly } from "@nodekeeper/core/lib";
import { parse as parseYaml } from "yaml";
import { badRequest, StatusError, unsupportedMediaType } from "../status.ts";
import { readProtobuf } from "./protobuf.ts";

// Limit of request bodies in the API server.
const MAX_BODY_BYTES = 3 * 1024 * 1024;

/** A request and its response. */
export class Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  readonly pathname: string;
  readonly query: URLSearchParams;
  /** Parsed body. Undefined until it is read. */
  body: unknown;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request;
    this.response = response;
    this.method = request.method ?? "GET";
    const url = new URL(`http://localhost${request.url?.startsWith("/") ? request.url : "/"}`);
    this.pathname = url.pathname.length > 1 ? url.pathname.replace(/\/$/, "") : url.pathname;
    this.query = url.searchParams;
  }

  /** Accepted media types in the client's order, without spaces. */
  get accepted(): string[] {
    return (this.request.headers.accept ?? "").split(",").map((type) => type.replaceAll(" ", ""));
  }

  get mediaType(): string {
    return (this.request.headers["content-type"] ?? "application/json").split(";")[0]!.trim().toLowerCase();
  }

  /** Returns a boolean parameter: `watch=true`, `watch=1`, `watch`. */
  flag(name: string): boolean {
    const value = this.query.get(name);
    return value !== null && value !== "false" && value !== "0";
  }

  /** Adds a Warning header to the response, which clients such as kubectl print. */
  warn(text: string): void {
    if (!this.response.headersSent) this.response.appendHeader("warning", `299 - ${JSON.stringify(text)}`);
  }

  /** Sends a JSON response. */
  json(status: number, value: unknown, contentType = "application/json"): void {
    this.send(status, JSON.stringify(value), contentType);
  }

  send(status: number, body: string, contentType: string, headers: Record<string, string> = {}): void {
    if (this.response.headersSent || this.response.destroyed) return;
    const bytes = Buffer.from(body);
    this.response.writeHead(status, {
      "content-type": contentType,
      "content-length": bytes.length,
      ...headers,
    });
    this.response.end(this.method === "HEAD" ? undefined : bytes);
  }

  /** Reads a JSON, YAML or protobuf body. Resolves to undefined if it is empty. */
  async readBody(): Promise<unknown> {
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of this.request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_BODY_BYTES) {
        this.response.setHeader("connection", "close");
        throw new StatusError(
          413,
          "RequestEntityTooLarge",
          `Request entity too large: limit is ${MAX_BODY_BYTES}`,
        );
      }
      chunks.push(chunk);
    }
    if (size === 0) return undefined;
    this.body = this.#parse(Buffer.concat(chunks));
    return this.body;
  }

  #parse(bytes: Buffer): unknown {
    const type = this.mediaType;
    const isProtobuf = type === "application/vnd.kubernetes.protobuf";
    if (!isProtobuf && !/^application\/([a-z-]+\+)?(json|yaml)$/.test(type)) {
      throw unsupportedMediaType(["application/json", "application/yaml"]);
    }
    try {
      if (isProtobuf) return readProtobuf(bytes);
      const text = bytes.toString("utf8");
      // YAML is a superset of JSON, but its parser is much slower.
      if (type.endsWith("yaml") && !text.trimStart().startsWith("{"))
        return parseYaml(text, { maxAliasCount: 100 });
      return parseExactly(text);
    } catch (error) {
      if (error instanceof StatusError) throw error;
      throw badRequest(`the body of the request can't be parsed: ${messageOf(error)}`);
    }
  }
}
