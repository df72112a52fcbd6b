import { setTimeout as sleep } from "node:timers/promises";
import { type AdminClient, ApiError } from "../admin-client.ts";
import type { ControlPlane } from "../control-plane.ts";
import { container, pod, podsPath } from "./workloads.ts";

// More pods than devices, so that each device that becomes free has a claim that waits for it.
const SLOTS = 6;
const MOST_PODS = 12;

/** What a load came to. */
export interface ClaimLoadCounts {
  pods: number;
  ready: number;
  forced: number;
}

// Half of the pods, at random, ignore SIGTERM: their containers run until the grace period ends, even if the pod is
// deleted by force.
const obedient = ["/bin/sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.1; done"];
const stubborn = ["/bin/sh", "-c", "trap '' TERM; while true; do sleep 0.1; done"];

/** Creates and deletes pods, each with a claim of a template, until `isOver`. Half of them are deleted by force. */
export async function runClaimLoad(
  { admin }: ControlPlane,
  template: string,
  random: () => number,
  isOver: () => boolean,
): Promise<ClaimLoadCounts> {
  const counts: ClaimLoadCounts = { pods: 0, ready: 0, forced: 0 };
  const slot = async (at: number) => {
    for (let number = 0; !isOver(); number++) {
      await untilRoom(admin, isOver);
      const name = `chaos-${at}-${number}`;
      await admin.create(podsPath, pod(name, specOf(template, random)));
      counts.pods++;
      const isHopeless = timeLimit(patienceMs(random));
      if (await isReadyUntil(admin, name, () => isHopeless() || isOver())) {
        counts.ready++;
        await sleep(300 + random() * 2_000);
      }
      const isForced = random() < 0.5;
      if (isForced) counts.forced++;
      await removePod(admin, name, isForced);
    }
  };
  await Promise.all(Array.from({ length: SLOTS }, (_, at) => slot(at)));
  return counts;
}

// Some pods are deleted while their claim is prepared. The kubelet tries a claim that failed again after 60 to 90 s.
function patienceMs(random: () => number): number {
  return random() < 0.3 ? 1_000 + random() * 9_000 : 30_000 + random() * 30_000;
}

function specOf(template: string, random: () => number) {
  const command = random() < 0.5 ? stubborn : obedient;
  return {
    resourceClaims: [{ name: "device", resourceClaimTemplateName: template }],
    containers: [container({ command, resources: { claims: [{ name: "device" }] } })],
    terminationGracePeriodSeconds: 1 + Math.floor(random() * 3),
  };
}

async function untilRoom(admin: AdminClient, isOver: () => boolean): Promise<void> {
  while (!isOver() && (await admin.get(podsPath)).items.length >= MOST_PODS) await sleep(200);
}

function timeLimit(ms: number): () => boolean {
  const endsAt = Date.now() + ms;
  return () => Date.now() > endsAt;
}

async function isReadyUntil(admin: AdminClient, name: string, isOver: () => boolean): Promise<boolean> {
  while (!isOver()) {
    const { status } = await admin.get(`${podsPath}/${name}`);
    if (status.containerStatuses?.[0]?.ready) return true;
    await sleep(200);
  }
  return false;
}

/** Deletes a pod; by force as `kubectl delete --force` does, without waiting for the kubelet. */
async function removePod(admin: AdminClient, name: string, isForced: boolean): Promise<void> {
  try {
    await admin.delete(`${podsPath}/${name}${isForced ? "?gracePeriodSeconds=0" : ""}`);
  } catch (error) {
    // The scheduler's preemption, or a kubelet that found it gone.
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
}
