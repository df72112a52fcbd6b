import type { AgentConfiguration } from "../config/index.ts";
import { Host } from "../host/index.ts";
import { enabledPlugins, SYSTEM_REPORTER_NAME, SystemReporter } from "../intree/index.ts";
import { type Clock, type Logger, NodekeeperError } from "../lib/index.ts";
import type { ReporterSource } from "../reporting/index.ts";

/** The in-tree reporters that are enabled. Throws for a name that nobody has. */
export function inTreeReporters(
  { hostRoot, reporting }: AgentConfiguration,
  clock: Clock,
  log: Logger,
): ReporterSource[] {
  const makers: Record<string, () => ReporterSource> = {
    [SYSTEM_REPORTER_NAME]: () =>
      new SystemReporter({
        host: new Host({ root: hostRoot, clock }),
        clock,
        logger: log.child({ plugin: SYSTEM_REPORTER_NAME }),
        reportCpuFlags: reporting.system.reportCPUFlags,
      }),
  };
  return enabledPlugins(Object.keys(makers), reporting.inTreePlugins).map((name) => {
    const make = makers[name];
    if (!make) throw new NodekeeperError("internal", `no maker for in-tree plugin ${name}`);
    return make();
  });
}
