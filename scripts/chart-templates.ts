// Those templates of the Helm chart that are made of the manifests in deploy/, so that each right stands once.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "./run-command.ts";

const templates = "deploy/helm/nodekeeper/templates";
const fullName = '{{ include "nodekeeper.fullname" . }}';

/** Under which value of the chart the roles of deploy/rbac-optional.yaml are installed; others always. */
const conditions: Readonly<Record<string, string>> = {
  "nodekeeper-delete-pods": ".Values.rbac.deletePods",
  "nodekeeper-reviews": ".Values.rbac.reviews",
  "nodekeeper-resource-claims": ".Values.devices.kubeletPlugin.enabled",
};

/** The templates by their paths in the repository. */
async function chartTemplates(): Promise<Map<string, string>> {
  const [rights, optional, policies, definition] = await Promise.all(
    ["rbac.yaml", "rbac-optional.yaml", "admission-policies.yaml", "crds/customnoderesources.yaml"].map(
      (file) => readFile(join(root, "deploy", file), "utf8"),
    ),
  );
  // The namespace is the release's, and the account has a template of its own.
  const roles = documents(rights!).filter(({ kind }) => kind.startsWith("ClusterRole"));
  const rbac = [...roles, ...documents(optional!)].map(({ name, text }) => {
    const condition = conditions[name];
    return condition ? `{{- if ${condition} }}\n${text}\n{{- end }}` : text;
  });
  const whole = (condition: string, texts: readonly string[]) =>
    `{{- /* Made of deploy/*.yaml by "npm run generate". */ -}}\n{{- if ${condition} }}\n${texts.join("\n---\n")}\n{{- end }}\n`;
  return new Map([
    [`${templates}/rbac.yaml`, whole(".Values.rbac.create", rbac)],
    [
      `${templates}/admission-policies.yaml`,
      whole(
        ".Values.admissionPolicies.enabled",
        documents(policies!).map(({ text }) => text),
      ),
    ],
    [
      `${templates}/customnoderesources.yaml`,
      whole(".Values.customNodeResource.install", [definition!.trimEnd()]),
    ],
  ]);
}

/** Brings the templates in step with deploy/. */
export async function writeChartTemplates(): Promise<void> {
  for (const [path, text] of await chartTemplates()) await writeFile(join(root, path), text);
}

/** Templates that are not what deploy/ gives. */
export async function findChartDrift(): Promise<string[]> {
  const problems: string[] = [];
  for (const [path, text] of await chartTemplates()) {
    const present = await readFile(join(root, path), "utf8").catch(() => undefined);
    if (present !== text) problems.push(`${path} differs from deploy/: run "npm run generate"`);
  }
  return problems;
}

interface Manifest {
  kind: string;
  name: string;
  /** As a template: names, account and labels are the release's. */
  text: string;
}

function documents(text: string): Manifest[] {
  return text
    .split("\n---\n")
    .map((each) => each.trim())
    .map((each) => ({
      kind: /^kind: (\S+)$/m.exec(each)?.[1] ?? "",
      name: /^metadata:\n {2}name: (\S+)$/m.exec(each)?.[1] ?? "",
      text: templated(each),
    }));
}

function templated(text: string): string {
  return text
    .replaceAll(/^( +)(name|policyName): nodekeeper(-[a-z-]+)?$/gm, (_, indent, key, suffix = "") =>
      indent === "  " || key === "policyName"
        ? `${indent}${key}: ${fullName}${suffix}`
        : `${indent}${key}: {{ include "nodekeeper.serviceAccount" . }}`,
    )
    .replaceAll(/^( +)namespace: nodekeeper$/gm, '$1namespace: {{ include "nodekeeper.namespace" . }}')
    .replaceAll('"system:serviceaccount:nodekeeper:nodekeeper"', '"{{ include "nodekeeper.user" . }}"')
    .replace(
      /^metadata:\n {2}name: .*$/m,
      (head) => `${head}\n  labels: {{- include "nodekeeper.labels" . | nindent 4 }}`,
    );
}
