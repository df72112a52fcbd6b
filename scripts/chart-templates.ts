// Those templates of the Helm chart that are made of the manifests in deploy/, so that each right stands once.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "./programs.ts";

const templates = "deploy/helm/nodekeeper/templates";
const fullName = '{{ include "nodekeeper.fullname" . }}';

/** Which use (`nodekeeper.uses` of _helpers.tpl) roles of deploy/rbac-optional.yaml, and their bindings, depend on. */
const conditions: Readonly<Record<string, string>> = {
  "nodekeeper-delete-pods": "$uses.deletion",
  "nodekeeper-reviews": "$uses.reviews",
  "nodekeeper-resource-claims": "$uses.kubeletPlugin",
  "nodekeeper-device-status": "$uses.deviceStatus",
  "nodekeeper-cluster-pools": "$uses.clusterPools",
  "nodekeeper-metrics-reader": "$uses.remote",
  "nodekeeper-status-reader": "$uses.remote",
};

/** The same for single rules of deploy/rbac.yaml, by their resources. */
const ruleConditions: Readonly<Record<string, string>> = {
  pods: "$uses.eviction",
  "pods/eviction": "$uses.evictionApi",
};

/** Templates that hold a whole file of deploy/, each with the condition under which it applies. */
const whole: readonly [template: string, file: string, condition: string][] = [
  ["viewer-role.yaml", "rbac-kubectl-plugin.yaml", ".Values.rbac.viewer"],
  ["admission-policies.yaml", "admission-policies.yaml", ".Values.admissionPolicies.enabled"],
  ["customnoderesources.yaml", "crds/customnoderesources.yaml", ".Values.customNodeResource.install"],
];

/** The templates by their paths in the repository. */
export async function chartTemplates(): Promise<Map<string, string>> {
  // The namespace is the release's, and the account has a template of its own.
  const roles = (await documents("rbac.yaml")).filter(({ kind }) => kind.startsWith("ClusterRole"));
  const rights = [...roles.map(withRuleConditions), ...(await documents("rbac-optional.yaml"))];
  const rbac = rights.map(({ name, text }) => (conditions[name] ? onlyIf(conditions[name], text) : text));
  const uses = '{{- $uses := include "nodekeeper.uses" . | fromYaml }}';
  const made = new Map([[`${templates}/rbac.yaml`, templateOf(".Values.rbac.create", rbac, `${uses}\n`)]]);
  for (const [template, file, condition] of whole) {
    const texts = (await documents(file)).map(({ text }) => text);
    made.set(`${templates}/${template}`, templateOf(condition, texts));
  }
  return made;
}

function templateOf(condition: string, texts: readonly string[], head = ""): string {
  const body = onlyIf(condition, texts.join("\n---\n"));
  return `{{- /* Made of deploy/*.yaml by "npm run generate". */ -}}\n${head}${body}\n`;
}

function onlyIf(condition: string, text: string): string {
  return `{{- if ${condition} }}\n${text}\n{{- end }}`;
}

/** Returns a role whose rules in `ruleConditions` are conditional. Appends `rbac.extraRules` to the agent's role. */
function withRuleConditions(role: Manifest): Manifest {
  const text = role.text.replaceAll(/(?: {2}#.*\n)* {2}- apiGroups:.*(?:\n {4}\S.*)*/g, (rule) => {
    const condition = ruleConditions[/resources: \[(.*)\]/.exec(rule)?.[1] ?? ""];
    return condition ? onlyIf(condition, rule) : rule;
  });
  const isMain = role.kind === "ClusterRole" && role.name === "nodekeeper";
  const more = "{{- with .Values.rbac.extraRules }}\n  {{- toYaml . | nindent 2 }}\n{{- end }}";
  return { ...role, text: isMain ? `${text}\n${more}` : text };
}

interface Manifest {
  kind: string;
  name: string;
  /** As a template: names, account and labels are the release's. */
  text: string;
}

async function documents(file: string): Promise<Manifest[]> {
  const text = await readFile(join(root, "deploy", file), "utf8");
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
    .replace(
      /^( {2}name: nodekeeper-cluster-pools\n {2}namespace:) nodekeeper$/m,
      '$1 {{ include "nodekeeper.leaseNamespace" . }}',
    )
    .replaceAll(/^( +)(name|policyName): nodekeeper(-[a-z-]+)?$/gm, (_, indent, key, suffix = "") =>
      indent === "  " || key === "policyName"
        ? `${indent}${key}: ${fullName}${suffix}`
        : `${indent}${key}: {{ include "nodekeeper.serviceAccount" . }}`,
    )
    .replaceAll(/^( +)namespace: nodekeeper$/gm, '$1namespace: {{ include "nodekeeper.namespace" . }}')
    .replace(
      /^( +- name: clusterPoolDrivers\n +expression:) "\[\]"$/m,
      '$1 {{ include "nodekeeper.clusterPoolDrivers" . | quote }}',
    )
    .replace(
      /^ +# resourceNames: \[nodekeeper-pools-.*\n( +- apiGroups: .*\n +resources: \[leases\])$/m,
      '$1\n    resourceNames: {{ include "nodekeeper.clusterPoolLeases" . }}',
    )
    .replaceAll('"system:serviceaccount:nodekeeper:nodekeeper"', '"{{ include "nodekeeper.user" . }}"')
    .replace(
      /^metadata:\n {2}name: .*$/m,
      (head) => `${head}\n  labels: {{- include "nodekeeper.labels" . | nindent 4 }}`,
    );
}
