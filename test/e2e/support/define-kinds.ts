import type { ApiObject } from "./admin-client.ts";
import type { ControlPlane } from "./control-plane.ts";

/** Has the cluster serve namespaced kinds of version v1 whose own definitions are not here: it accepts every object of them. */
export async function defineKinds(
  { admin, kubectl }: ControlPlane,
  group: string,
  kinds: readonly string[],
): Promise<void> {
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  for (const kind of kinds) await admin.create(path, definitionOf(group, kind));
  await kubectl.run(
    "wait",
    "--for=condition=Established",
    "--timeout=170s",
    "customresourcedefinitions",
    "--all",
  );
}

function definitionOf(group: string, kind: string): ApiObject {
  const singular = kind.toLowerCase();
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${singular}s.${group}` },
    spec: {
      group,
      names: { kind, singular, plural: `${singular}s` },
      scope: "Namespaced",
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  };
}
