import http from "node:http";
import https from "node:https";
import type { ClusterAccess } from "./access.ts";
import type { CredentialSnapshot } from "./credentials.ts";

/** Use of a connection. Watches occupy connections for minutes, so they have separate ones and cannot starve calls. */
export type Purpose = "calls" | "watches";

// Less than the API server's idle timeout of 90 s, so that the client closes idle connections first.
const IDLE_MS = 60_000;
// Detects a peer that vanished without closing the connection.
const TCP_KEEPALIVE_MS = 30_000;

/** Keep-alive connections of one certificate generation. */
export class Agents {
  readonly #access: ClusterAccess;
  readonly #maxSockets: Readonly<Record<Purpose, number>>;
  #generation = -1;
  #agents: Record<Purpose, http.Agent> | undefined;

  constructor(access: ClusterAccess, maxSockets: Readonly<Record<Purpose, number>>) {
    this.#access = access;
    this.#maxSockets = maxSockets;
  }

  /**
   * Returns the agent for these credentials. Renewed certificates use new connections. Old connections end with their
   * requests.
   */
  for(purpose: Purpose, credentials: CredentialSnapshot): http.Agent {
    if (!this.#agents || credentials.tlsGeneration > this.#generation) {
      for (const agent of Object.values(this.#agents ?? {})) retire(agent);
      this.#generation = credentials.tlsGeneration;
      this.#agents = { calls: this.#make("calls", credentials), watches: this.#make("watches", credentials) };
    }
    return this.#agents[purpose];
  }

  /**
   * Closes idle connections of calls. If one was cut silently, as by a failed router, the others probably were too, and
   * each would make another call miss its deadline.
   */
  retireIdle(): void {
    if (this.#agents) endIdle(this.#agents.calls);
  }

  /** Closes all connections, including those in use. */
  destroy(): void {
    for (const agent of Object.values(this.#agents ?? {})) agent.destroy();
  }

  #make(purpose: Purpose, credentials: CredentialSnapshot): http.Agent {
    const common = {
      keepAlive: true,
      keepAliveMsecs: TCP_KEEPALIVE_MS,
      maxSockets: this.#maxSockets[purpose],
      timeout: IDLE_MS,
    };
    if (this.#access.server.protocol !== "https:") return new http.Agent(common);
    return new https.Agent({
      ...common,
      secureContext: credentials.secureContext,
      rejectUnauthorized: !this.#access.insecureSkipTlsVerify,
      ...(this.#access.serverName ? { servername: this.#access.serverName } : {}),
    });
  }
}

function retire(agent: http.Agent): void {
  agent.maxFreeSockets = 0;
  endIdle(agent);
}

function endIdle(agent: http.Agent): void {
  for (const sockets of Object.values(agent.freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy();
  }
}
