import type { DevOptions, Place } from "./dev-place.ts";
import { KEEP_LABEL } from "./dev-pods.ts";
import { type Output, paint } from "./output.ts";
import { packageVersion } from "./version.ts";

export interface DevTold {
  options: DevOptions;
  place: Place;
  url: string;
  address: string | undefined;
  pluginPid: number | undefined;
  driverPid: number | undefined;
  evictionPid: number | undefined;
  output: Output;
}

/** Says what runs and what to try. */
export function tellDev({
  options,
  place,
  url,
  address,
  pluginPid,
  driverPid,
  evictionPid,
  output,
}: DevTold): void {
  const bold = (text: string) => paint(output, "bold", text);
  const command = (text: string) => `  ${paint(output, "cyan", text)}`;
  const remark = (text: string) => paint(output, "dim", `   # ${text}`);
  const runFlags = `--node-name ${options.nodeName} --kubeconfig ${place.kubeconfig} --state-dir ${place.state} --plugin-directories ${place.plugins} --api-socket ${place.api} --eviction-skip-labels ${KEEP_LABEL}${options.simulatedRuntime ? ` --runtime-endpoint ${place.runtime}` : ""}`;
  const self = process.env.npm_lifecycle_event ? "npx nodekeeper" : "nodekeeper";
  const run = import.meta.url.endsWith(".ts") ? "npm run -s nodekeeper --" : self;
  const lines = [
    bold(`nodekeeper ${packageVersion()}: development cluster (a tool for development and tests)`),
    `  API server     ${url}  (in memory, this machine only)`,
    `  kubeconfig     ${place.kubeconfig}`,
    ...(address ? [`  agent          http://${address}  (/readyz?verbose, /metrics, /api/v1)`] : []),
    `  plugin sockets ${place.plugins}`,
    ...(options.simulatedRuntime
      ? [`  runtime        ${place.runtime}  (simulated: pods without processes)`]
      : []),
    ...(pluginPid ? [`  sample plugin  process ${pluginPid}`] : []),
    ...(driverPid ? [`  sample driver  process ${driverPid}`] : []),
    ...(evictionPid ? [`  sample evictor process ${evictionPid}`] : []),
    ...(options.verbose ? [] : [`  log            ${place.log}`]),
    "",
    bold("Try, in another terminal:"),
    command(`kubectl --kubeconfig ${place.kubeconfig} get cnr ${options.nodeName} -o yaml`),
    command(`kubectl --kubeconfig ${place.kubeconfig} get cnr -w`),
    ...(address ? [command(`${run} plugins list --server ${address}`)] : []),
    ...(address ? [command(`${run} devices --server ${address}`)] : []),
    ...(driverPid ? [command(`kubectl --kubeconfig ${place.kubeconfig} get resourceslices`)] : []),
    ...(address && evictionPid
      ? [
          command(`${run} rounds --follow --server ${address}`) + remark("pods go, one about every 30 s"),
          command(`${run} explain pod <namespace>/<name> --server ${address}`) +
            remark("why one of them went, or stayed"),
          command(`kubectl --kubeconfig ${place.kubeconfig} get pods -A -w`),
        ]
      : []),
    command(`${run} pods --socket ${place.api}`),
    command(`${run} events --follow --socket ${place.api}`),
    ...(pluginPid
      ? [command(`kill -9 ${pluginPid}`) + remark("the plugin dies: its content stays for the grace period")]
      : []),
    ...(options.agent ? [] : [command(`${run} run ${runFlags}`)]),
    "",
    paint(output, "dim", "Ctrl-C stops everything."),
    "",
  ];
  output.write(`${lines.join("\n")}\n`);
}
