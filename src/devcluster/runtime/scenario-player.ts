import { ContainerState } from "../../gen/runtime/v1/api.ts";
import type { Clock, Runnable } from "../../lib/index.ts";
import type { PodIdentity, SimulatedContainer } from "./model.ts";
import type { Scenario } from "./scenarios.ts";
import type { SimulatedRuntime } from "./simulated-runtime.ts";

export interface ScenarioPlayerOptions {
  runtime: SimulatedRuntime;
  scenarios: readonly Scenario[];
  clock: Clock;
  /** The same seed plays the same history. Default: 1. */
  seed?: number;
}

/** A pod from outside, to be run until it is removed. */
export interface AdmittedPod extends PodIdentity {
  containers: readonly { name: string; image?: string; memoryBytes?: number }[];
}

interface DeployedPod extends PodIdentity {
  sandboxId: string;
  containers: readonly string[];
}

const FIRST_CRASH_DELAY_MS = 1_000;
const RESTART_DELAY_MS = 300;
const ROLLOUT_STEP_MS = 1_500;

/** Plays scenarios on a simulated runtime, for ever, as a kubelet and its pods would. */
export class ScenarioPlayer implements Runnable {
  readonly name = "scenarios";
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
    this.#random = randomOf(options.seed ?? 1);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { scenarios } = this.#options;
    for (const scenario of scenarios) if (scenario.kind === "deploy") this.#deploy(scenario);
    try {
      await Promise.all(scenarios.map((scenario) => this.#play(scenario, signal)));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Runs a pod that the scenarios know nothing of. One that is there already is left as it is. */
  admit({ uid, name, namespace, containers }: AdmittedPod): void {
    if (this.#admitted.has(uid)) return;
    const sandboxId = this.#runtime.runSandbox({ uid, name, namespace });
    this.#admitted.set(uid, sandboxId);
    for (const container of containers) this.#runtime.runContainer(sandboxId, container);
  }

  /** Ends a pod that was admitted: its containers get the grace period, then it is removed. */
  async removePod(uid: string, gracePeriodSeconds: number, signal?: AbortSignal): Promise<void> {
    const sandboxId = this.#admitted.get(uid);
    if (!sandboxId) return;
    this.#admitted.delete(uid);
    const containers = this.#runtime.containersOf(sandboxId);
    await Promise.all(
      containers.map(({ id }) => this.#runtime.stopContainer(id, gracePeriodSeconds * 1_000, signal)),
    );
    this.#runtime.removeSandbox(sandboxId);
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
      await this.#clock.sleep(ms * (0.8 + 0.4 * this.#random()), signal);
      await work();
    }
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

  async #crashLoop(
    { namespace, name, container, runsMs, exitCode, maxDelayMs }: Extract<Scenario, { kind: "crashLoop" }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { sandboxId } = this.#startPod(namespace, name, []);
    let previous: string | undefined;
    for (
      let attempt = 0, delay = FIRST_CRASH_DELAY_MS;
      ;
      attempt++, delay = Math.min(delay * 2, maxDelayMs)
    ) {
      const id = this.#runContainer(sandboxId, container, attempt);
      // As the kubelet: the last dead one is kept for its log.
      if (previous) this.#runtime.removeContainer(previous);
      await this.#clock.sleep(runsMs, signal);
      this.#runtime.exit(id, exitCode);
      previous = id;
      await this.#clock.sleep(delay, signal);
    }
  }

  async #rollout(key: string, signal: AbortSignal): Promise<void> {
    const pods = this.#deployed.get(key) ?? [];
    const [namespace = "", name = ""] = key.split("/");
    for (const [at, old] of pods.entries()) {
      pods[at] = this.#startPod(namespace, name, old.containers);
      await this.#clock.sleep(ROLLOUT_STEP_MS, signal);
      this.#runtime.removeSandbox(old.sandboxId);
    }
  }

  async #job(
    { namespace, name, runsMs, keptMs }: Extract<Scenario, { kind: "job" }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { sandboxId } = this.#startPod(namespace, name, ["job"]);
    await this.#clock.sleep(runsMs, signal);
    for (const { id } of this.#runtime.containersOf(sandboxId)) this.#runtime.exit(id, 0);
    this.#runtime.stopSandbox(sandboxId);
    await this.#clock.sleep(keptMs, signal);
    this.#runtime.removeSandbox(sandboxId);
  }

  async #massRestart(signal: AbortSignal): Promise<void> {
    const running = this.#deployedContainers();
    for (const { id } of running) this.#runtime.exit(id, 137, "Error");
    await this.#clock.sleep(RESTART_DELAY_MS, signal);
    for (const container of running) this.#replace(container);
  }

  async #oomKill(signal: AbortSignal): Promise<void> {
    const running = this.#deployedContainers();
    const container = running[Math.floor(this.#random() * running.length)];
    if (!container) return;
    this.#runtime.exit(container.id, 137, "OOMKilled");
    await this.#clock.sleep(RESTART_DELAY_MS, signal);
    this.#replace(container);
  }

  #failSandbox(): void {
    const pods = [...this.#deployed.values()].flat();
    const pod = pods[Math.floor(this.#random() * pods.length)];
    if (!pod) return;
    this.#runtime.stopSandbox(pod.sandboxId);
    const attempt = (this.#runtime.sandboxes.get(pod.sandboxId)?.attempt ?? 0) + 1;
    const sandboxId = this.#runtime.runSandbox(pod, attempt);
    for (const name of pod.containers) this.#runContainer(sandboxId, name, attempt);
    this.#runtime.removeSandbox(pod.sandboxId);
    pod.sandboxId = sandboxId;
  }

  #replace({ sandboxId, name, attempt, id }: SimulatedContainer): void {
    // A rollout may have taken the pod meanwhile.
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

// A small generator (mulberry32's constants), enough for names and times.
function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
