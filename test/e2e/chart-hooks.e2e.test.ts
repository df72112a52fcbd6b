import { describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import { named, ofKind, remote, render, renderText } from "./support/chart.ts";
import { missingParts } from "./support/parts.ts";

const missing = missingParts("helm");

describe.skipIf(missing)("the chart's hooks", () => {
  it("has a Job that removes what the agents left, once the release is deleted, and gives it only what it uses", async () => {
    const objects = await render('nodeSelector={"pool":"a","disk":"ssd"}', "kubernetesService.host=10.0.0.1");
    const hooks = objects.filter(({ metadata }) => metadata.annotations?.["helm.sh/hook"] === "post-delete");
    expect(hooks.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual(
      ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"].map(
        (kind) => `${kind} nodekeeper-uninstall`,
      ),
    );
    const { spec } = named(hooks, "Job", "nodekeeper-uninstall")!.spec.template;
    // Helm merges the map with the default one.
    const selector = "--selector=disk=ssd,kubernetes.io/os=linux,pool=a";
    expect(spec.containers[0].args).toEqual(["uninstall", "--all-nodes", selector]);
    expect(spec.containers[0].env).toEqual([{ name: "KUBERNETES_SERVICE_HOST", value: "10.0.0.1" }]);
    expect(spec).toMatchObject({
      serviceAccountName: "nodekeeper-uninstall",
      securityContext: { runAsNonRoot: true },
    });
    const rule = { apiGroups: ["example.com"], resources: ["gpus"], verbs: ["delete"] };
    const more = await render(
      `uninstall.extraRules=${JSON.stringify([rule])}`,
      "uninstall.activeDeadlineSeconds=3600",
    );
    expect(named(more, "ClusterRole", "nodekeeper-uninstall")!.rules).toContainEqual(rule);
    expect(named(more, "ClusterRole", "nodekeeper")!.rules).not.toContainEqual(rule);
    expect(named(more, "Job", "nodekeeper-uninstall")!.spec.activeDeadlineSeconds).toBe(3600);
    for (const off of ["uninstall.cleanup=false", "rbac.create=false"])
      expect(await renderText(off)).not.toContain("post-delete");
    // Cut after a dot, the name would be refused.
    const named52 = await render(`fullnameOverride=${"a".repeat(52)}.${"b".repeat(9)}`);
    expect(ofKind(named52, "Job")[0]!.metadata.name).toBe(`${"a".repeat(52)}-uninstall`);
    const definition = ofKind(objects, "CustomResourceDefinition")[0]!;
    expect(definition.metadata.annotations).toEqual({ "helm.sh/resource-policy": "keep" });
  });

  it("has a deadline of uninstalling that is a number, also a large one, or none", async () => {
    const deadlineOf = async (value: string) =>
      named(await render(value), "Job", "nodekeeper-uninstall")!.spec.activeDeadlineSeconds;
    const written = await renderText('uninstall={"activeDeadlineSeconds":10000000}');
    expect(written).toContain("activeDeadlineSeconds: 10000000\n");
    expect(await deadlineOf("uninstall.activeDeadlineSeconds=null")).toBeUndefined();
  });

  it("has a test that asks a node's agent, without rights, and is not taken for an agent", async () => {
    const pod = named(await render("statusServer.port=10299"), "Pod", "nodekeeper-test")!;
    expect(pod.metadata.annotations["helm.sh/hook"]).toBe("test");
    expect(pod.spec).toMatchObject({ automountServiceAccountToken: false, hostNetwork: true });
    expect(pod.spec.containers[0].args).toEqual(["status", "--server", "127.0.0.1:10299"]);
    const { labels } = named(await render(), "DaemonSet")!.spec.template.metadata;
    expect(pod.metadata.labels["app.kubernetes.io/name"]).not.toBe(labels["app.kubernetes.io/name"]);
  });

  it("has a test without the host's network that asks an agent as the kubelet does", async () => {
    const objects = await render(
      ...["hostNetwork=false", remote, "statusServer.remote.port=10299", "fullnameOverride=4.keeper"],
    );
    const service = ofKind(objects, "Service")[0]!;
    expect(service.metadata.name).toBe("test-4-keeper");
    expect(service.spec).toMatchObject({ clusterIP: "None", publishNotReadyAddresses: true });
    const { metadata } = named(objects, "DaemonSet", "4.keeper")!.spec.template;
    expect(metadata.labels).toMatchObject(service.spec.selector);
    const pod = named(objects, "Pod", "4.keeper-test")!;
    expect(pod.metadata.labels).not.toMatchObject(service.spec.selector);
    expect(pod.spec).toMatchObject({ automountServiceAccountToken: false, hostNetwork: false });
    expect(pod.spec).not.toHaveProperty("initContainers");
    expect(pod.spec.containers[0].args[0]).toContain("https://test-4-keeper.nodekeeper.svc:10299/readyz");
    const order = (object: ApiObject) => Number(object.metadata.annotations["helm.sh/hook-weight"] ?? 0);
    expect(order(service)).toBeLessThan(order(pod));
  });
});
