import type { Machine } from "../machine/machine.ts";
import type { ApiServer } from "./api-server.ts";
import { apiOutageOf } from "./faults.ts";
import type { History } from "./history.ts";

/** Times at which the API server refuses all requests of the agent. */
export class ApiOutages {
  readonly #machine: Machine;
  readonly #history: History;
  readonly #api: ApiServer;
  readonly #open = new Set<History["apiOutages"][number]>();
  #usual: ApiServer["faults"];

  constructor(machine: Machine, history: History, api: ApiServer) {
    this.#machine = machine;
    this.#history = history;
    this.#api = api;
  }

  /** Begins an outage. Outages may overlap: the last one that began decides how requests fail until all have ended. */
  begin(): void {
    const { scheduler } = this.#machine;
    const api = this.#api;
    if (this.#open.size === 0) this.#usual = api.faults;
    const period = { from: scheduler.now, to: Number.POSITIVE_INFINITY };
    this.#history.note("fault", "API server refuses all requests");
    this.#history.apiOutages.push(period);
    this.#open.add(period);
    api.faults = apiOutageOf(this.#machine);
    scheduler.after(this.#machine.between(500, 20_000), () => {
      if (!this.#open.delete(period)) return;
      period.to = scheduler.now;
      if (this.#open.size === 0) api.faults = this.#usual;
    });
  }

  /** Ends all outages. From now on, the API server refuses nothing. */
  end(): void {
    for (const period of this.#open) period.to = this.#machine.scheduler.now;
    this.#open.clear();
    this.#api.faults = undefined;
  }
}
