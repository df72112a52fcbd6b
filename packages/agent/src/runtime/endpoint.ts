import {
  type Clock,
  checkSocketPath,
  NodekeeperError,
  type ProbeResult,
  probeSocket,
  quote,
} from "@nodekeeper/core/lib";

/** Well-known CRI sockets, in the order in which they are tried. */
export const usualRuntimeEndpoints: readonly string[] = [
  "/run/containerd/containerd.sock",
  "/run/crio/crio.sock",
  "/run/k3s/containerd/containerd.sock",
  "/run/k0s/containerd.sock",
  "/var/snap/microk8s/common/run/containerd.sock",
  "/var/run/cri-dockerd.sock",
];

/** Probe result for one path. */
export interface LookedAtEndpoint {
  path: string;
  found: ProbeResult;
}

export interface FoundEndpoint {
  /** The first socket on which a process listens; undefined if there is none. */
  path: string | undefined;
  /** Results for every path in order, for messages: "refused" means that the socket exists but no process listens. */
  lookedAt: readonly LookedAtEndpoint[];
}

/**
 * Parses a container runtime endpoint in the kubelet's format. Returns the path of the socket.
 * @param endpoint `unix:///path`, `unix:/path` or an absolute path
 * @throws `invalid` for other formats, and for paths longer than the kernel supports
 */
export function parseRuntimeEndpoint(endpoint: string): string {
  const path = endpoint.replace(/^unix:(\/\/)?(?=\/(?!\/))/, "");
  if (!path.startsWith("/")) {
    throw new NodekeeperError(
      "invalid",
      `runtime endpoint ${quote(endpoint)} must be unix:///path or an absolute path`,
      { id: "NK1402" },
    );
  }
  checkSocketPath(path);
  return path;
}

/** Probes the well-known or given paths for a socket on which a process listens. Never rejects. */
export async function findRuntimeEndpoint(
  clock: Clock,
  candidates: readonly string[] = usualRuntimeEndpoints,
): Promise<FoundEndpoint> {
  const lookedAt = await Promise.all(
    candidates.map(async (path) => ({ path, found: await probeSocket(clock, path) })),
  );
  return { path: lookedAt.find(({ found }) => found === "accepts")?.path, lookedAt };
}
