import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type {
  ApplyOptions,
  GroupVersionKind,
  KubeClient,
  KubeObject,
  WatchHandler,
} from "@nodekeeper/core/kube";
import { FakeClock, LoopTurns, NodekeeperError, Registry, silentLogger } from "@nodekeeper/core/lib";
import { onTestFinished } from "vitest";
import { defaultReportingSettings } from "../../assembly/testing/defaults.ts";
import { ReporterStore, StateDatabase } from "../../state/index.ts";
import type { PluginContent } from "../content.ts";
import type { ReportingContext } from "../context.ts";
import { customNodeResource, kindKey, kindPolicies, node } from "../kinds.ts";
import { createReportingMetrics } from "../metrics.ts";
import { Publisher } from "../publisher.ts";
import { contentOf, field, message, reportsOf } from "./contents.ts";

interface Apply {
  body: string;
  dryRun: boolean;
  at: number;
}

/** A publisher with a server consisting of two functions. Time advances only when stepped. */
export async function setUp({
  pluginGracePeriod = 0,
  live = undefined as KubeObject | undefined,
  directory = mkdtempSync(join(tmpdir(), "nodekeeper-writer-")),
} = {}) {
  const clock = new FakeClock();
  const database = StateDatabase.open({ directory, clock, log: silentLogger });
  const contents = new Map<string, PluginContent>();
  const watches: { kind: string; handler: WatchHandler }[] = [];
  const applies: Apply[] = [];
  const server = {
    /** Returns the error that an apply throws. */
    fault: (_body: string): Error | undefined => undefined,
    /** Returns the object as stored after an apply. */
    stored: (object: KubeObject) => object,
    /** What the response to an apply waits for. */
    response: Promise.resolve(),
    live,
    /** The error that a read throws. */
    readFault: undefined as Error | undefined,
    reads: 0,
  };
  const client: Partial<KubeClient> = {
    resolve: async (kind: GroupVersionKind) => ({
      ...kind,
      plural: kind.kind.toLowerCase(),
      namespaced: false,
    }),
    async get() {
      server.reads++;
      if (server.readFault) throw server.readFault;
      if (!server.live) throw new NodekeeperError("notFound", "not there");
      return server.live;
    },
    async apply(_, object: KubeObject, { dryRun = false }: ApplyOptions = {}) {
      const body = JSON.stringify(object);
      applies.push({ body, dryRun, at: clock.monotonic() });
      const fault = server.fault(body);
      if (fault) throw fault;
      await server.response;
      return server.stored(object);
    },
  };
  const registry = new Registry();
  const context: ReportingContext = {
    turns: new LoopTurns(clock),
    store: new ReporterStore(database),
    policies: kindPolicies([]),
    returnMs: 0,
    bootTime: () => undefined,
    notify: () => {},
    settings: () => ({
      ...defaultReportingSettings,
      minWriteInterval: 20,
      resyncInterval: 3_600_000,
      pluginGracePeriod,
    }),
    clock,
    log: silentLogger,
    metrics: createReportingMetrics(registry),
  };
  const publisher = new Publisher(context, {
    client: client as KubeClient,
    fieldManager: "nodekeeper",
    watch: ({ resource: { kind }, handler }) => {
      watches.push({ kind, handler });
      return {
        run: (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
        healthCheck: () => ({ name: "watch", kind: "ready", check: () => ({ ok: true, message: "" }) }),
      };
    },
    nodeName: "n1",
    reports: reportsOf(contents),
    isFrozenTaint: () => false,
    random: () => 0,
  });
  const controller = new AbortController();
  const running = publisher.run(controller.signal);
  onTestFinished(async () => {
    controller.abort();
    await running;
    database.close();
    rmSync(directory, { recursive: true });
  });
  const report = async (plugin: string, value: string, kind = customNodeResource) => {
    const fields =
      kind === node ? [field("metadata", "labels", { l: value })] : [field("status", plugin, value)];
    contents.set(plugin, contentOf(message(fields, kind)));
    publisher.touch([kindKey(kind)]);
    await clock.step(100);
  };
  const withdraw = async (plugin: string, kind = customNodeResource) => {
    contents.delete(plugin);
    publisher.touch([kindKey(kind)]);
    await clock.step(100);
  };
  const repairs = async () => {
    const text = await registry.metrics();
    return Number(/^nodekeeper_reporting_repairs_total\{.*\} (\d+)$/m.exec(text)?.[1] ?? 0);
  };
  return { clock, server, applies, watches, publisher, report, withdraw, repairs };
}

export const away = () => new NodekeeperError("unavailable", "connection refused");
export const refusePoison = (body: string) =>
  body.includes("poison") ? new NodekeeperError("invalid", "poison: Invalid value") : undefined;
export const last = (applies: readonly Apply[]) => applies.filter(({ dryRun }) => !dryRun).at(-1)!.body;
export const statusOf = (applies: readonly Apply[]) => JSON.parse(last(applies)).status;

/** Returns faults that refuse the next `count` bodies that match. */
export function refuseNext(count: number, pattern: RegExp) {
  return (body: string) =>
    pattern.test(body) && count-- > 0 ? new NodekeeperError("invalid", "refused by chance") : undefined;
}
