import type { ApiObject } from "../admin-client.ts";
import type { ControlPlane } from "../control-plane.ts";
import { container } from "./workloads.ts";

export const resources = "/apis/resource.k8s.io/v1";

/** Prints which device files its container has, and which variables of them, and stays. */
const showsDevices = [
  "/bin/sh",
  "-c",
  "env | grep ^ACC; ls /dev | grep ^acc; echo ready; trap 'exit 0' TERM; while true; do sleep 0.1; done",
];

/** A DeviceClass of all devices of a driver, called like it; `parameters` are its opaque configuration. */
export async function createDeviceClass(
  { admin }: ControlPlane,
  driver: string,
  parameters?: ApiObject,
): Promise<void> {
  await admin.create(`${resources}/deviceclasses`, {
    apiVersion: "resource.k8s.io/v1",
    kind: "DeviceClass",
    metadata: { name: driver },
    spec: {
      selectors: [{ cel: { expression: `device.driver == "${driver}"` } }],
      ...(parameters ? { config: [{ opaque: { driver, parameters } }] } : {}),
    },
  });
}

export interface ClaimOptions {
  /** Default 1. */
  count?: number;
  /** The opaque configuration. */
  parameters?: ApiObject;
  /** Further fields of the request. */
  exactly?: ApiObject;
}

/** The spec of a claim with one request, "accelerators", of a driver's class. */
export function claimSpec(driver: string, { count = 1, parameters, exactly }: ClaimOptions = {}): ApiObject {
  const config = parameters ? [{ requests: ["accelerators"], opaque: { driver, parameters } }] : [];
  const requests = [{ name: "accelerators", exactly: { deviceClassName: driver, count, ...exactly } }];
  return { devices: { requests, config } };
}

export async function createClaimTemplate(
  { admin }: ControlPlane,
  name: string,
  spec: ApiObject,
): Promise<void> {
  await admin.create(`${resources}/namespaces/default/resourceclaimtemplates`, {
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaimTemplate",
    metadata: { name },
    spec: { spec },
  });
}

/** The spec of a pod that prints what it got of one claim: of a template's, or one that pods share. */
export function claiming(
  source: { resourceClaimTemplateName: string } | { resourceClaimName: string },
): ApiObject {
  return {
    resourceClaims: [{ name: "devices", ...source }],
    containers: [container({ command: showsDevices, resources: { claims: [{ name: "devices" }] } })],
    terminationGracePeriodSeconds: 1,
  };
}
