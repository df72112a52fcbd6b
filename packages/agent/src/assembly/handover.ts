import type { AgentConfiguration } from "@nodekeeper/api/settings";
import { type Clock, type Logger, type Runnable, sleepOrAbort } from "@nodekeeper/core/lib";
import { StandbyPlugins } from "../claims/index.ts";
import { askForHandover, canOfferHandover, DirectoryLock, offerHandover } from "../state/index.ts";

/** An agent that may end before its process does. */
export interface RunningAgent extends Runnable {
  /** Names of the parts that did not stop in time and may still run. */
  abandoned(): readonly string[];
}

export interface HandoverOptions {
  clock: Clock;
  log: Logger;
}

const POLL_MS = 50;
// The other agent stops within 4 s. Calls by the kubelet that wait meanwhile are canceled after 45 s.
const HANDOVER_MS = 10_000;
// By then the agent that asked has taken the directory, unless it ended.
const YIELD_MS = 5_000;

/**
 * Lets agents that share a state directory take over without a gap, as in a rolling update with surge:
 *
 * 1. The new agent registers with the kubelet for the old agent's drivers, then asks it to hand over.
 * 2. The old agent stops its parts as for SIGTERM and releases the directory. Its process waits until it is terminated.
 * 3. The new agent, whose configuration is valid, starts when the directory is free. If it ends before the old process
 *    does, the old agent starts again, and never asks for a directory that it handed over. If parts of the old agent
 *    did not stop in time, its process ends instead, so that they do not run alongside the new agent.
 */
export class Handover {
  readonly #options: HandoverOptions;
  #hasHandedOver = false;

  constructor(options: HandoverOptions) {
    this.#options = options;
  }

  /**
   * Creates and runs an agent whenever it is its turn, until the signal aborts or the process must end. Throws as
   * `create` and the agent do.
   * @param create is passed the drivers' plugins that registered while another agent ran
   */
  async runInTurns(
    configuration: AgentConfiguration,
    create: (standby: StandbyPlugins | undefined) => Promise<RunningAgent>,
    signal: AbortSignal,
  ): Promise<void> {
    for (;;) {
      const standby = await this.begin(configuration, signal);
      if (signal.aborted) return await standby?.stop();
      try {
        const agent = await create(standby);
        if (!(await this.run(agent, configuration, signal))) return;
      } finally {
        // Stops plugins that the agent did not take over because it failed before.
        await standby?.stop();
      }
    }
  }

  /**
   * Waits until the state directory is free or the signal aborts. Returns at once if `rollingUpdate` is disabled.
   * Returns the drivers' plugins that registered meanwhile.
   */
  async begin(configuration: AgentConfiguration, signal: AbortSignal): Promise<StandbyPlugins | undefined> {
    const { clock, log } = this.#options;
    const { rollingUpdate, stateDir } = configuration;
    if (!rollingUpdate) return undefined;
    if (this.#hasHandedOver) {
      log.info({ stateDir }, "handed over, waiting until the state directory is free again");
      await sleepOrAbort(clock, YIELD_MS, signal);
    }
    if (signal.aborted || DirectoryLock.isFree(stateDir)) return undefined;
    const standby = this.#hasHandedOver ? undefined : await this.#ask(configuration, signal);
    while (!signal.aborted && !DirectoryLock.isFree(stateDir)) await sleepOrAbort(clock, POLL_MS, signal);
    return standby;
  }

  /**
   * Runs the agent until the signal aborts or another agent asks to take over. Returns true if one asked and all parts
   * have ended, so that the process may wait for its turn. Throws as the agent does.
   */
  async run(
    agent: RunningAgent,
    { rollingUpdate, stateDir }: AgentConfiguration,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (!rollingUpdate) {
      await agent.run(signal);
      return false;
    }
    const offer = await this.#offer(stateDir);
    const either = offer ? AbortSignal.any([signal, offer.asked]) : signal;
    either.addEventListener("abort", () => offer?.close(), { once: true });
    if (either.aborted) offer?.close();
    await agent.run(either);
    if (signal.aborted) return false;
    const abandoned = agent.abandoned();
    if (abandoned.length > 0) {
      this.#options.log.error({ stateDir, abandoned }, "handed over while parts are still running, exiting");
      return false;
    }
    this.#hasHandedOver = true;
    return true;
  }

  // Starts the standby plugins even if the other agent can't be asked: it may be stopping already.
  async #ask(configuration: AgentConfiguration, signal: AbortSignal): Promise<StandbyPlugins | undefined> {
    const { clock, log } = this.#options;
    const { stateDir } = configuration;
    log.info({ stateDir }, "another agent uses the state directory, taking over from it");
    const standby = await this.#standBy(configuration, signal);
    const latest = clock.monotonic() + HANDOVER_MS;
    let isAsked = false;
    while (!signal.aborted && clock.monotonic() < latest) {
      if (DirectoryLock.isFree(stateDir)) return standby;
      // The other agent may have just started and not listen yet, or another agent asked before.
      isAsked ||= await askForHandover(stateDir);
      await sleepOrAbort(clock, POLL_MS, signal);
    }
    await standby?.stop();
    if (!signal.aborted)
      log.warn(
        { stateDir, isAsked, waitedMs: HANDOVER_MS },
        "the other agent did not hand over, waiting until it exits",
      );
    return undefined;
  }

  async #standBy({ devices }: AgentConfiguration, signal: AbortSignal): Promise<StandbyPlugins | undefined> {
    const { enabled, registryDirectory } = devices.kubeletPlugin;
    if (!enabled) return undefined;
    const { clock, log } = this.#options;
    return await StandbyPlugins.start(
      { registryDirectory, clock, log: log.child({ logger: "claims" }) },
      signal,
    );
  }

  async #offer(stateDir: string) {
    if (!canOfferHandover(stateDir)) return undefined;
    try {
      return await offerHandover(stateDir);
    } catch (error) {
      this.#options.log.warn({ err: error, stateDir }, "failed to offer the handover of the state directory");
      return undefined;
    }
  }
}
