import { limitInformationalAnswers } from "@nodekeeper/core/grpc";
import { type LogLevel, type Runnable, runInOrder } from "@nodekeeper/core/lib";
import {
  type AgentSummary,
  agentContext,
  type ContextOptions,
  configurationPart,
  devicesPart,
  evictionPart,
  lifecyclePart,
  pluginsPart,
  reportingPart,
  statusServersOf,
  summaryOf,
} from "./assembly/index.ts";
import type { ReadPageFile } from "./server/index.ts";

// Less than the five seconds that a person who pressed Ctrl-C waits.
const STOP_DEADLINE_MS = 4_000;

export interface AgentOptions extends ContextOptions {
  /** Files of the page that the status servers serve. Default: none. */
  page?: ReadPageFile;
  /** Changes the level of `log`. */
  setLogLevel: (level: LogLevel) => void;
  /** Calls back at each SIGHUP; returns the function that stops that. */
  onHangup: (callback: () => void) => () => void;
}

/** The running agent. */
export interface Agent extends Runnable {
  /** Resolves with `server.address` once the status server listens there, and on `server.remoteAddress` where it is set. */
  listening(): Promise<string>;
  /** The agent's current figures, for a live line. */
  summary(): AgentSummary;
}

/**
 * Puts the agent together from the parts of assembly/ and runs them in order.
 * Throws where it can't start: no access to the API server, no state directory, an unknown in-tree plugin.
 */
export async function createAgent(options: AgentOptions): Promise<Agent> {
  const context = await agentContext(options);
  const lifecycle = lifecyclePart(context);
  const devices = devicesPart(context);
  const eviction = evictionPart(context, lifecycle);
  const reporting = reportingPart(context, { lifecycle, devices, eviction });
  const plugins = pluginsPart(context, { reporting, devices, eviction });
  const configuration = configurationPart(context, {
    ...options,
    onChange: () => reporting.manager.settingsChanged(),
  });
  // In the order in which they start: plugins register when those who take them run.
  const parts = [context.part, reporting, devices, lifecycle, eviction, plugins, configuration];
  const present = parts.filter((part) => part !== undefined);
  const summarized = { reporting, lifecycle, eviction, plugins };
  const servers = statusServersOf(context, present, summarized, options.page);

  return {
    name: "agent",
    async listening() {
      const [address] = await Promise.all([servers.main.whenListening(), servers.remote?.whenListening()]);
      return address;
    },
    summary: () => summaryOf(reporting, lifecycle, eviction),
    async run(signal) {
      using _informationalAnswers = limitInformationalAnswers();
      const { clock, log, version, marks } = context;
      log.info({ version, nodeName: context.configuration().nodeName, ...context.server }, "agent starts");
      marks.addStart(version);
      try {
        reporting.manager.restore();
        lifecycle?.generator.restore();
        const { main, remote } = servers;
        const runnables = [main, ...(remote ? [remote] : []), ...present.flatMap((part) => part.runnables)];
        await runInOrder(runnables, { clock, log, stopDeadlineMs: STOP_DEADLINE_MS }, signal);
      } finally {
        lifecycle?.runtime[Symbol.dispose]();
        marks.addStop(version);
        context.close();
        log.info({}, "agent stopped");
      }
    },
  };
}
