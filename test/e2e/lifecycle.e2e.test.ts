import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { PodLifecycleClient, type PodLifecycleEvent, type PodLifecycleItem } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CriRuntime } from "../../packages/agent/src/runtime/index.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { Containerd, type ContainerdPart } from "./support/containerd.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { CriClient, type PodSpec } from "./support/cri-client.ts";
import { controlPlaneParts, missingParts } from "./support/parts.ts";

const execute = promisify(execFile);
const NODE = "worker-1";
const missing = process.getuid?.() !== 0 || missingParts(...controlPlaneParts, "runc", "busybox");

const lasting = ["/bin/sleep", "1000000"];
/** Runs until it is stopped, and exits with the code then: once it has logged "ready", and not before. */
const untilStopped = (code: number) => [
  "/bin/sh",
  "-c",
  `trap 'exit ${code}' TERM; echo ready; sleep 1000000 & wait`,
];
const exit = (code: number, after = 0) => ["/bin/sh", "-c", `sleep ${after}; exit ${code}`];

// containerd 1.6 has no events, 1.7 gives each to one subscriber, 2.x to all of them: only there lists may be rare.
const versions = [
  { part: "oldContainerd", mode: "unsupported", period: 1 },
  { part: "containerd", mode: "healthy", period: 1 },
  { part: "newContainerd", mode: "healthy", period: 30 },
] as const;

describe.each(versions)("pods on $part", ({ part, mode, period }) => {
  describe.skipIf(missing || missingParts(part))("the agent reports", () => reports(part, mode, period));
});

function reports(part: ContainerdPart, mode: string, period: number): void {
  let cluster: ControlPlane;
  let containerd: Containerd;
  let cri: CriClient;
  let agent: AgentProcess;
  let client: PodLifecycleClient;
  const events: PodLifecycleEvent[] = [];
  const snapshots: PodLifecycleItem[] = [];
  const watching = new AbortController();
  let watch: Promise<void>;
  let made = 0;

  const newPod = (): PodSpec => {
    made++;
    return { uid: `uid-${part}-${made}`, name: `pod-${made}`, namespace: "default" };
  };
  /** "Started app", "Died app 3", "Removed app"; a sandbox is called so. */
  const told = (pod: PodSpec) =>
    events
      // PodSync says that a reading failed before, as it may where the runtime is slow or down, and nothing has happened.
      .filter((event) => event.pod.uid === pod.uid && event.type !== "PodSync")
      .map(({ type, container, exitCode }) =>
        [type.replace("Container", ""), container?.name || container?.kind, exitCode]
          .filter((word) => word !== undefined)
          .join(" "),
      );
  const untilReady = (pod: PodSpec) =>
    eventually(async () => expect(await cri.logs(pod, { name: "app" })).toContain("ready"));
  const untilTold = (pod: PodSpec, expected: string[]) =>
    eventually(() => expect(told(pod)).toEqual(expected));

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    containerd = await Containerd.start(join(cluster.directory, "containerd"), part);
    cri = new CriClient(containerd);
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: { "runtime-endpoint": `unix://${containerd.socket}` },
    });
    await agent.ready();
    client = new PodLifecycleClient({ socket: agent.apiSocket });
    watch = (async () => {
      for await (const item of client.watch({}, watching.signal)) {
        if (item.kind === "event") events.push(item.event);
        else if (item.kind === "snapshot") snapshots.push(item);
      }
    })();
    await eventually(() => expect(snapshots).toHaveLength(1));
  });

  afterAll(async () => {
    watching.abort();
    await watch;
    client?.close();
    cri?.close();
    await agent?.child.stop();
    await containerd?.stop();
    await cluster?.stop();
  });

  afterEach(() => {
    // Never twice the same thing of one container.
    const seen = events.flatMap(({ type, container }) => (container ? `${type} ${container.id}` : []));
    expect(new Set(seen).size).toBe(seen.length);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, at) => events[0]!.sequence + at));
    expect(snapshots).toHaveLength(1);
  });

  it("finds out whether the runtime has events, and is healthy", async () => {
    await eventually(async () =>
      expect(await agent.metric("nodekeeper_lifecycle_hint_stream_state", `{state="${mode}"}`)).toBe(1),
    );
    await eventually(async () => {
      const { ok, text } = await agent.readiness();
      expect(text).toContain("[+]PodLifecycleReady ok");
      expect(ok, text).toBe(true);
    });
  });

  it("a pod that runs, exits with a code and is removed", async () => {
    const pod = newPod();
    const sandbox = await cri.runPodSandbox(pod);
    const id = await cri.runContainer(sandbox, { name: "app", command: untilStopped(3) });
    await untilTold(pod, ["Started sandbox", "Started app"]);
    await untilReady(pod);
    await cri.stopContainer(id, 60);
    await untilTold(pod, ["Started sandbox", "Started app", "Died app 3"]);
    const [status] = await client.getPods({ selector: { uid: pod.uid } });
    expect(status?.containers).toMatchObject([{ name: "app", state: "exited", exitCode: 3 }]);
    await cri.removeContainer(id);
    await untilTold(pod, ["Started sandbox", "Started app", "Died app 3", "Removed app"]);
    await cri.stopPodSandbox(sandbox);
    await cri.removePodSandbox(sandbox);
    await eventually(() => expect(told(pod).slice(4)).toEqual(["Died sandbox", "Removed sandbox"]));
    await eventually(async () => expect(await client.getPods({ selector: { uid: pod.uid } })).toEqual([]));
  });

  it("a container killed from outside, and one started again in its place", async () => {
    const pod = newPod();
    const sandbox = await cri.runPodSandbox(pod);
    const id = await cri.runContainer(sandbox, { name: "app", command: lasting });
    await untilTold(pod, ["Started sandbox", "Started app"]);
    await containerd.ctr("task", "kill", "--signal", "SIGKILL", id);
    await untilTold(pod, ["Started sandbox", "Started app", "Died app 137"]);
    await cri.runContainer(sandbox, { name: "app", attempt: 1, command: lasting });
    await eventually(() => expect(told(pod).slice(3)).toEqual(["Started app"]));
  });

  it("a sandbox that fails under its containers", async () => {
    const pod = newPod();
    const sandbox = await cri.runPodSandbox(pod);
    await cri.runContainer(sandbox, { name: "app", command: lasting });
    await untilTold(pod, ["Started sandbox", "Started app"]);
    await containerd.ctr("task", "kill", "--signal", "SIGKILL", sandbox);
    await eventually(() => expect(told(pod)).toContain("Died sandbox"));
  });

  it("what changed while containerd was dead, when it is back", async () => {
    const [kept, killed] = [newPod(), newPod()];
    const sandboxes = await Promise.all([kept, killed].map((pod) => cri.runPodSandbox(pod)));
    const ids = await Promise.all(
      sandboxes.map((sandbox) => cri.runContainer(sandbox, { name: "app", command: lasting })),
    );
    for (const pod of [kept, killed]) await untilTold(pod, ["Started sandbox", "Started app"]);
    const tasks = await containerd.ctr("task", "ls");
    const pid = new RegExp(`${ids[1]}\\s+(\\d+)`).exec(tasks)?.[1];
    await containerd.process.kill();
    await execute("kill", ["-9", pid!]);
    containerd.process.start();
    await untilTold(killed, ["Started sandbox", "Started app", expect.stringMatching(/^Died app/) as never]);
    const later = newPod();
    await eventually(async () => void (await cri.runPodSandbox(later)));
    await untilTold(later, ["Started sandbox"]);
    expect(told(kept)).toEqual(["Started sandbox", "Started app"]);
    await eventually(async () =>
      expect(await agent.metric("nodekeeper_lifecycle_hint_stream_state", `{state="${mode}"}`)).toBe(1),
    );
  });

  it("sixty pods at once, each with all that happened to it", async () => {
    const pods = Array.from({ length: 60 }, newPod);
    const queue = [...pods];
    const work = async () => {
      for (let pod = queue.shift(); pod; pod = queue.shift()) {
        const sandbox = await cri.runPodSandbox(pod);
        const id = await cri.runContainer(sandbox, { name: "app", command: untilStopped(7) });
        await untilTold(pod, ["Started sandbox", "Started app"]);
        await untilReady(pod);
        await cri.stopContainer(id, 60);
        await untilTold(pod, ["Started sandbox", "Started app", "Died app 7"]);
        await cri.removeContainer(id);
        await cri.stopPodSandbox(sandbox);
        await cri.removePodSandbox(sandbox);
      }
    };
    await Promise.all(Array.from({ length: 20 }, work));
    const removed = ["Removed app", "Died sandbox", "Removed sandbox"];
    for (const pod of pods) {
      await eventually(() =>
        expect(told(pod).slice(0, 3)).toEqual(["Started sandbox", "Started app", "Died app 7"]),
      );
      await eventually(() => expect(new Set(told(pod).slice(3))).toEqual(new Set(removed)));
    }
  });

  it("what the commands print", async () => {
    const run = (...args: string[]) => agent.command(...args);
    const pod = newPod();
    const sandbox = await cri.runPodSandbox(pod);
    await cri.runContainer(sandbox, { name: "app", command: exit(9, 1) });
    await eventually(() => expect(told(pod)).toContain("Died app 9"));
    expect(await run("pods")).toMatch(new RegExp(`default\\s+${pod.name}\\s+0/1\\s+(Error|Exit:9)\\s+0`));
    expect(await run("events", pod.name)).toMatch(/ContainerDied .*app .*exit code 9/);
    const [listed] = JSON.parse(await run("pods", "-o", "json")).filter(
      ({ name }: PodSpec) => name === pod.name,
    );
    expect(listed).toMatchObject({ uid: pod.uid, containers: [{ name: "app", exitCode: 9 }] });
  });

  it("after a restart of the agent: what happened meanwhile, after what was emitted before", async () => {
    const pod = newPod();
    const sandbox = await cri.runPodSandbox(pod);
    const id = await cri.runContainer(sandbox, { name: "app", command: lasting });
    await untilTold(pod, ["Started sandbox", "Started app"]);
    await agent.child.kill();
    await containerd.ctr("task", "kill", "--signal", "SIGKILL", id);
    agent.child.start();
    await untilTold(pod, ["Started sandbox", "Started app", "Died app 137"]);
  });

  it("after a restart of the agent in quiet: all pods are in its cache, and the next pod is reported", async () => {
    const kept = newPod();
    const sandbox = await cri.runPodSandbox(kept);
    await cri.runContainer(sandbox, { name: "app", command: lasting });
    await untilTold(kept, ["Started sandbox", "Started app"]);
    const before = await client.getPods();
    await agent.child.kill();
    agent.child.start();
    const fresh = await eventually(() => client.getPods({ selector: { uid: kept.uid }, fresh: true }));
    expect(fresh).toMatchObject([{ uid: kept.uid, containers: [{ name: "app", state: "running" }] }]);
    const names = (pods: readonly PodSpec[]) => pods.map(({ name }) => name).sort();
    expect(names(await client.getPods())).toEqual(names(before));
    // A stream of the killed agent may take the first events.
    await agent.ready();
    const next = newPod();
    await cri.runPodSandbox(next);
    await untilTold(next, ["Started sandbox"]);
  });

  it("with a second subscriber of the runtime's events: every pod is reported, by hints where they are sent to all", async () => {
    const runtime = new CriRuntime({
      endpoint: containerd.socket,
      clock: systemClock,
      log: silentLogger,
      registry: new Registry(),
    });
    const controller = new AbortController();
    const taking = (async () => {
      for await (const _hint of runtime.hints(controller.signal));
    })().catch(() => {});
    const figure = async (name: string) => (await agent.metric(`nodekeeper_lifecycle_${name}`)) ?? 0;
    const pods = 8;
    try {
      // The stream earns trust by a hint that comes before a relist finds the change. On a busy machine not each one does,
      // and a miss keeps the short period for five minutes.
      const trustedBy = performance.now() + 600_000;
      do {
        expect(performance.now()).toBeLessThan(trustedBy);
        const pod = newPod();
        const sandbox = await cri.runPodSandbox(pod);
        await cri.runContainer(sandbox, { name: "app", command: exit(0) });
        await eventually(() => expect(told(pod)).toContain("Died app 0"));
      } while ((await figure("relist_period_seconds")) !== period);
      const before = await figure("hints_total");
      for (let count = 0; count < pods; count++) {
        const pod = newPod();
        const sandbox = await cri.runPodSandbox(pod);
        await cri.runContainer(sandbox, { name: "app", command: exit(count) });
        await eventually(() => expect(told(pod)).toContain(`Died app ${count}`));
      }
      // Of each pod at least: the sandbox started, the container started, and it exited.
      if (period > 1)
        await eventually(async () =>
          expect((await figure("hints_total")) - before).toBeGreaterThanOrEqual(3 * pods),
        );
    } finally {
      controller.abort();
      await taking;
      runtime[Symbol.dispose]();
    }
  });
}
