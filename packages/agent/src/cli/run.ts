import { SettingUnused } from "@nodekeeper/api/errors";
import { createLogger, systemClock } from "@nodekeeper/core/lib";
import { createAgent } from "../agent.ts";
import { Handover } from "../assembly/index.ts";
import { loadConfigurationForStart } from "../config/index.ts";
import { pageFiles } from "./page-files.ts";
import { configurationSources } from "./settings-options.ts";
import { stopOnSignals } from "./stop-on-signals.ts";
import { packageVersion } from "./version.ts";

/** `nodekeeper run`: runs the agent in the foreground until SIGINT or SIGTERM. A second signal exits immediately. */
export async function runCommand(options: Record<string, unknown>): Promise<void> {
  // Without a listener, SIGHUP ends the process. The configuration watcher listens only while an agent runs, and reads
  // the file when it starts.
  process.on("SIGHUP", () => {});
  const sources = configurationSources(options);
  const { configuration, warnings, refused } = await loadConfigurationForStart(sources);
  const log = createLogger(configuration.log.level);
  if (refused) log.error({ err: refused }, "configuration refused, starting with the last good one");
  for (const warning of warnings) log.warn({ errorId: SettingUnused.id, warning }, "configuration warning");
  using scope = stopOnSignals();
  const handover = new Handover({ clock: systemClock, log });
  await handover.runInTurns(
    configuration,
    (standby) =>
      createAgent({
        configuration,
        standby,
        sources,
        version: packageVersion(),
        page: pageFiles(),
        clock: systemClock,
        log,
        setLogLevel: (level) => {
          log.level = level;
        },
        onHangup,
      }),
    scope.signal,
  );
}

/** Calls `callback` on each SIGHUP. Returns a function that unsubscribes. */
export function onHangup(callback: () => void): () => void {
  process.on("SIGHUP", callback);
  return () => process.off("SIGHUP", callback);
}
