import { RuntimeEndpointInvalid } from "@nodekeeper/api/errors";
import { type Clock, checkSocketPath, type ProbeResult, probeSocket, quote } from "@nodekeeper/core/lib";

/** Well-known CRI sockets, in the order in which they are probed. */
export const usualRuntimeEndpoints: readonly string[] = [
  "/run/containerd/containerd.sock",
  "/run/crio/crio.sock",
  "/run/k3s/containerd/containerd.sock",
  "/run/k0s/containerd.sock",
  "/var/snap/microk8s/common/run/containerd.sock",
  "/var/run/cri-dockerd.sock",
];

/** Probe result of a path. */
export interface LookedAtEndpoint {
  path: string;
  found: ProbeResult;
}

export interface FoundEndpoint {
  /** The first socket with a listening process. Undefined if there is none. */
  path: string | undefined;
  /**
   * Results for all paths in order, for messages. "refused" means that the socket exists but no process is
   * listening.
   */
  lookedAt: readonly LookedAtEndpoint[];
}

/**
 * Parses a container runtime endpoint in the kubelet's format. Returns the path of the socket.
 * @param endpoint `unix:///path`, `unix:/path` or an absolute path
 * @throws `invalid` for other formats, and for paths that exceed the kernel's limit
 */
export function parseRuntimeEndpoint(endpoint: string): string {
  const path = endpoint.replace(/^unix:(\/\/)?(?=\/(?!\/))/, "");
  if (!path.startsWith("/")) {
    throw new RuntimeEndpointInvalid({ endpoint: quote(endpoint) });
  }
  checkSocketPath(path);
  return path;
}

/** Probes the given or well-known paths for a socket with a listening process. Never rejects. */
export async function findRuntimeEndpoint(
  clock: Clock,
  candidates: readonly string[] = usualRuntimeEndpoints,
): Promise<FoundEndpoint> {
  const lookedAt = await Promise.all(
    candidates.map(async (path) => ({ path, found: await probeSocket(clock, path) })),
  );
  return { path: lookedAt.find(({ found }) => found === "accepts")?.path, lookedAt };
}
