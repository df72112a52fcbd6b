import { isDnsLabel, rawNumber } from "@nodekeeper/core/lib";
import type { Device } from "../devices/index.ts";
import { baseRequest, type DeviceIdentity } from "./allocation.ts";
import type { ClaimReference } from "./claim-reader.ts";

/** Returns a device as its driver last reported it. Undefined if it did not. */
export type DeviceReader = (driver: string, pool: string, device: string) => Device | undefined;

/**
 * Metadata of a claim's devices of one driver, for the containers that use them: JSON objects by request, without a
 * subrequest. The objects are those of metadata.resource.k8s.io without kind and apiVersion. They stay
 * serialized, because they may contain integers beyond 2^53.
 */
export type DeviceMetadata = Record<string, string>;

/** A claim whose devices have metadata. */
export interface ClaimWithMetadata extends ClaimReference {
  driver: string;
  /** Name in the pod's `spec.resourceClaims`, if the claim was generated from a template. Undefined otherwise. */
  podClaimName?: string | undefined;
}

/** The bind mount of a request's metadata, in the format of a CDI file. */
export interface MetadataMount {
  hostPath: string;
  containerPath: string;
  options: string[];
}

/** The annotation of claims with their `podClaimName`. */
export const POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name";

const GROUP = "metadata.resource.k8s.io";
// Most recent first, as upstream's helper writes them; their fields are the same.
const versions = ["v1beta1", "v1alpha1"] as const;
// Source: ContainerDir of k8s.io/dynamic-resource-allocation/api/metadata.
const CONTAINER_DIRECTORY = "/var/run/kubernetes.io/dra-device-attributes";

/**
 * Returns the metadata of devices, with the attributes that their driver last reported. Source:
 * https://github.com/kubernetes/enhancements/tree/master/keps/sig-node/5304-dra-attributes-downward-api
 */
export function metadataOf(
  { driver, namespace, name, uid, podClaimName }: ClaimWithMetadata,
  devices: readonly DeviceIdentity[],
  reported: DeviceReader,
): DeviceMetadata {
  const requests = [...new Set(devices.map(({ request }) => request))];
  const body = (request: string) => ({
    // The files of a prepared claim do not change: the generation is that of the first write.
    metadata: { name, namespace, uid, generation: 1 },
    podClaimName,
    requests: [
      {
        name: request,
        devices: devices
          .filter((device) => device.request === request)
          .map(({ pool, device }) => ({
            driver,
            pool,
            name: device,
            attributes: reported(driver, pool, device)?.attributes,
          })),
      },
    ],
  });
  const exactly = (_: string, value: unknown) =>
    typeof value === "bigint" ? rawNumber(value.toString()) : value;
  return Object.fromEntries(
    requests.map((request) => [baseRequest(request), JSON.stringify(body(request), exactly)]),
  );
}

/** Returns the text of a metadata file: a stream of the same object in each version. */
export function metadataFile(body: string): string {
  const head = (version: string) =>
    JSON.stringify({ kind: "DeviceMetadata", apiVersion: `${GROUP}/${version}` });
  return versions.map((version) => `${head(version).slice(0, -1)},${body.slice(1)}\n`).join("");
}

/**
 * Returns the mounts of a claim's metadata by request.
 * @param fileOf returns the host's file of a request
 */
export function metadataMounts(
  claim: ClaimWithMetadata,
  metadata: DeviceMetadata,
  fileOf: (request: string) => string,
): Map<string, MetadataMount> {
  return new Map(
    Object.keys(metadata).map((request) => [
      request,
      { hostPath: fileOf(request), containerPath: metadataPath(claim, request), options: ["ro", "bind"] },
    ]),
  );
}

/**
 * Returns the path of a request's metadata in a container. It contains `podClaimName` if the claim was generated from a
 * template, otherwise the claim's own name. `podClaimName` comes from an annotation that any client can set when it
 * creates a claim, so it is used only if it is a DNS label.
 */
export function metadataPath({ driver, name, podClaimName }: ClaimWithMetadata, request: string): string {
  const claim =
    podClaimName !== undefined && isDnsLabel(podClaimName)
      ? `resourceclaimtemplates/${podClaimName}`
      : `resourceclaims/${name}`;
  return `${CONTAINER_DIRECTORY}/${claim}/${request}/${driver}-metadata.json`;
}
