// Plugins for the benchmark, in a process of their own:
//   node plugins-process.ts DIRECTORY COUNT INTERVAL_MS EPOCH_MS [flood] [hung]
// Each reports the time of its last change, milliseconds since EPOCH_MS, as a resource of its name. SIGUSR2 ends the
// changes; the last values are then printed as JSON.

import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { ReporterPluginDefinition } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { systemClock } from "@nodekeeper/core/lib";
import { customNodeResource, serveReporterPlugin, status } from "@nodekeeper/sdk";
import { createServer } from "nice-grpc";

const [directory = "", count = "0", interval = "500", epoch = "0", ...others] = process.argv.slice(2);
const FLOOD_PER_TICK = 100;
const FLOOD_TICK_MS = 10;

const last: Record<string, number> = {};
const stop = new AbortController();

function report(name: string) {
  if (!stop.signal.aborted) last[name] = Date.now() - Number(epoch);
  return customNodeResource(status("resources", { capacity: { [`bench.io/${name}`]: String(last[name]) } }));
}

for (let at = 0; at < Number(count); at++) {
  const name = `plugin-${at}`;
  serveReporterPlugin({
    name,
    socketDir: directory,
    async *report(signal) {
      // Spread over the interval, as plugins that know nothing of each other are.
      await systemClock.sleep((Number(interval) * at) / Number(count), signal);
      while (!stop.signal.aborted) {
        yield [report(name)];
        await systemClock.sleep(Number(interval), AbortSignal.any([signal, stop.signal])).catch(() => {});
      }
      await systemClock.sleep(1e9, signal);
    },
  });
}
if (others.includes("flood"))
  await serveRaw("flood", {
    getReportContent: async () => ({ content: [report("flood")] }),
    async *listAndWatchReportContent() {
      while (!stop.signal.aborted) {
        for (let sent = 0; sent < FLOOD_PER_TICK; sent++) yield { content: [report("flood")] };
        await systemClock.sleep(FLOOD_TICK_MS);
      }
      await systemClock.sleep(1e9);
    },
  });
if (others.includes("hung")) {
  const never = () => new Promise<never>(() => {});
  await serveRaw("hung", {
    getReportContent: never,
    async *listAndWatchReportContent() {
      await never();
      yield { content: [] };
    },
  });
}

process.on("SIGUSR2", () => {
  stop.abort();
  setImmediate(() => process.stdout.write(`${JSON.stringify(last)}\n`));
});

async function serveRaw(
  name: string,
  service: Parameters<ReturnType<typeof createServer>["add"]>[1],
): Promise<void> {
  const server = createServer();
  server.add(ReporterPluginDefinition, service as never);
  server.add(RegistrationDefinition, {
    getInfo: async () => ({ type: "ReporterPlugin", name, endpoint: "", supportedVersions: ["v1alpha1"] }),
    notifyRegistrationStatus: async () => ({}),
  });
  await server.listen(`unix:${directory}/${name}.sock`);
}
