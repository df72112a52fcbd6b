import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PodLifecycleClient, type PodLifecycleEvent, type PodList } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import { seededRandom } from "../../packages/testing/src/runtime/seeded-random.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { Containerd } from "./support/containerd.ts";
import { startControlPlane } from "./support/control-plane.ts";
import { CriClient, type PodSpec } from "./support/cri-client.ts";
import { FollowedLog } from "./support/followed-log.ts";
import { controlPlaneParts, missingParts } from "./support/parts.ts";

const NODE = "worker-1";
const SECONDS = Number(process.env.E2E_LIFECYCLE_CHAOS_SECONDS ?? 60);
const SEED = Number(process.env.E2E_LIFECYCLE_CHAOS_SEED ?? Date.now() % 1_000_000);
const WORKERS = 5;
const PATIENCE_MS = 120_000;

const missing = process.getuid?.() !== 0 || missingParts(...controlPlaneParts, "runc", "busybox");

/** What was done with one container or sandbox, as the runtime confirmed it: the record that the agent is held to. */
interface Life {
  pod: PodSpec;
  id: string;
  kind: "container" | "sandbox";
  /** With which code it was made to exit; undefined where that is left to chance, and for a sandbox. */
  exitCode: number | undefined;
  /** How often containerd had been killed when it was made. */
  killsBefore: number;
  isOver: boolean;
  isRemoved: boolean;
  /** Whether the agent has reported it: then it has to report the rest, too. */
  wasSeen: boolean;
}

// containerd 1.7 gives each event to one subscriber, 2.x to all.
describe.each(["containerd", "newContainerd"] as const)("chaos on %s", (part) => {
  const ends: (() => Promise<unknown> | unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  it.skipIf(missing || missingParts(part))(
    `log and cache equal what was done, over kills of agent and containerd (seed ${SEED})`,
    async () => {
      const random = seededRandom(SEED);
      const cluster = await startControlPlane();
      ends.push(() => cluster.stop());
      await cluster.addNode(NODE);
      const containerd = await Containerd.start(join(cluster.directory, "containerd"), part);
      ends.push(() => containerd.stop());
      const cri = new CriClient(containerd);
      ends.push(() => cri.close());
      const agent = await AgentProcess.start(cluster, {
        nodeName: NODE,
        flags: { "runtime-endpoint": `unix://${containerd.socket}` },
      });
      ends.push(() => agent.child.stop());
      await agent.ready();
      const client = new PodLifecycleClient({ socket: agent.apiSocket });
      ends.push(() => client.close());

      const watched = new FollowedLog(client);
      ends.push(() => watched.stop());
      await eventually(() => expect(watched.snapshots).toBe(1));
      const record = new Record(watched, `${part}-${SEED}`);
      const endsAt = Date.now() + SECONDS * 1_000;
      const workers = Array.from({ length: WORKERS }, () =>
        live({ cri, containerd, record, random, endsAt }),
      );
      const kills = await kill({ agent, containerd, record, random, endsAt });
      await Promise.all(workers);

      await agent.ready();
      await eventually(() => record.expectLog());
      await eventually(async () => record.expectCache(await client.listPods()));
      // What a consumer was given over all restarts is what the log has: nothing twice, nothing left out.
      const kept: PodLifecycleEvent[] = [];
      for await (const item of client.watch({ since: 0, stopAtEnd: true }))
        if (item.kind === "event") kept.push(item.event);
      expect(watched.events.map(keyOf)).toEqual(kept.map(keyOf));
      expect(kept.map(({ sequence }) => sequence)).toEqual(kept.map((_, at) => kept[0]!.sequence + at));
      expect(watched.snapshots).toBe(1);
      const misses = await agent.metric("nodekeeper_lifecycle_hint_misses_total");
      console.log(
        `${part}: ${SECONDS} s, seed ${SEED}: ${record.summary()}, ${kept.length} events, ` +
          `${kills.agent} kills of the agent, ${kills.containerd} of containerd; ${misses} changes without a hint since the last start`,
      );
    },
    SECONDS * 1_000 + 600_000,
  );
});

class Record {
  readonly #lives = new Map<string, Life>();
  readonly #watched: FollowedLog;
  readonly #name: string;
  #pods = 0;
  containerdKills = 0;
  /** Pods of which a call failed: the runtime may have made what it gave no ID of. */
  readonly unsure = new Set<string>();

  constructor(watched: FollowedLog, name: string) {
    this.#watched = watched;
    this.#name = name;
  }

  newPod(): PodSpec {
    const name = `chaos-${++this.#pods}`;
    return { uid: `${this.#name}-${name}`, name, namespace: "default" };
  }

  add(pod: PodSpec, id: string, kind: Life["kind"]): Life {
    const life: Life = {
      pod,
      id,
      kind,
      exitCode: undefined,
      killsBefore: this.containerdKills,
      isOver: false,
      isRemoved: false,
      wasSeen: false,
    };
    this.#lives.set(id, life);
    return life;
  }

  eventsOf(id: string): PodLifecycleEvent[] {
    return this.#watched.byContainer.get(id) ?? [];
  }

  /** Waits until the agent has reported this of a container. */
  async untilTold(life: Life, type: PodLifecycleEvent["type"]): Promise<void> {
    await eventually(() => expect(this.eventsOf(life.id).map((event) => event.type)).toContain(type));
    life.wasSeen = true;
  }

  summary(): string {
    const lives = [...this.#lives.values()];
    const containers = lives.filter(({ kind }) => kind === "container");
    const exits = containers.filter(({ isOver }) => isOver).length;
    return `${this.#pods} pods, ${containers.length} containers, ${exits} exits`;
  }

  expectLog(): void {
    for (const [id, events] of this.#watched.byContainer) {
      const types = events.map(({ type }) => type.replace("Container", "")).join(" ");
      expect(types, id).toMatch(/^(Started)?( ?Died)?( ?Removed)?$/);
      const life = this.#lives.get(id);
      if (!life) expect(this.unsure, `${id} was never made`).toContain(events[0]?.pod.uid);
    }
    for (const life of this.#lives.values()) {
      const events = this.eventsOf(life.id);
      const types = events.map(({ type }) => type.replace("Container", ""));
      const what = `${life.pod.name} ${life.kind} ${life.id}: ${types.join(" ")}`;
      if (life.wasSeen || !life.isRemoved) expect(types.length, what).toBeGreaterThan(0);
      if (types.length === 0) continue;
      expect(types.includes("Died"), what).toBe(life.isOver);
      expect(types.includes("Removed"), what).toBe(life.isRemoved);
      const died = events.find(({ type }) => type === "ContainerDied");
      // One that was removed before it was seen to exit takes its code with it, unless an event had it.
      if (died && (life.wasSeen || !life.isRemoved)) this.#expectExitCode(life, died.exitCode, what);
    }
  }

  expectCache({ pods, problems }: PodList): void {
    expect(problems).toEqual([]);
    const cached = new Map<string, string>();
    for (const { uid, sandboxes, containers } of pods) {
      for (const { id, state } of [...sandboxes, ...containers])
        if (this.#isKnown(uid, id)) cached.set(id, state);
      for (const { id, state, exitCode } of containers) {
        const life = this.#lives.get(id);
        if (life && state === "exited") this.#expectExitCode(life, exitCode, `${id} in the cache`);
      }
    }
    const left = [...this.#lives.values()].filter(({ isRemoved }) => !isRemoved);
    const expected = new Map(left.map(({ id, isOver }) => [id, isOver ? "exited" : "running"]));
    expect(new Map([...cached].sort())).toEqual(new Map([...expected].sort()));
  }

  removedWith(sandbox: Life): void {
    for (const life of this.#lives.values()) {
      if (life.pod.uid === sandbox.pod.uid) Object.assign(life, { isOver: true, isRemoved: true });
    }
  }

  // A containerd that is killed while it takes a container's exit in finds no task when it is back, and says 255.
  #expectExitCode(life: Life, actual: number | undefined, what: string): void {
    if (life.kind === "sandbox" || life.exitCode === undefined) return;
    const isUnknown = actual === 255 && this.containerdKills > life.killsBefore;
    if (!isUnknown) expect(actual, what).toBe(life.exitCode);
  }

  #isKnown(podUid: string, id: string): boolean {
    return this.#lives.has(id) || !this.unsure.has(podUid);
  }
}

interface Chaos {
  cri: CriClient;
  containerd: Containerd;
  record: Record;
  random: () => number;
  endsAt: number;
}

/** Makes pods and ends them, one after the other, as a kubelet would; some of them too quickly to be seen. */
async function live({ cri, containerd, record, random, endsAt }: Chaos): Promise<void> {
  while (Date.now() < endsAt) {
    const pod = record.newPod();
    const make = (work: (attempt: number) => Promise<string>) =>
      untilDone(work, () => record.unsure.add(pod.uid));
    const sandbox = record.add(pod, await make((attempt) => cri.runPodSandbox(pod, attempt)), "sandbox");
    const isRude = random() < 0.2;
    if (!isRude) await record.untilTold(sandbox, "ContainerStarted");
    for (let count = Math.ceil(random() * 3); count > 0; count--) {
      const code = Math.floor(random() * 100);
      const isLasting = random() < 0.5;
      const seconds = isRude ? 0 : Math.floor(random() * 3);
      const command = isLasting
        ? ["/bin/sleep", "1000000"]
        : ["/bin/sh", "-c", `sleep ${seconds}; exit ${code}`];
      const name = `c${count}`;
      const id = await make((attempt) => cri.createContainer(sandbox.id, { name, attempt, command }));
      const container = record.add(pod, id, "container");
      const isStarted = await untilDone(() => start(cri, id));
      if (isLasting && isStarted) {
        if (random() < 0.7 && !isRude) await record.untilTold(container, "ContainerStarted");
        await untilDone(() => killTask(containerd, id));
      }
      if (isStarted && !isRude) container.exitCode = isLasting ? 137 : code;
      container.isOver = true;
      if (!isRude) await record.untilTold(container, "ContainerDied");
      // Every now and then something stays to the end.
      if (random() < 0.1) continue;
      await untilDone(() => cri.removeContainer(id));
      container.isRemoved = true;
      if (container.wasSeen) await record.untilTold(container, "ContainerRemoved");
    }
    if (random() < 0.15) continue;
    await untilDone(() => cri.stopPodSandbox(sandbox.id));
    sandbox.isOver = true;
    await untilDone(() => cri.removePodSandbox(sandbox.id));
    record.removedWith(sandbox);
  }
}

/** Kills the agent and containerd, in turn and at once, and starts them again. Both run at the end. */
async function kill({
  agent,
  containerd,
  record,
  random,
  endsAt,
}: Omit<Chaos, "cri"> & { agent: AgentProcess }) {
  const kills = { agent: 0, containerd: 0 };
  while (Date.now() < endsAt) {
    await sleep(2_000 + random() * 6_000);
    const which = random();
    const victims = [
      ...(which < 0.65 ? [{ name: "agent", child: agent.child } as const] : []),
      ...(which > 0.35 ? [{ name: "containerd", child: containerd.process } as const] : []),
    ];
    await Promise.all(
      victims.map(async ({ name, child }) => {
        kills[name]++;
        if (name === "containerd") record.containerdKills++;
        await child.kill();
        await sleep(random() * 3_000);
        child.start();
      }),
    );
  }
  return kills;
}

/** Whether the container was started; one whose start containerd was killed in has exited. */
async function start(cri: CriClient, id: string): Promise<boolean> {
  try {
    await cri.startContainer(id);
    return true;
  } catch (error) {
    if (/CONTAINER_EXITED/.test(String(error))) return false;
    if (/CONTAINER_RUNNING/.test(String(error))) return true;
    throw error;
  }
}

/** Ends a container behind the back of CRI. */
async function killTask(containerd: Containerd, id: string): Promise<void> {
  try {
    await containerd.ctr("task", "kill", "--signal", "SIGKILL", id);
  } catch (error) {
    // An earlier try has done it.
    if (!/already finished|not found/.test(String(error))) throw error;
  }
}

/** Tries again, with the next attempt number, until the runtime says yes; `onFailure` after each no. */
async function untilDone<T>(work: (attempt: number) => Promise<T>, onFailure = () => {}): Promise<T> {
  const endsAt = Date.now() + PATIENCE_MS;
  for (let attempt = 0; ; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      onFailure();
      if (Date.now() > endsAt) throw error;
      await sleep(200);
    }
  }
}

function keyOf({ sequence, type, container, exitCode }: PodLifecycleEvent): string {
  return `${sequence} ${type} ${container?.id} ${exitCode}`;
}
