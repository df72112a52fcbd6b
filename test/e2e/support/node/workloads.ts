import { eventually } from "@nodekeeper/testing/until";
import { ApiError, type ApiObject } from "../admin-client.ts";
import { imageName } from "../container-image.ts";
import type { ControlPlane } from "../control-plane.ts";

export const podsPath = "/api/v1/namespaces/default/pods";
export const deploymentsPath = "/apis/apps/v1/namespaces/default/deployments";

/** Ends at SIGTERM, as a good program does. */
export const wellBehaved = ["/bin/sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.1; done"];

/** A container of the one image there is; `changes` are its other fields. */
export function container(changes: ApiObject = {}): ApiObject {
  return { name: "main", image: imageName, command: wellBehaved, ...changes };
}

/** A pod of one container unless `spec` has others. */
export function pod(name: string, spec: ApiObject = {}, metadata: ApiObject = {}): ApiObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", ...metadata },
    spec: { terminationGracePeriodSeconds: 5, containers: [container()], ...spec },
  };
}

/** A Deployment whose pods have the label "app" with its name. */
export function deployment(name: string, replicas: number, spec: ApiObject = {}): ApiObject {
  const labels = { app: name };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: pod("", spec).spec },
    },
  };
}

/** Waits until exactly `count` pods match a label selector, all ready and none terminating. Returns the pods. */
export function untilReady({ admin }: ControlPlane, selector: string, count: number): Promise<ApiObject[]> {
  return eventually(async () => {
    const { items } = await admin.get(`${podsPath}?labelSelector=${encodeURIComponent(selector)}`);
    const states = (items as ApiObject[]).map(({ metadata, status }) => {
      const waiting = (status.containerStatuses ?? []).map(({ state }: ApiObject) => state.waiting?.message);
      return { name: metadata.name, phase: status.phase, isReady: isReady({ metadata, status }), waiting };
    });
    if (states.length !== count || states.some((state) => !state.isReady))
      throw new Error(`not ${count} ready pods of ${selector}: ${JSON.stringify(states)}`);
    return items;
  });
}

/** Waits until a pod in the default namespace is ready. Returns the pod. */
export function untilPodReady({ admin }: ControlPlane, name: string): Promise<ApiObject> {
  return eventually(async () => {
    const found = await admin.get(`${podsPath}/${name}`);
    if (!isReady(found)) throw new Error(`${name} is not ready: ${JSON.stringify(found.status)}`);
    return found;
  });
}

/** Waits until a pod of the default namespace is deleted. */
export function untilDeleted({ admin }: ControlPlane, name: string): Promise<void> {
  return eventually(async () => {
    const found = await admin.get(`${podsPath}/${name}`).catch((error) => {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    });
    if (found) throw new Error(`${name} is still there: ${JSON.stringify(found.status)}`);
  });
}

function isReady({ metadata, status }: ApiObject): boolean {
  const ready = status.conditions?.some(
    ({ type, status }: ApiObject) => type === "Ready" && status === "True",
  );
  return Boolean(ready) && metadata.deletionTimestamp === undefined;
}
