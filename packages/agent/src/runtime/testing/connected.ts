import { type Clock, Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { CriRuntime } from "../cri-runtime.ts";
import type { RuntimeSettings } from "../settings.ts";
import { type CriAnswers, CriServer } from "./cri-server.ts";

export interface ConnectedOptions {
  clock?: Clock;
  settings?: Partial<RuntimeSettings>;
}

/** Starts a test runtime and a client for it. Dispose of it at the end of the test. */
export async function connected(answers: CriAnswers, options: ConnectedOptions = {}) {
  const server = await CriServer.serve(answers);
  const registry = new Registry();
  const runtime = new CriRuntime({
    endpoint: `unix://${server.path}`,
    clock: options.clock ?? systemClock,
    log: silentLogger,
    registry,
    ...(options.settings ? { settings: options.settings } : {}),
  });
  const value = async (name: string, labels: Record<string, string>) => {
    const metric = await registry.getSingleMetric(name)?.get();
    const found = metric?.values.find((one) =>
      Object.entries(labels).every(([label, wanted]) => one.labels[label] === wanted),
    );
    return found?.value ?? 0;
  };
  return {
    server,
    runtime,
    signal: new AbortController().signal,
    value,
    anomalies: (kind: string) => value("nodekeeper_runtime_anomalies_total", { kind }),
    async [Symbol.asyncDispose]() {
      runtime[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** Returns a listed sandbox of the pod with this UID. */
export function sandboxOf(uid: string, id = `${uid}-sandbox`) {
  return { id, metadata: { uid, name: `pod-${uid}`, namespace: "default" }, createdAt: 1n };
}

/** Returns a listed running container. */
export function containerOf(podSandboxId: string, id: string) {
  return { id, podSandboxId, metadata: { name: id }, state: 1 as const, createdAt: 2n };
}

export async function failure(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}
