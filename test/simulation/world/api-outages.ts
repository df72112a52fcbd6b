import type { Machine } from "../machine/machine.ts";
import type { ApiServer } from "./api-server.ts";
import { apiOutageOf } from "./faults.ts";
import type { History } from "./history.ts";

/** When the API server refuses all requests of the agent. */
export class ApiOutages {
  readonly #machine: Machine;
  readonly #history: History;
  readonly #api: ApiServer;

  constructor(machine: Machine, history: History, api: ApiServer) {
    this.#machine = machine;
    this.#history = history;
    this.#api = api;
  }

  /** Begins an outage. If another one begins before its end, it goes on after that one until `end`. */
  begin(): void {
    const { scheduler } = this.#machine;
    const api = this.#api;
    const usual = api.faults;
    const outage = apiOutageOf(this.#machine);
    const period = { from: scheduler.now, to: Number.POSITIVE_INFINITY };
    this.#history.note("fault", "API server refuses all requests");
    this.#history.apiOutages.push(period);
    api.faults = outage;
    scheduler.after(this.#machine.between(500, 20_000), () => {
      if (api.faults !== outage) return;
      api.faults = usual;
      period.to = scheduler.now;
    });
  }

  /** Ends all outages. From now on, the API server refuses nothing. */
  end(): void {
    const { now } = this.#machine.scheduler;
    this.#api.faults = undefined;
    for (const period of this.#history.apiOutages) period.to = Math.min(period.to, now);
  }
}
