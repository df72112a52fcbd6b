import { existsSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { FieldType, GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer } from "@nodekeeper/testing";
import { createServer } from "nice-grpc";
import { AgentProcess } from "./agent-process.ts";
import type { Figure } from "./figures.ts";
import { rawReporter } from "./raw-reporter.ts";

const KIND = { group: "node.katalyst.kubewharf.io", version: "v1alpha1", kind: "CustomNodeResource" };
const FIELD_BYTES = 1_000_000;

/** Texts of nearly a megabyte that cost as much as they can, by what they are. */
function shapes(tick: number): Record<string, string> {
  const filled = (item: (at: number) => string) => {
    const items: string[] = [String(tick)];
    for (let bytes = 10, at = 0; bytes < FIELD_BYTES - 100; at++) {
      const text = item(at);
      bytes += text.length + 1;
      items.push(text);
    }
    return items;
  };
  const list = (item: (at: number) => string) => `[${filled(item).join()}]`;
  const zone = (at: number) =>
    `{"name":"${at}","type":"Numa","resources":{"capacity":{"cpu":"4","memory":"8Gi"}},"attributes":[{"name":"a","value":"${tick}"}]}`;
  return {
    zones: `[${filled(zone).slice(1).join()}]`,
    "empty lists, as many as are allowed": `[${tick},${Array.from({ length: 199_000 }, () => "[]").join()}]`,
    numbers: list((at) => String(at % 10)),
    "integers beyond 2^53": list((at) => `12345678901234${String(at).padStart(6, "0")}`),
    "one member each": `{${filled((at) => `"k${at}":1`)
      .slice(1)
      .join()},"tick":${tick}}`,
    "one zone again and again": `[${filled((at) => `{"name":"x","type":"Numa","k${at}":1}`)
      .slice(1)
      .join()}]`,
    "not JSON": `[${tick},${"[".repeat(100_000)}`,
  };
}

/** Returns two messages of 3.9 MB, for ticks 0 and 1. Each has four fields with the value of this shape. */
function messagesOf(shape: string): Uint8Array[] {
  return [0, 1].map((tick) => {
    const value = new TextEncoder().encode(shapes(tick)[shape]);
    const field = ["topologyZone", "second", "third", "fourth"].map((fieldName) => ({
      fieldType: FieldType.Status,
      fieldName,
      value,
    }));
    return GetReportContentResponse.encode({ content: [{ groupVersionKind: KIND, field }] }).finish();
  });
}

/**
 * What a plugin that sends reports of 3.9 MB costs all others: the CPU time of the longest turn of the agent's event
 * loop, for nothing else is done in it, and in a second run the slowest /livez.
 */
export async function benchLargeReports(quick: boolean): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const shape of Object.keys(shapes(0))) {
    const turns = await burst(shape, quick ? 10 : 30, true);
    figures.push({
      name: `${shape}: CPU of the longest turn`,
      value: turns.longestTurnMs,
      unit: "ms",
      budget: 50,
    });
    const plain = await burst(shape, quick ? 10 : 30, false);
    figures.push({ name: `${shape}: slowest /livez`, value: plain.slowestMs, unit: "ms" });
    figures.push({ name: `${shape}: CPU of a message`, value: plain.cpuMs, unit: "ms" });
    figures.push({ name: `${shape}: RSS after it`, value: plain.rssMb, unit: "MB" });
  }
  return figures;
}

async function burst(shape: string, messages: number, isMetered: boolean) {
  const server = createDevApiServer({ clock: systemClock, log: silentLogger, checkFields: false });
  await server.start();
  server.seedNode("bench");
  const agent = new AgentProcess();
  const plugins = createServer({ "grpc.max_send_message_length": -1 });
  const meterFile = join(agent.directory, "turn");
  const [one, other] = messagesOf(shape) as [Uint8Array, Uint8Array];
  const sending = Promise.withResolvers<void>();
  const sent = Promise.withResolvers<void>();
  rawReporter(plugins, "large", async function* () {
    await sending.promise;
    for (let at = 0; at < messages; at++) {
      yield at % 2 === 0 ? one : other;
      await systemClock.sleep(100);
    }
    sent.resolve();
    await systemClock.sleep(1e9);
  });
  try {
    await server.writeKubeconfig(agent.kubeconfig);
    const meter = ["--import", join(import.meta.dirname, "turn-meter.ts")];
    await agent.start({}, isMetered ? { nodeArgs: meter, env: { TURN_METER_FILE: meterFile } } : {});
    await plugins.listen(`unix:${agent.plugins}/large.sock`);
    // Its start, and the registration.
    await systemClock.sleep(3_000);
    if (isMetered) await readMeter(agent, meterFile);
    const cpu = agent.cpuSeconds();
    const probes = isMetered ? undefined : probe(agent.port);
    sending.resolve();
    await sent.promise;
    // The last is read, published, and comes back through the watch.
    await systemClock.sleep(5_000);
    const cpuMs = ((agent.cpuSeconds() - cpu) * 1_000) / messages;
    const slowestMs = (await probes?.stop()) ?? 0;
    const longestTurnMs = isMetered ? await readMeter(agent, meterFile) : 0;
    return { longestTurnMs, slowestMs, cpuMs, rssMb: agent.rssMb() };
  } finally {
    plugins.forceShutdown();
    await agent.remove();
    await server.stop();
  }
}

async function readMeter(agent: AgentProcess, file: string): Promise<number> {
  rmSync(file, { force: true });
  agent.signal("SIGUSR2");
  while (!existsSync(file)) await systemClock.sleep(20);
  return Number(readFileSync(file, "utf8"));
}

/** Asks /livez every 20 ms, each time on a connection of its own. */
function probe(port: number) {
  let isOn = true;
  let slowestMs = 0;
  const ask = () =>
    new Promise<void>((resolve) => {
      const startedAt = performance.now();
      const done = () => {
        slowestMs = Math.max(slowestMs, performance.now() - startedAt);
        resolve();
      };
      request({ port, path: "/livez", agent: false }, (answer) => answer.resume().once("end", done))
        .once("error", done)
        .end();
    });
  const asking = (async () => {
    while (isOn) {
      await ask();
      await systemClock.sleep(20);
    }
  })();
  return {
    async stop(): Promise<number> {
      isOn = false;
      await asking;
      return slowestMs;
    },
  };
}
