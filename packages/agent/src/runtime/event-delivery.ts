import type { RuntimeVersion } from "./types.ts";

/**
 * Whether every subscriber of a runtime's events gets all of them. containerd does so from 2.0 on; in 1.7 all
 * subscribers take from one channel, streams whose reader is dead included (containerd/containerd#7318). CRI-O always
 * does. Of other runtimes it is not known, and the answer is false.
 */
export function broadcastsEvents({ runtimeName, runtimeVersion }: RuntimeVersion): boolean {
  if (runtimeName === "cri-o") return true;
  const [major = ""] = runtimeVersion.replace(/^v/, "").split(".");
  return runtimeName === "containerd" && /^\d+$/.test(major) && Number(major) >= 2;
}
