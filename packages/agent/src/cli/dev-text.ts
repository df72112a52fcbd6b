import type { ChildProcess } from "./child-process.ts";
import type { DevOptions, DevPaths } from "./dev-paths.ts";
import { KEEP_LABEL } from "./dev-pods.ts";
import { type Output, paint } from "./output.ts";
import { packageVersion } from "./version.ts";

/** The sample plugins, each in a process. */
export type SamplePlugins = Record<"reporter" | "driver" | "eviction", ChildProcess>;

export interface DevSummary {
  options: DevOptions;
  paths: DevPaths;
  url: string;
  address: string | undefined;
  samples: SamplePlugins | undefined;
  output: Output;
}

/** Prints what runs in the development cluster, and commands to try. */
export function printDevSummary(summary: DevSummary): void {
  const { options, paths, url, address, samples, output } = summary;
  const bold = (text: string) => paint(output, "bold", text);
  const command = (text: string) => `  ${paint(output, "cyan", text)}`;
  const row = (label: string, text: string) => `  ${label.padEnd(16)}${text}`;
  const remark = (text: string) => paint(output, "dim", `   # ${text}`);
  const runFlags = `--node-name ${options.nodeName} --kubeconfig ${paths.kubeconfig} --state-dir ${paths.state} --plugin-directories ${paths.plugins} --api-socket ${paths.api} --eviction-dry-run-plugins= --eviction-skip-labels ${KEEP_LABEL}${options.simulatedRuntime ? ` --runtime-endpoint ${paths.runtime}` : ""}`;
  const self = process.env.npm_lifecycle_event ? "npx nodekeeper" : "nodekeeper";
  const run = import.meta.url.endsWith(".ts") ? "npm run -s nodekeeper --" : self;
  const lines = [
    ...(address ? [`${bold("Page:")} http://${address}/`, ""] : []),
    bold(`nodekeeper ${packageVersion()}: development cluster (a tool for development and tests)`),
    row("API server", `${url}  (in memory, loopback only)`),
    row("kubeconfig", paths.kubeconfig),
    ...(address ? [row("agent", `http://${address}  (/readyz?verbose, /metrics, /api/v1)`)] : []),
    row("plugin sockets", paths.plugins),
    ...(options.simulatedRuntime
      ? [row("runtime", `${paths.runtime}  (simulated: pods without processes)`)]
      : []),
    ...(samples
      ? [
          row("reporter plugin", `process ${samples.reporter.pid}  (sample)`),
          row("device driver", `process ${samples.driver.pid}  (sample)`),
          row("eviction plugin", `process ${samples.eviction.pid}  (sample)`),
        ]
      : []),
    ...(options.agent
      ? [row("eviction", "live, set by --eviction-dry-run-plugins=  (elsewhere the default is dry run)")]
      : []),
    ...(options.verbose ? [] : [row("log", paths.log)]),
    "",
    bold("Try, in another terminal:"),
    command(`kubectl --kubeconfig ${paths.kubeconfig} get cnr ${options.nodeName} -o yaml`),
    command(`kubectl --kubeconfig ${paths.kubeconfig} get cnr -w`),
    ...(address ? [command(`${run} plugins list --server ${address}`)] : []),
    ...(address ? [command(`${run} devices --server ${address}`)] : []),
    ...(samples ? [command(`kubectl --kubeconfig ${paths.kubeconfig} get resourceslices`)] : []),
    ...(address && samples
      ? [
          command(`${run} rounds --follow --server ${address}`) + remark("about one eviction every 30 s"),
          command(`${run} explain pod <namespace>/<name> --server ${address}`) +
            remark("why a pod was evicted or not"),
          command(`kubectl --kubeconfig ${paths.kubeconfig} get pods -A -w`),
        ]
      : []),
    ...(address ? [command(`${run} pods --server ${address}`)] : []),
    ...(address ? [command(`${run} events --follow --server ${address}`)] : []),
    ...(samples
      ? [
          command(`kill -9 ${samples.reporter.pid}`) +
            remark("its last content stays published for reporting.pluginGracePeriod"),
        ]
      : []),
    ...(options.agent ? [] : [command(`${run} run ${runFlags}`)]),
    "",
    paint(output, "dim", "Ctrl-C stops everything."),
    "",
  ];
  output.write(`${lines.join("\n")}\n`);
}
