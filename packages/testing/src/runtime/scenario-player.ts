import { ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { type Clock, childScope, type Runnable } from "@nodekeeper/core/lib";
import type { ContainerRequest, PodIdentity, SimulatedContainer } from "./model.ts";
import type { Scenario } from "./scenarios.ts";
import { seededRandom } from "./seeded-random.ts";
import type { SimulatedRuntime } from "./simulated-runtime.ts";

export interface ScenarioPlayerOptions {
  runtime: SimulatedRuntime;
  scenarios: readonly Scenario[];
  clock: Clock;
  /** The same seed produces the same history. Default 1. */
  seed?: number;
  /** Speed factor: 2 halves every wait. Greater than 0. Default 1. */
  pace?: number;
}

/** A pod that does not belong to a scenario and runs until it is removed. */
export interface AdmittedPod extends PodIdentity {
  containers: readonly ContainerRequest[];
}

interface DeployedPod extends PodIdentity {
  sandboxId: string;
  containers: readonly string[];
}

const FIRST_CRASH_DELAY_MS = 1_000;
const RESTART_DELAY_MS = 300;
const ROLLOUT_STEP_MS = 1_500;

/** Plays scenarios on a simulated runtime until stopped, as a kubelet and its pods would. */
export class ScenarioPlayer implements Runnable {
  readonly name = "scenarios";
  /** Speed factor. Changes apply to further waits. */
  pace: number;
  readonly #options: ScenarioPlayerOptions;
  readonly #runtime: SimulatedRuntime;
  readonly #clock: Clock;
  readonly #deployed = new Map<string, DeployedPod[]>();
  readonly #admitted = new Map<string, string>();
  readonly #random: () => number;

  constructor(options: ScenarioPlayerOptions) {
    this.#options = options;
    this.#runtime = options.runtime;
    this.#clock = options.clock;
    this.#random = seededRandom(options.seed ?? 1);
    this.pace = options.pace ?? 1;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { scenarios } = this.#options;
    for (const scenario of scenarios) if (scenario.kind === "deploy") this.#deploy(scenario);
    // A failing scenario aborts the others, so that all have ended when `run` returns.
    using scope = childScope(signal);
    const playing = scenarios.map(async (scenario) => {
      try {
        await this.#play(scenario, scope.signal);
      } catch (error) {
        if (scope.signal.aborted) return;
        scope.abort(error);
        throw error;
      }
    });
    const ends = await Promise.allSettled(playing);
    const failure = ends.find((end) => end.status === "rejected");
    if (failure) throw failure.reason;
  }

  /** Runs a pod that does not belong to a scenario. No effect if it was already admitted. */
  admit({ uid, name, namespace, containers }: AdmittedPod): void {
    if (this.#admitted.has(uid)) return;
    const sandboxId = this.#runtime.runSandbox({ uid, name, namespace });
    this.#admitted.set(uid, sandboxId);
    for (const container of containers) this.#runtime.runContainer(sandboxId, container);
  }

  /**
   * Terminates an admitted pod: its containers get the grace period, then it is removed. A later call can shorten the
   * period. If the signal aborts, rejects with its reason and the pod remains.
   */
  async removePod(
    uid: string,
    { gracePeriodSeconds }: { gracePeriodSeconds: number },
    signal?: AbortSignal,
  ): Promise<void> {
    const sandboxId = this.#admitted.get(uid);
    if (!sandboxId) return;
    const containers = this.#runtime.containersOf(sandboxId);
    await Promise.all(
      containers.map(({ id }) => this.#runtime.stopContainer(id, gracePeriodSeconds * 1_000, signal)),
    );
    this.#runtime.removeSandbox(sandboxId);
    if (this.#admitted.get(uid) === sandboxId) this.#admitted.delete(uid);
  }

  async #play(scenario: Scenario, signal: AbortSignal): Promise<void> {
    switch (scenario.kind) {
      case "deploy":
        return;
      case "crashLoop":
        return await this.#crashLoop(scenario, signal);
      case "rollout":
        return await this.#every(scenario.everyMs, signal, () =>
          this.#rollout(`${scenario.namespace}/${scenario.name}`, signal),
        );
      case "job":
        return await this.#every(scenario.everyMs, signal, () => this.#job(scenario, signal));
      case "massRestart":
        return await this.#every(scenario.everyMs, signal, () => this.#massRestart(signal));
      case "sandboxFailure":
        return await this.#every(scenario.everyMs, signal, async () => this.#failSandbox());
      case "oomKill":
        return await this.#every(scenario.everyMs, signal, () => this.#oomKill(signal));
    }
  }

  async #every(ms: number, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    for (;;) {
      await this.#sleep(ms * (0.8 + 0.4 * this.#random()), signal);
      await work();
    }
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    await this.#clock.sleep(ms / this.pace, signal);
  }

  #deploy({ namespace, name, replicas, containers }: Extract<Scenario, { kind: "deploy" }>): void {
    const pods = Array.from({ length: replicas }, () => this.#startPod(namespace, name, containers));
    this.#deployed.set(`${namespace}/${name}`, pods);
  }

  #startPod(namespace: string, name: string, containers: readonly string[]): DeployedPod {
    const pod = { uid: this.#uid(), namespace, name: `${name}-${this.#word(5)}` };
    const sandboxId = this.#runtime.runSandbox(pod);
    for (const container of containers) this.#runContainer(sandboxId, container, 0);
    return { ...pod, sandboxId, containers };
  }

  #runContainer(sandboxId: string, name: string, attempt: number): string {
    const memoryBytes = Math.round((16 + 200 * this.#random()) * 2 ** 20);
    return this.#runtime.runContainer(sandboxId, {
      name,
      attempt,
      image: `images.example/${name}:1.${attempt}`,
      memoryBytes,
    });
  }

  async #crashLoop(scenario: Extract<Scenario, { kind: "crashLoop" }>, signal: AbortSignal): Promise<void> {
    const { namespace, name, container, runsMs, exitCode, maxDelayMs } = scenario;
    const { firstDelayMs = FIRST_CRASH_DELAY_MS } = scenario;
    const pod = this.#startPod(namespace, name, []);
    let delay = firstDelayMs;
    let previous: string | undefined;
    for (let attempt = 0; ; attempt++) {
      if (!this.#runtime.sandboxes.has(pod.sandboxId)) pod.sandboxId = this.#runtime.runSandbox(pod, attempt);
      const id = this.#runContainer(pod.sandboxId, container, attempt);
      // Like the kubelet, keeps the last exited container for its log.
      if (previous) this.#runtime.removeContainer(previous);
      await this.#sleep(runsMs, signal);
      this.#exit(id, exitCode);
      previous = id;
      if (runsMs > 2 * maxDelayMs) delay = firstDelayMs;
      await this.#sleep(delay, signal);
      delay = Math.min(delay * 2, maxDelayMs);
    }
  }

  async #rollout(key: string, signal: AbortSignal): Promise<void> {
    const pods = this.#deployed.get(key) ?? [];
    const [namespace = "", name = ""] = key.split("/");
    for (const [at, old] of pods.entries()) {
      pods[at] = this.#startPod(namespace, name, old.containers);
      await this.#sleep(ROLLOUT_STEP_MS, signal);
      this.#runtime.removeSandbox(old.sandboxId);
    }
  }

  async #job(
    { namespace, name, runsMs, keptMs }: Extract<Scenario, { kind: "job" }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { sandboxId } = this.#startPod(namespace, name, ["job"]);
    await this.#sleep(runsMs, signal);
    for (const { id } of this.#runtime.containersOf(sandboxId)) this.#exit(id, 0);
    if (this.#runtime.sandboxes.has(sandboxId)) this.#runtime.stopSandbox(sandboxId);
    await this.#sleep(keptMs, signal);
    this.#runtime.removeSandbox(sandboxId);
  }

  async #massRestart(signal: AbortSignal): Promise<void> {
    const running = this.#deployedContainers();
    for (const { id } of running) this.#runtime.exit(id, 137, "Error");
    await this.#sleep(RESTART_DELAY_MS, signal);
    for (const container of running) this.#replace(container);
  }

  async #oomKill(signal: AbortSignal): Promise<void> {
    const running = this.#deployedContainers();
    const container = running[Math.floor(this.#random() * running.length)];
    if (!container) return;
    this.#runtime.exit(container.id, 137, "OOMKilled");
    await this.#sleep(RESTART_DELAY_MS, signal);
    this.#replace(container);
  }

  #failSandbox(): void {
    const pods = [...this.#deployed.values()].flat();
    const pod = pods[Math.floor(this.#random() * pods.length)];
    if (!pod) return;
    const failed = this.#runtime.sandboxes.get(pod.sandboxId);
    if (failed) this.#runtime.stopSandbox(failed.id);
    const attempt = (failed?.attempt ?? 0) + 1;
    const sandboxId = this.#runtime.runSandbox(pod, attempt);
    for (const name of pod.containers) this.#runContainer(sandboxId, name, attempt);
    this.#runtime.removeSandbox(pod.sandboxId);
    pod.sandboxId = sandboxId;
  }

  // Another caller may have removed it: a runtime can have users besides scenarios.
  #exit(id: string, exitCode: number): void {
    if (this.#runtime.containers.has(id)) this.#runtime.exit(id, exitCode);
  }

  #replace({ sandboxId, name, attempt, id }: SimulatedContainer): void {
    // A rollout may have removed the pod meanwhile.
    if (!this.#runtime.sandboxes.has(sandboxId)) return;
    this.#runContainer(sandboxId, name, attempt + 1);
    this.#runtime.removeContainer(id);
  }

  #deployedContainers(): SimulatedContainer[] {
    return [...this.#deployed.values()]
      .flat()
      .flatMap(({ sandboxId }) => this.#runtime.containersOf(sandboxId))
      .filter(({ state }) => state === ContainerState.CONTAINER_RUNNING);
  }

  #uid(): string {
    return [8, 4, 4, 4, 12].map((length) => this.#word(length, "0123456789abcdef")).join("-");
  }

  #word(length: number, letters = "bcdfghjklmnpqrstvwxz2456789"): string {
    return Array.from({ length }, () => letters[Math.floor(this.#random() * letters.length)]).join("");
  }
}
