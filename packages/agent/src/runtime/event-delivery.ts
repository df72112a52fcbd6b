import type { RuntimeVersion } from "./types.ts";

/**
 * Whether a runtime sends each container event to every subscriber. containerd does since 2.0; in 1.7 all subscribers
 * read from one channel, including streams whose reader has ended (containerd/containerd#7318). CRI-O does. False for
 * other runtimes, whose behaviour is unknown.
 */
export function broadcastsEvents({ runtimeName, runtimeVersion }: RuntimeVersion): boolean {
  if (runtimeName === "cri-o") return true;
  const [major = ""] = runtimeVersion.replace(/^v/, "").split(".");
  return runtimeName === "containerd" && /^\d+$/.test(major) && Number(major) >= 2;
}
