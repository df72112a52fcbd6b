import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import type { ObservedPod } from "../../eviction/index.ts";
import type { PodUsage } from "../fields.ts";
import type { NodeReadings, NodeSnapshot, Part } from "../node-snapshot.ts";
import type { Policy } from "../policy.ts";
import { createPolicyMetrics } from "../policy-metrics.ts";
import { describeProblem } from "../policy-problem.ts";
import { PolicySource, type PolicySourceOptions } from "../policy-source.ts";
import { readPolicies } from "../read-policies.ts";

export const Mi = 2 ** 20;
export const Gi = 2 ** 30;

/** The threshold of a policy that is met below 100 Mi of available memory. */
export const belowMinimum = `
name: low
type: hard
observed: node.memory.available
operator: lessThan
threshold: quantity("100Mi")`;

/**
 * Compiles a YAML text that contains a single policy.
 * @param fields the policy's fields, without the enclosing list
 */
export function policyOf(fields: string): Policy {
  const text = `policies:\n  - ${fields.trim().replaceAll("\n", "\n    ")}\n`;
  const { policies, problems } = readPolicies("test.yaml", text);
  if (problems.length > 0) throw new Error(problems.map(describeProblem).join("\n"));
  return policies[0]!;
}

/** Returns a snapshot of a node without pressure, read at `at`. */
export function snapshotAt(at: number): NodeSnapshot {
  const read = <T>(value: T): Part<T> => ({ value, at });
  const calm = { avg10: 0, avg60: 0, avg300: 0 };
  const pressure = () => read({ some: { ...calm }, full: { ...calm } });
  const space = { capacity: 100 * Gi, available: 60 * Gi, inodes: 1_000_000, inodesFree: 900_000 };
  const filesystem = () => read({ ...space });
  return {
    memory: read({ total: 16 * Gi, available: 8 * Gi, free: 2 * Gi, workingSet: 7 * Gi }),
    psi: { memory: pressure(), cpu: pressure(), io: pressure() },
    cpu: read({ usage: 0.25, cores: 8 }),
    allocatableMemory: read({ capacity: 15 * Gi, workingSet: 6 * Gi }),
    containerfs: read({ ...space, isSeparate: 0 }),
    nodefs: filesystem(),
    imagefs: filesystem(),
    pids: read({ max: 32_768, current: 500 }),
  };
}

/** A node with configurable readings, and its policies. */
export class TestNode implements NodeReadings {
  readonly clock = new FakeClock();
  readonly registry = new Registry();
  readonly logged: { level: string; message: string; fields: Record<string, unknown> }[] = [];
  snapshot: NodeSnapshot = snapshotAt(this.clock.monotonic());
  usages: Record<string, PodUsage> = {};
  usageReads = 0;
  /** The fields that were requested. */
  usageFields: string[] = [];
  readonly #metrics = createPolicyMetrics(this.registry);

  async read(): Promise<NodeSnapshot> {
    return this.snapshot;
  }

  /** Sets the available memory in bytes, read now. */
  setAvailable(available: number | undefined): void {
    this.snapshot.memory = { value: { total: 16 * Gi, available }, at: this.clock.monotonic() };
  }

  source(
    policy: Policy,
    others: Partial<Pick<PolicySourceOptions, "readings" | "podUsage">> = {},
  ): PolicySource {
    return new PolicySource({ ...this.parts, policy, ...others });
  }

  get parts(): Omit<PolicySourceOptions, "policy"> {
    const log = (level: string) => (fields: Record<string, unknown>, message: string) =>
      void this.logged.push({ level, message, fields });
    return {
      readings: this,
      podUsage: async (_pods: readonly ObservedPod[], reads: readonly string[]) => {
        this.usageReads++;
        this.usageFields.push(...reads);
        return { value: new Map(Object.entries(this.usages)), at: this.clock.monotonic() };
      },
      clock: this.clock,
      cpuMs: () => 0,
      log: { ...silentLogger, info: log("info"), warn: log("warn") } as typeof silentLogger,
      metrics: this.#metrics,
    };
  }
}
