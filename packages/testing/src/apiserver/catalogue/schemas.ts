import { atomic, listBy, map, set } from "../fields/schema.ts";

// List and map types of the built-in kinds, from the API reference (listType, listMapKey, structType).

const metadata = map({ ownerReferences: listBy("uid", atomic), finalizers: set });

const conditions = listBy("type");

/** What every kind has. */
export const objectSchema = map({ metadata });

export const nodeSchema = map({
  metadata,
  spec: map({ taints: atomic, podCIDRs: set }),
  status: map({ conditions, addresses: listBy("type"), images: atomic, volumesInUse: atomic }),
});

const container = map({
  env: listBy("name"),
  ports: listBy(["containerPort", "protocol"], undefined, { protocol: "TCP" }),
  volumeMounts: listBy("mountPath"),
  volumeDevices: listBy("devicePath"),
  resources: map({ claims: listBy("name") }),
});

export const podSchema = map({
  metadata,
  spec: map({
    containers: listBy("name", container),
    initContainers: listBy("name", container),
    ephemeralContainers: listBy("name", container),
    volumes: listBy("name"),
    imagePullSecrets: listBy("name"),
    hostAliases: listBy("ip"),
    topologySpreadConstraints: listBy(["topologyKey", "whenUnsatisfiable"]),
    schedulingGates: listBy("name"),
    resourceClaims: listBy("name"),
    nodeSelector: atomic,
    tolerations: atomic,
  }),
  status: map({ conditions, podIPs: listBy("ip"), resourceClaimStatuses: listBy("name") }),
});

export const disruptionBudgetSchema = map({
  metadata,
  spec: map({ selector: atomic }),
  status: map({ conditions }),
});

export const eventSchema = map({ metadata, involvedObject: atomic, related: atomic, source: atomic });

/**
 * Katalyst's CRD has no list types, so its lists are replaced whole; the lists of resource packages and pools of its
 * newer versions are keyed.
 */
export const nodeResourceSchema = map({
  metadata,
  status: map({
    resources: map({ resourcePackages: listBy("packageName"), resourcePools: listBy("poolName") }),
  }),
});

export const resourceSliceSchema = map({ metadata, spec: map({ devices: atomic, nodeSelector: atomic }) });

export const resourceClaimSchema = map({
  metadata,
  status: map({ reservedFor: listBy("uid", atomic), devices: listBy(["driver", "device", "pool"]) }),
});

export const customResourceDefinitionSchema = map({
  metadata,
  spec: map({ versions: atomic }),
  status: map({ conditions }),
});
