import type { IncomingMessage, ServerResponse } from "node:http";
import type { Explained, FleetUpdate, FoundPods, NodeDetails } from "@nodekeeper/api/fleet";
import { childScope, NodekeeperError, stopped } from "@nodekeeper/core/lib";
import { jsonReply, PAGE_ROOT, pageReply, type ReadPageFile, type Reply } from "../../../server/index.ts";
import type { PageState } from "./fleet-reader.ts";
import { type LocalServer, nothingHere, serveLocally } from "./local-server.ts";
import { isSame, newSecret } from "./page-secrets.ts";

const LONGEST_TOKEN = 200;
const MOST_SHOWN = 200;

/** The queries of the page of all nodes. */
export interface PageQueries {
  fleet(state: PageState): FleetUpdate;
  /** Returns the address of a node's page. Throws `notFound` if there is no such node. */
  nodePage(node: string): Promise<string>;
  pods(text: string, signal: AbortSignal): Promise<FoundPods>;
  /** @param node whose agent is asked; if undefined, that of the pod's node, or else all */
  explainPod(pod: string, node: string | undefined): Promise<Explained>;
  explainNode(node: string): Promise<Explained>;
  /** Returns the data of a node for comparison with other nodes. Throws `notFound` if there is no such node. */
  details(node: string): Promise<NodeDetails>;
}

/**
 * Serves the page of all nodes to the user who started it.
 *
 * 1. The fragment of the printed address contains a one-time token; browsers do not send fragments. The page exchanges
 *    the token for a path that starts with another secret.
 * 2. Without the secret path, only the page's files are served. The secret is not a cookie, because browsers send
 *    cookies to all ports of a host, including the ports of other users.
 */
export class PageServer {
  readonly #files: ReadPageFile;
  readonly #queries: PageQueries;
  readonly #key = newSecret();
  /** Undefined once it was used. */
  #token: string | undefined = newSecret();
  #server: LocalServer | undefined;

  constructor(files: ReadPageFile, queries: PageQueries) {
    this.#files = files;
    this.#queries = queries;
  }

  /** Listens, and returns the address to open. Port 0: a free one. Throws `unavailable`. */
  async start(port: number): Promise<string> {
    const server = await serveLocally(port, ["GET", "HEAD", "POST"], (...given) => this.#answer(...given));
    this.#server = server;
    return `${server.origin}/#token=${this.#token}`;
  }

  stop(): void {
    this.#server?.stop();
  }

  async #answer(
    request: IncomingMessage,
    { pathname, searchParams }: URL,
    response: ServerResponse,
  ): Promise<Reply> {
    if (request.method === "POST") return pathname === "/session" ? await this.#open(request) : refuse();
    const file = fileOf(pathname);
    if (file !== undefined) return await pageReply(this.#files, file);
    const [, key = "", ...rest] = pathname.split("/");
    if (!isSame(key, this.#key)) return refuse();
    using scope = childScope();
    const onClose = () => scope.abort(stopped("the client closed the connection"));
    response.once("close", onClose);
    return await this.#own(`/${rest.join("/")}`, searchParams, scope.signal);
  }

  async #own(path: string, query: URLSearchParams, signal: AbortSignal): Promise<Reply> {
    const file = fileOf(path);
    if (file !== undefined) return await pageReply(this.#files, file);
    // A name of a node needs no escapes.
    const node = /^\/nodes\/([a-z\d.-]+)\/$/.exec(path)?.[1];
    if (node !== undefined) return redirect(await this.#queries.nodePage(node));
    switch (path) {
      case "/fleet":
        return jsonReply(200, this.#queries.fleet(stateOf(query)));
      case "/pods":
        return jsonReply(200, await this.#queries.pods(textOf(query, "text"), signal));
      case "/explain":
        return jsonReply(200, await this.#explain(query.get("pod") ?? "", query.get("node") ?? ""));
      case "/details":
        return jsonReply(200, await this.#queries.details(textOf(query, "node")));
      default:
        return refuse();
    }
  }

  async #explain(pod: string, node: string): Promise<Explained> {
    if (pod !== "") return await this.#queries.explainPod(pod, node || undefined);
    if (node !== "") return await this.#queries.explainNode(node);
    throw new NodekeeperError("invalid", "the query needs pod or node");
  }

  async #open(request: IncomingMessage): Promise<Reply> {
    const token = await bodyOf(request);
    if (this.#token === undefined || !isSame(token, this.#token))
      throw new NodekeeperError("unauthenticated", "this link was used before, or is of another page");
    this.#token = undefined;
    return jsonReply(200, { path: `/${this.#key}/` });
  }
}

function refuse(): never {
  throw nothingHere();
}

// The browser keeps the fragment of its address, which names the view.
function redirect(address: string): Reply {
  return { status: 303, contentType: "text/plain; charset=utf-8", body: "", headers: { Location: address } };
}

function fileOf(path: string): string | undefined {
  if (path === "/") return "fleet.html";
  return path.startsWith(PAGE_ROOT) ? path.slice(PAGE_ROOT.length) : undefined;
}

function stateOf(query: URLSearchParams): PageState {
  const numberOf = (name: string) => Number(query.get(name) ?? 0) || 0;
  const shown = (query.get("shown") ?? "").split(",").slice(0, MOST_SHOWN);
  return { epoch: numberOf("epoch"), version: numberOf("version"), shown };
}

function textOf(query: URLSearchParams, name: string): string {
  const text = query.get(name) ?? "";
  if (text !== "") return text;
  throw new NodekeeperError("invalid", `the query needs ${name}`);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += chunk;
    if (text.length > LONGEST_TOKEN) throw new NodekeeperError("exhausted", "the request is too long");
  }
  return text;
}
