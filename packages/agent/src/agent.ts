import { limitInformationalAnswers } from "@nodekeeper/core/grpc";
import { type LogLevel, type Runnable, runInOrder } from "@nodekeeper/core/lib";
import {
  type AgentSummary,
  agentContext,
  archivePart,
  type ContextOptions,
  configurationPart,
  devicesPart,
  EvictionModeLog,
  evictionPart,
  lifecyclePart,
  pluginsPart,
  podUsagePart,
  reportingPart,
  statusServersOf,
  summaryOf,
} from "./assembly/index.ts";
import type { ReadPageFile } from "./server/index.ts";

// Shorter than the five seconds that users wait after pressing Ctrl-C.
const STOP_DEADLINE_MS = 4_000;

export interface AgentOptions extends ContextOptions {
  /** Reads the files of the web page for the status servers. Default: no page. */
  page?: ReadPageFile;
  /** Changes the level of `log`. */
  setLogLevel: (level: LogLevel) => void;
  /** Calls `callback` on each SIGHUP. Returns a function that unsubscribes. */
  onHangup: (callback: () => void) => () => void;
}

/** The running agent. */
export interface Agent extends Runnable {
  /** Resolves with `server.address` once the status server listens there and, if set, on `server.remoteAddress`. */
  listening(): Promise<string>;
  /** Names of parts that did not stop in time and may still run. Empty until `run` returns. */
  abandoned(): readonly string[];
  /** Returns the agent's current figures for a status line. */
  summary(): AgentSummary;
}

/**
 * Assembles the agent from the parts in assembly/ and runs them in order. Throws if it cannot start: no access to the
 * API server, or no state directory.
 */
export async function createAgent(options: AgentOptions): Promise<Agent> {
  const context = await agentContext(options);
  const archive = await archivePart(context);
  const lifecycle = lifecyclePart(context);
  const eviction = evictionPart(context, lifecycle);
  const devices = devicesPart(context, { lifecycle, eviction });
  const reporting = reportingPart(context, { lifecycle, devices, eviction });
  const plugins = pluginsPart(context, { reporting, devices, eviction });
  const evictionMode = new EvictionModeLog(context);
  const configuration = configurationPart(context, {
    ...options,
    onChange: () => {
      evictionMode.update();
      reporting.manager.settingsChanged();
      devices.sync.handler.settingsChanged();
    },
  });
  // In start order: plugins register only after their consumers run, and what they record is exported at the stop.
  const usage = podUsagePart(context, lifecycle);
  const parts = [
    context.part,
    archive,
    reporting,
    devices,
    lifecycle,
    eviction,
    plugins,
    usage,
    configuration,
  ];
  const present = parts.filter((part) => part !== undefined);
  const summarized = { reporting, lifecycle, eviction, plugins };
  const servers = statusServersOf(context, present, summarized, options.page);

  let abandoned: readonly string[] = [];

  return {
    name: "agent",
    abandoned: () => abandoned,
    async listening() {
      const [address] = await Promise.all([servers.main.ready(), servers.remote?.ready()]);
      return address;
    },
    summary: () => summaryOf(summarized),
    async run(signal) {
      using _informationalAnswers = limitInformationalAnswers();
      const { clock, log, version, marks } = context;
      log.info({ version, nodeName: context.configuration().nodeName, ...context.server }, "agent starts");
      evictionMode.update();
      marks.addStart(version);
      try {
        reporting.manager.restore();
        lifecycle?.generator.restore();
        const { main, remote } = servers;
        const runnables = [main, ...(remote ? [remote] : []), ...present.flatMap((part) => part.runnables)];
        abandoned = await runInOrder(runnables, { clock, log, stopDeadlineMs: STOP_DEADLINE_MS }, signal);
      } finally {
        lifecycle?.runtime[Symbol.dispose]();
        marks.addStop(version);
        context.close();
        log.info({}, "agent stopped");
      }
    },
  };
}
