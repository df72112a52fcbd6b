import type { Clock } from "@nodekeeper/core/lib";
import type { SimulatedRuntime } from "./simulated-runtime.ts";

interface ChangingPod {
  sandboxId: string;
  containers: string[];
}

/** Pods that change on command, for benchmarks with a defined rate and time of changes. */
export class Churn {
  readonly #runtime: SimulatedRuntime;
  readonly #clock: Clock;
  readonly #pods: ChangingPod[] = [];
  #turn = 0;

  constructor(runtime: SimulatedRuntime, clock: Clock) {
    this.#runtime = runtime;
    this.#clock = clock;
  }

  /** Starts pods with running containers. */
  deploy(pods: number, containersPerPod: number): void {
    for (let made = 0; made < pods; made++) {
      const number = this.#pods.length;
      const uid = `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`;
      const sandboxId = this.#runtime.runSandbox({ uid, name: `web-${number}`, namespace: "shop" });
      const containers = Array.from({ length: containersPerPod }, (_, at) =>
        this.#runtime.runContainer(sandboxId, { name: `app-${at}` }),
      );
      this.#pods.push({ sandboxId, containers });
    }
  }

  /** Restarts one container in each of `pods` pods: it exits and is removed, and another one is started. */
  change(pods: number): void {
    for (let changed = 0; changed < Math.min(pods, this.#pods.length); changed++) this.#restartNext();
  }

  /** Restarts containers at a constant rate, round-robin over the pods. Rejects with the signal's reason. */
  async play(perSecond: number, seconds: number, signal: AbortSignal): Promise<void> {
    const startedAt = this.#clock.monotonic();
    for (let done = 0; done < perSecond * seconds; done++) {
      const wait = startedAt + (done * 1_000) / perSecond - this.#clock.monotonic();
      if (wait > 0) await this.#clock.sleep(wait, signal);
      this.#restartNext();
    }
  }

  #restartNext(): void {
    const pod = this.#pods[this.#turn++ % this.#pods.length];
    const id = pod?.containers.shift();
    const old = id === undefined ? undefined : this.#runtime.containers.get(id);
    if (!pod || !old) return;
    this.#runtime.exit(old.id, 1);
    this.#runtime.removeContainer(old.id);
    pod.containers.push(
      this.#runtime.runContainer(pod.sandboxId, { name: old.name, attempt: old.attempt + 1 }),
    );
  }
}
