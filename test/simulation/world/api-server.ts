import { join } from "node:path";
import { silentLogger } from "@nodekeeper/core/lib";
import { createDevApiServer, type DevApiServer } from "@nodekeeper/testing";
import { type Machine, machineOf } from "../machine/machine.ts";
import type { HttpExchange } from "../machine/network.ts";
import type { Process } from "../machine/process.ts";
import type { ApiFaults } from "./faults.ts";
import { type ApiWrite, type History, isDryRun, isEviction } from "./history.ts";
import { refusedApply } from "./odd-allocations.ts";
import { PodTruths } from "./pod-truths.ts";
import { TaintTruths } from "./taint-truths.ts";

export const NODE = "worker-1";
export const CNRS = "customnoderesources.node.katalyst.kubewharf.io";

/** An annotation that is rejected in any object, as an admission webhook would. */
export const REJECTED = "example.dev/rejected";

const CLAIMS = "resourceclaims.resource.k8s.io";
const APPLY = "application/apply-patch+yaml";

// Of a refusal by a PodDisruptionBudget that the controller has observed.
const NO_DISRUPTION = "healthy pods and has";

/** The API server of a world, whose answers are recorded as the truth. */
export class ApiServer {
  readonly process: Process;
  readonly server: DevApiServer;
  readonly kubeconfig: string;
  readonly pods: PodTruths;
  readonly taints: TaintTruths;
  /** Called with each write of a client that was answered, before the response is on its way. */
  onWrite: ((write: ApiWrite) => void) | undefined;
  /** Called when the agent has read a claim of this name, before the response is on its way. */
  onClaimRead: ((name: string) => void) | undefined;
  faults: ApiFaults | undefined;
  /** Those of requests about Leases only, besides `faults`. */
  leaseFaults: ApiFaults | undefined;
  /** Returns whether connections of a process break before they have sent a request. */
  isCutOff: (process: Process) => boolean = () => false;
  /** Returns whether a process is one of another node. */
  isElsewhere: (process: Process) => boolean = () => false;
  /** Whether watches of the agent are accepted and then end at once, without an event. */
  endsWatches = false;
  /** Watches of the agent, and since when, in virtual milliseconds. */
  readonly #watches = new Map<HttpExchange, number>();
  /** Watches whose connections are half open: nothing that is sent arrives, and nobody is told. */
  readonly #stalled = new Set<HttpExchange>();
  /** Number of requests of the agent, without those of claims: it reads them when the kubelet calls, or a pod waits. */
  requests = 0;
  /** Interval of bookmarks of watches. */
  readonly bookmarkIntervalMs: number;
  readonly #history: History;

  constructor(machine: Machine, history: History, bookmarkIntervalMs: number) {
    this.bookmarkIntervalMs = bookmarkIntervalMs;
    this.process = machine.spawn("kube-apiserver");
    this.#history = history;
    this.kubeconfig = join(machine.root, "kubeconfig");
    this.server = this.process.run(() =>
      createDevApiServer({
        clock: this.process.clock,
        log: silentLogger,
        removePodsAfterGrace: false,
        bookmarkIntervalMs,
        admit: ({ method, body, headers, resource }) => {
          if (method !== "PATCH") return undefined;
          if (JSON.stringify(body).includes(REJECTED)) return { status: 422, body: rejection };
          const isApply = headers["content-type"] === APPLY && resource?.plural === "resourceclaims";
          const claim = isApply ? this.store.get(CLAIMS, resource.name ?? "", resource.namespace) : undefined;
          return claim && refusedApply(claim);
        },
        faults: (request) => {
          if (!isAgent(request.headers)) return undefined;
          return this.leaseFaults?.of(request) ?? this.faults?.of(request);
        },
      }),
    );
    this.pods = new PodTruths(
      () => this.store.list("pods"),
      (uid) => history.stopped(uid).length > 0,
      () => machine.scheduler.now,
    );
    this.taints = new TaintTruths(() => this.store.get("nodes", NODE));
  }

  get store() {
    return this.server.store;
  }

  async start(): Promise<void> {
    const { url } = await this.server.start();
    this.server.seedNode(NODE);
    await this.server.writeKubeconfig(this.kubeconfig);
    const { service } = machineOf(this.process).network.find(new URL(url).host)!;
    const serve = service.onRequest!;
    service.onRequest = (exchange) =>
      this.isCutOff(exchange.client) ? exchange.cut() : serve(this.#recorded(exchange));
  }

  /** Makes the connections of watches that have been open for so long half open. */
  stallWatches(sinceMs: number): void {
    const { now } = this.process.scheduler;
    for (const [watch, openedAt] of this.#watches) {
      if (now - openedAt >= sinceMs) this.#stalled.add(watch);
    }
  }

  #read(exchange: HttpExchange): HttpExchange {
    const [path = "", query] = exchange.url.split("?");
    if (query?.includes("watch=true")) return this.#watched(exchange);
    const [, claim] = /\/resourceclaims\/([^/]+)$/.exec(path) ?? [];
    if (claim === undefined) return exchange;
    return {
      ...exchange,
      respond: (status, headers) => {
        exchange.respond(status, headers);
        if (status === 200) this.onClaimRead?.(claim);
      },
    };
  }

  #watched(exchange: HttpExchange): HttpExchange {
    exchange.onClose(() => {
      this.#watches.delete(exchange);
      this.#stalled.delete(exchange);
    });
    const unlessStalled = (act: () => void) => {
      if (!this.#stalled.has(exchange)) act();
    };
    return {
      ...exchange,
      respond: (status, headers) => {
        if (status === 200) this.#watches.set(exchange, this.process.scheduler.now);
        exchange.respond(status, headers);
        if (this.endsWatches) exchange.end();
      },
      write: (chunk) => unlessStalled(() => this.endsWatches || exchange.write(chunk)),
      end: () => unlessStalled(() => exchange.end()),
      cut: () => unlessStalled(() => exchange.cut()),
    };
  }

  #clientOf({ headers, client }: HttpExchange): ApiWrite["client"] {
    if (!isAgent(headers)) return "other";
    return this.isElsewhere(client) ? "nodekeeper elsewhere" : "nodekeeper";
  }

  #recorded(exchange: HttpExchange): HttpExchange {
    const { method, headers, body } = exchange;
    const [path = "", query] = exchange.url.split("?");
    const client = this.#clientOf(exchange);
    if (client === "nodekeeper" && !path.includes("/resourceclaims")) this.requests++;
    if (method === "GET") return isAgent(headers) ? this.#read(exchange) : exchange;
    const [, namespace, name] = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)/.exec(path) ?? [];
    const pod = name === undefined ? undefined : this.store.get("pods", name, namespace);
    const { scheduler } = this.process;
    this.pods.look();
    const sent = parsed(Buffer.from(body).toString());
    let recorded: ApiWrite | undefined;
    return {
      ...exchange,
      write: (chunk) => {
        if (recorded?.status === 429 && Buffer.from(chunk).includes(NO_DISRUPTION))
          recorded.isRefusedByBudget = true;
        exchange.write(chunk);
      },
      respond: (status, answered) => {
        const write: ApiWrite = {
          at: scheduler.now,
          client,
          sender: exchange.client,
          method,
          path,
          body: sent,
          isDryRun: query?.includes("dryRun=") || isDryRun(sent),
          status,
          podUid: pod?.metadata.uid,
          isLate: exchange.isAbandoned(),
          isRefusedByBudget: false,
          deliveredAt: undefined,
        };
        recorded = write;
        this.#history.writes.push(write);
        this.pods.look(isEviction(write) ? write.podUid : undefined);
        if (client === "nodekeeper" && path === `/api/v1/nodes/${NODE}`) this.taints.look(write);
        this.#history.note("kube-apiserver", `${method} ${exchange.url} of ${write.client}: ${status}`);
        this.onWrite?.(write);
        exchange.respond(status, answered);
      },
      end: () =>
        exchange.end(() => {
          if (recorded) recorded.deliveredAt = scheduler.now;
        }),
    };
  }
}

const rejection = {
  kind: "Status",
  apiVersion: "v1",
  status: "Failure",
  reason: "Invalid",
  message: `${REJECTED} is not allowed`,
  code: 422,
};

function isAgent({ "user-agent": userAgent = "" }: { readonly "user-agent"?: string | undefined }): boolean {
  return userAgent.startsWith("nodekeeper/") && !userAgent.endsWith("/dev");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
