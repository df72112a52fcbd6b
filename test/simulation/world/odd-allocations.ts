import { isRecord, type KubeObject, recordOf, recordsOf } from "@nodekeeper/core/kube";
import { ATTACHED, FAILED } from "./binding-driver.ts";

const OTHER_NODE = "worker-2";

/** Returns an allocation of a device of another node, which the scheduler has nominated for the pod since. */
export function elsewhere(driver: string, allocationTimestamp: string) {
  const device = {
    request: "gpu",
    driver,
    pool: OTHER_NODE,
    device: "elsewhere-0",
    bindingConditions: [ATTACHED],
    bindingFailureConditions: [FAILED],
  };
  return { allocationTimestamp, devices: { results: [device] }, nodeSelector: onNode(OTHER_NODE) };
}

/** Returns whether a claim is allocated devices of another node. */
export function isElsewhere({ status }: KubeObject): boolean {
  const { devices } = recordOf(recordOf(status).allocation);
  return recordsOf(recordOf(devices).results).some(({ pool }) => pool === OTHER_NODE);
}

export function onNode(name: string) {
  return {
    nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: [name] }] }],
  };
}

/** Returns opaque parameters of a claim whose keys are not in sorted order. */
export function unsorted(driver: string) {
  return [{ source: "FromClaim", requests: [], opaque: { driver, parameters: { speed: "fast", lanes: 4 } } }];
}

/**
 * Returns the response to a server-side apply to the status of a claim with such parameters: kube-apiserver sorts the keys,
 * and then refuses its own change. Undefined if it accepts one.
 */
export function refusedApply({ metadata: { name = "" }, status }: KubeObject) {
  const { devices } = recordOf(recordOf(status).allocation);
  const isUnsorted = recordsOf(recordOf(devices).config).some(
    ({ opaque }) => isRecord(opaque) && opaque.parameters !== undefined,
  );
  if (!isUnsorted) return undefined;
  const message = "Invalid value: {}: field is immutable";
  return {
    status: 422,
    body: {
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      reason: "Invalid",
      message: `ResourceClaim.resource.k8s.io "${name}" is invalid: status.allocation: ${message}`,
      details: {
        group: "resource.k8s.io",
        kind: "ResourceClaim",
        name,
        causes: [{ reason: "FieldValueInvalid", message, field: "status.allocation" }],
      },
      code: 422,
    },
  };
}
