import type { PodLifecycleClient, PodStatus } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { expect } from "vitest";
import type { ApiObject } from "../admin-client.ts";
import type { ClusterNode } from "../node.ts";

/** The newest container of a name: "running 3f2a...", "exited 3 91bc...". */
type View = Record<string, Record<string, string>>;

/**
 * Waits until the agent and the kubelet report the same containers for every pod on the node, with the same states and
 * exit codes.
 */
export function untilSameView(node: ClusterNode, client: PodLifecycleClient): Promise<void> {
  return eventually(async () => {
    const before = kubeletView(await node.kubeletServer.get("/pods"));
    const agent = agentView(await client.getPods());
    // A pod that changes in between differs by the time alone.
    expect(kubeletView(await node.kubeletServer.get("/pods"))).toEqual(before);
    expect(agent).toEqual(before);
  });
}

function kubeletView({ items: listed }: ApiObject): View {
  // Go writes an empty list of its own as null.
  const items: ApiObject[] = listed ?? [];
  const pods = items.map(({ metadata, status }) => {
    const statuses: ApiObject[] = [
      ...(status.initContainerStatuses ?? []),
      ...(status.containerStatuses ?? []),
    ];
    const views = statuses.flatMap((each) => {
      const view = kubeletContainer(each);
      return view ? [[each.name, view]] : [];
    });
    return [metadata.uid, Object.fromEntries(views)];
  });
  return Object.fromEntries(pods.filter(([, views]) => Object.keys(views).length > 0));
}

// While a container waits for its next start, the last one is what the runtime has of it.
function kubeletContainer({ containerID, state, lastState }: ApiObject): string | undefined {
  const idOf = (id: string) => id.replace("containerd://", "");
  if (state.running) return `running ${idOf(containerID)}`;
  const ended = state.terminated ?? lastState?.terminated;
  return ended && `exited ${ended.exitCode} ${idOf(ended.containerID)}`;
}

function agentView(pods: readonly PodStatus[]): View {
  const views = pods.map(({ uid, containers }) => {
    const newest = new Map<string, PodStatus["containers"][number]>();
    for (const each of containers) {
      const known = newest.get(each.name);
      if (!known || each.attempt > known.attempt) newest.set(each.name, each);
    }
    const words = [...newest].map(([name, { state, exitCode, id }]) => [
      name,
      state === "exited" ? `exited ${exitCode} ${id}` : `${state} ${id}`,
    ]);
    return [uid, Object.fromEntries(words)];
  });
  return Object.fromEntries(views.filter(([, words]) => Object.keys(words).length > 0));
}
