import { join } from "node:path";
import type { ControlPlane } from "./control-plane.ts";
import { pathOf } from "./parts.ts";

export const deployDirectory = join(import.meta.dirname, "../../../deploy");
export const rbacFile = join(deployDirectory, "rbac.yaml");
export const optionalRbacFile = join(deployDirectory, "rbac-optional.yaml");
export const policiesFile = join(deployDirectory, "admission-policies.yaml");
/** The account that deploy/rbac.yaml makes. */
export const serviceAccount = { namespace: "nodekeeper", name: "nodekeeper" } as const;
export const serviceAccountUser = `system:serviceaccount:${serviceAccount.namespace}:${serviceAccount.name}`;

const installed = new WeakMap<ControlPlane, Promise<string>>();

/** Installs the CNR definition and deploy/rbac.yaml, once per cluster. Returns the UID of the agent's account. */
export function installNodekeeper(
  cluster: ControlPlane,
  definition = pathOf("cnrDefinition"),
): Promise<string> {
  let uid = installed.get(cluster);
  if (!uid) {
    uid = install(cluster, definition);
    installed.set(cluster, uid);
  }
  return uid;
}

/** Adds the rights that only some settings need, of roles of the namespace that `installNodekeeper` makes. */
export async function installOptionalRights(cluster: ControlPlane): Promise<void> {
  await installNodekeeper(cluster);
  await cluster.kubectl.run("apply", "-f", optionalRbacFile);
}

async function install({ kubectl, admin }: ControlPlane, definition: string): Promise<string> {
  await kubectl.run("apply", "--server-side", "-f", definition, "-f", rbacFile);
  await kubectl.run("wait", "--for=condition=Established", "--timeout=170s", "-f", definition);
  const { namespace, name } = serviceAccount;
  const account = await admin.get(`/api/v1/namespaces/${namespace}/serviceaccounts/${name}`);
  return account.metadata.uid;
}
