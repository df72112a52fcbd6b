import { join } from "node:path";
import { silentLogger } from "@nodekeeper/core/lib";
import { createDevApiServer, type DevApiServer } from "@nodekeeper/testing";
import { type Machine, machineOf } from "../machine/machine.ts";
import type { HttpExchange } from "../machine/network.ts";
import type { Process } from "../machine/process.ts";
import type { ApiFaults } from "./faults.ts";
import { type ApiWrite, type History, isEviction } from "./history.ts";
import { PodTruths } from "./pod-truths.ts";

export const NODE = "worker-1";
export const CNRS = "customnoderesources.node.katalyst.kubewharf.io";

/** The API server of a world, whose answers are recorded as the truth. */
export class ApiServer {
  readonly process: Process;
  readonly server: DevApiServer;
  readonly kubeconfig: string;
  readonly pods: PodTruths;
  faults: ApiFaults | undefined;
  readonly #history: History;

  constructor(machine: Machine, history: History) {
    this.process = machine.spawn("kube-apiserver");
    this.#history = history;
    this.kubeconfig = join(machine.root, "kubeconfig");
    this.server = this.process.run(() =>
      createDevApiServer({
        clock: this.process.clock,
        log: silentLogger,
        removePodsAfterGrace: false,
        faults: (request) => {
          const isAgent = clientOf(request.headers["user-agent"]) === "nodekeeper";
          return isAgent ? this.faults?.of(request) : undefined;
        },
      }),
    );
    this.pods = new PodTruths(
      () => this.store.list("pods"),
      () => machine.scheduler.now,
    );
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
    service.onRequest = (exchange) => serve(this.#recorded(exchange));
  }

  #recorded(exchange: HttpExchange): HttpExchange {
    const { method, headers, body } = exchange;
    const [path = ""] = exchange.url.split("?");
    if (method === "GET") return exchange;
    const [, namespace, name] = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)/.exec(path) ?? [];
    const pod = name === undefined ? undefined : this.store.get("pods", name, namespace);
    const { scheduler } = this.process;
    this.pods.look();
    return {
      ...exchange,
      respond: (status, answered) => {
        const write: ApiWrite = {
          at: scheduler.now,
          client: clientOf(headers["user-agent"]),
          method,
          path,
          body: parsed(Buffer.from(body).toString()),
          status,
          podUid: pod?.metadata.uid,
          isLate: exchange.isAbandoned(),
          isDelivered: false,
        };
        this.#history.writes.push(write);
        this.pods.look(isEviction(write) ? write.podUid : undefined);
        this.#history.note("kube-apiserver", `${method} ${exchange.url} of ${write.client}: ${status}`);
        exchange.respond(status, answered, () => {
          write.isDelivered = true;
        });
      },
    };
  }
}

function clientOf(userAgent: string | undefined): string {
  return (userAgent ?? "").split("/")[0] === "nodekeeper" && !userAgent?.endsWith("/dev")
    ? "nodekeeper"
    : "other";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
