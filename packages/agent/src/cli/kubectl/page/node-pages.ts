import type { IncomingMessage, ServerResponse } from "node:http";
import { type Clock, NodekeeperError, type Timer } from "@nodekeeper/core/lib";
import type { Forward } from "../kubectl.ts";
import { type LocalServer, nothingHere, serveLocally } from "./local-server.ts";
import { isSame, newSecret } from "./page-secrets.ts";
import { proxy } from "./proxied.ts";

/** Maximum number of nodes whose pages are open. Each needs a kubectl process. */
const MOST_OPEN = 16;
const IDLE_MS = 60_000;

interface NodePage {
  server: LocalServer;
  /** The address of the page, with its secret path. */
  address: string;
  forward: Promise<Forward> | undefined;
  /** Requests in progress. An open page always has one, its stream. */
  requests: number;
  idle: Timer | undefined;
}

export interface NodePagesOptions {
  /** Forwards a local port to the status server of a node's agent. */
  forward(node: string): Promise<Forward>;
  clock: Clock;
}

/**
 * The pages of nodes, as their agents serve them, read-only.
 *
 * 1. Each node has its own port and secret path: scripts sent by one agent run in the browser, and must not be able to
 *    access the page of all nodes or the pages of other nodes.
 * 2. A port-forward is open while its page is, and for a minute after the last request.
 */
export class NodePages {
  readonly #options: NodePagesOptions;
  readonly #pages = new Map<string, Promise<NodePage>>();
  readonly #open = new Set<NodePage>();
  #isStopped = false;

  constructor(options: NodePagesOptions) {
    this.#options = options;
  }

  /** Returns the address of a node's page. */
  async address(node: string): Promise<string> {
    let page = this.#pages.get(node);
    if (!page) {
      page = this.#serve(node);
      this.#pages.set(node, page);
      page.catch(() => this.#pages.delete(node));
    }
    return (await page).address;
  }

  /** Closes all pages and their port-forwards. */
  stop(): void {
    this.#isStopped = true;
    for (const page of this.#pages.values()) {
      page.then(
        (started) => {
          started.server.stop();
          this.#close(started);
        },
        () => {},
      );
    }
  }

  async #serve(node: string): Promise<NodePage> {
    const key = newSecret();
    const server = await serveLocally(0, ["GET", "HEAD"], async (request, { pathname, search }, response) => {
      const [, given = "", ...rest] = pathname.split("/");
      if (!isSame(given, key)) throw nothingHere();
      // A service worker would outlive the page.
      if (request.headers["service-worker"] !== undefined)
        throw new NodekeeperError("forbidden", "service workers are not served");
      await this.#answer(node, page, `/${rest.join("/")}${search}`, request, response);
      return undefined;
    });
    const page: NodePage = {
      server,
      address: `${server.origin}/${key}/`,
      forward: undefined,
      requests: 0,
      idle: undefined,
    };
    if (this.#isStopped) server.stop();
    return page;
  }

  async #answer(
    node: string,
    page: NodePage,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    page.idle?.cancel();
    page.requests++;
    try {
      const { address } = await this.#forwardOf(node, page);
      await proxy(address, path, request, response);
    } finally {
      page.requests--;
      if (page.requests === 0) page.idle = this.#options.clock.after(IDLE_MS, () => this.#close(page));
    }
  }

  async #forwardOf(node: string, page: NodePage): Promise<Forward> {
    // Requests that arrive together share it.
    const known = page.forward ?? this.#start(node, page);
    const forward = await known;
    if (forward.isOpen) return forward;
    // The agent's pod was replaced, or the connection to the API server ended.
    if (page.forward === known) this.#close(page);
    return await (page.forward ?? this.#start(node, page));
  }

  #start(node: string, page: NodePage): Promise<Forward> {
    this.#makePlace();
    this.#open.add(page);
    const forward = this.#options.forward(node);
    page.forward = forward;
    forward.catch(() => {
      if (page.forward === forward) this.#close(page);
    });
    return forward;
  }

  #makePlace(): void {
    if (this.#open.size < MOST_OPEN) return;
    const unused = [...this.#open].find(({ requests }) => requests === 0);
    if (!unused)
      throw new NodekeeperError("exhausted", `the pages of ${MOST_OPEN} nodes are open; close one of them`);
    this.#close(unused);
  }

  #close(page: NodePage): void {
    const { forward } = page;
    page.idle?.cancel();
    page.forward = undefined;
    this.#open.delete(page);
    forward?.then(
      (opened) => opened[Symbol.dispose](),
      () => {},
    );
  }
}
