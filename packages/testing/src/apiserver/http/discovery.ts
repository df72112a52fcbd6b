import type { Catalogue } from "../catalogue/catalogue.ts";
import type { ResourceDefinition } from "../catalogue/definition.ts";

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/** Media type of aggregated discovery. */
export const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

interface GroupVersions {
  group: string;
  versions: string[];
}

function groupsOf(catalogue: Catalogue): GroupVersions[] {
  const groups = new Map<string, Set<string>>([["authorization.k8s.io", new Set(["v1"])]]);
  for (const { group, versions } of catalogue.all()) {
    const known = groups.get(group) ?? new Set();
    for (const { name } of versions) known.add(name);
    groups.set(group, known);
  }
  return [...groups].map(([group, versions]) => ({ group, versions: [...versions] }));
}

/** Returns `/api`. */
export function coreVersions(address: string): unknown {
  return {
    kind: "APIVersions",
    versions: ["v1"],
    serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: address }],
  };
}

/** Returns `/apis`. */
export function groupList(catalogue: Catalogue): unknown {
  const groups = groupsOf(catalogue).filter(({ group }) => group !== "");
  return { kind: "APIGroupList", apiVersion: "v1", groups: groups.map(describeGroup) };
}

/** Returns `/apis/<group>`. Undefined for an unknown group. */
export function groupDocument(catalogue: Catalogue, name: string): unknown {
  const group = groupsOf(catalogue).find((candidate) => candidate.group === name && name !== "");
  return group && { kind: "APIGroup", apiVersion: "v1", ...describeGroup(group) };
}

function describeGroup({ group, versions }: GroupVersions) {
  const all = versions.map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions: all, preferredVersion: all[0] };
}

/** Returns `/api/v1` or `/apis/<group>/<version>`. Undefined if it is not served. */
export function resourceList(catalogue: Catalogue, group: string, version: string): unknown {
  const served = catalogue
    .all()
    .filter((definition) => definition.group === group && hasVersion(definition, version));
  const resources: unknown[] = served.flatMap((definition) => describeResource(definition));
  if (group === "authorization.k8s.io" && version === "v1") resources.push(accessReview);
  if (resources.length === 0) return undefined;
  const groupVersion = group ? `${group}/${version}` : version;
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources };
}

const accessReview = {
  name: "selfsubjectaccessreviews",
  singularName: "selfsubjectaccessreview",
  namespaced: false,
  kind: "SelfSubjectAccessReview",
  verbs: ["create"],
};

function describeResource(definition: ResourceDefinition): unknown[] {
  const { plural, singular, namespaced, kind, shortNames, categories } = definition;
  const main = {
    name: plural,
    singularName: singular,
    namespaced,
    kind,
    verbs: VERBS,
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories ? { categories } : {}),
  };
  const below = subresourcesOf(definition).map((subresource) => ({
    name: `${plural}/${subresource.name}`,
    singularName: "",
    namespaced,
    ...subresource.kind,
    verbs: subresource.verbs,
  }));
  return [main, ...below];
}

function subresourcesOf({ kind, status, eviction }: ResourceDefinition) {
  return [
    ...(status ? [{ name: "status", kind: { kind }, verbs: ["get", "patch", "update"] }] : []),
    ...(eviction
      ? [{ name: "eviction", kind: { group: "policy", version: "v1", kind: "Eviction" }, verbs: ["create"] }]
      : []),
  ];
}

/** Returns the aggregated discovery document of `/api` or `/apis`. */
export function aggregated(catalogue: Catalogue, core: boolean): unknown {
  const items = groupsOf(catalogue)
    .filter(({ group }) => (group === "") === core)
    .map(({ group, versions }) => ({
      metadata: { ...(group ? { name: group } : {}), creationTimestamp: null },
      versions: versions.map((version) => ({
        version,
        freshness: "Current",
        resources: aggregatedResources(catalogue, group, version),
      })),
    }));
  return { kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", metadata: {}, items };
}

function aggregatedResources(catalogue: Catalogue, group: string, version: string): unknown[] {
  const resources: unknown[] = catalogue
    .all()
    .filter((definition) => definition.group === group && hasVersion(definition, version))
    .map((definition) => ({
      resource: definition.plural,
      responseKind: { group, version, kind: definition.kind },
      scope: definition.namespaced ? "Namespaced" : "Cluster",
      singularResource: definition.singular,
      verbs: VERBS,
      ...(definition.shortNames.length > 0 ? { shortNames: definition.shortNames } : {}),
      ...(definition.categories ? { categories: definition.categories } : {}),
      subresources: subresourcesOf(definition).map(({ name, kind, verbs }) => ({
        subresource: name,
        responseKind: { group, version, ...kind },
        verbs,
      })),
    }));
  if (group === "authorization.k8s.io" && version === "v1") {
    const { name: resource, singularName: singularResource, kind, verbs } = accessReview;
    resources.push({
      resource,
      singularResource,
      scope: "Cluster",
      responseKind: { group, version, kind },
      verbs,
    });
  }
  return resources;
}

function hasVersion({ versions }: ResourceDefinition, version: string): boolean {
  return versions.some(({ name }) => name === version);
}
