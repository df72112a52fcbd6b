import {
  type Clock,
  checkSocketPath,
  NodekeeperError,
  type ProbeResult,
  probeSocket,
  quote,
} from "@nodekeeper/core/lib";

/** Where container runtimes serve CRI, in the order in which they are looked for. */
export const usualRuntimeEndpoints: readonly string[] = [
  "/run/containerd/containerd.sock",
  "/run/crio/crio.sock",
  "/run/k3s/containerd/containerd.sock",
  "/run/k0s/containerd.sock",
  "/var/snap/microk8s/common/run/containerd.sock",
  "/var/run/cri-dockerd.sock",
];

/** What was found at one path. */
export interface LookedAtEndpoint {
  path: string;
  found: ProbeResult;
}

export interface FoundEndpoint {
  /** The first socket on which a process listens; undefined where there is none. */
  path: string | undefined;
  /** Every path in order, for messages: "refused" means that a socket is there and its process is not. */
  lookedAt: readonly LookedAtEndpoint[];
}

/**
 * The path of the socket that an endpoint names, as the kubelet writes them.
 * @param endpoint `unix:///path`, `unix:/path` or an absolute path
 * @throws `invalid` where it is anything else, or longer than the kernel takes
 */
export function parseRuntimeEndpoint(endpoint: string): string {
  const path = endpoint.replace(/^unix:(\/\/)?(?=\/(?!\/))/, "");
  if (!path.startsWith("/")) {
    throw new NodekeeperError(
      "invalid",
      `runtime endpoint ${quote(endpoint)} must be unix:///path or an absolute path`,
    );
  }
  checkSocketPath(path);
  return path;
}

/** Looks at the usual places, or those given, for a socket on which a process listens. Never rejects. */
export async function findRuntimeEndpoint(
  clock: Clock,
  candidates: readonly string[] = usualRuntimeEndpoints,
): Promise<FoundEndpoint> {
  const lookedAt = await Promise.all(
    candidates.map(async (path) => ({ path, found: await probeSocket(clock, path) })),
  );
  return { path: lookedAt.find(({ found }) => found === "accepts")?.path, lookedAt };
}
