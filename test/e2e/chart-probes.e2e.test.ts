import { beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import { named, remote, render } from "./support/chart.ts";
import { missingParts } from "./support/parts.ts";

const missing = missingParts("helm");

describe.skipIf(missing)("the chart's pod", () => {
  let byDefault: readonly ApiObject[];

  beforeAll(async () => {
    byDefault = await render();
  });

  it("is asked for its health on the loopback of the host, or over TLS without the host's network", async () => {
    const probesOf = (objects: readonly ApiObject[]) => {
      const { livenessProbe, readinessProbe, startupProbe } = named(objects, "DaemonSet")!.spec.template.spec
        .containers[0];
      return [livenessProbe, readinessProbe, startupProbe].map(({ httpGet }) => httpGet);
    };
    const onLoopback = (path: string) => ({ path, host: "127.0.0.1", port: 10_290 });
    expect(probesOf(byDefault)).toEqual(["/livez", "/readyz", "/livez"].map(onLoopback));
    const objects = await render("hostNetwork=false", remote, "networkPolicy.enabled=true");
    const overTls = (path: string) => ({ path, scheme: "HTTPS", port: 10_291 });
    expect(probesOf(objects)).toEqual(["/livez", "/readyz", "/livez"].map(overTls));
    expect(named(objects, "DaemonSet")!.spec.template.spec).not.toHaveProperty("hostNetwork");
    expect(named(objects, "NetworkPolicy")!.spec).toMatchObject({
      podSelector: { matchLabels: { "app.kubernetes.io/instance": "nodekeeper" } },
      ingress: [{ ports: [{ port: 10_291 }] }],
    });
  });

  it.each(["probes.liveness", "probes.readiness", "probes.startup", "probes"])(
    "asks as before with the API's defaults after %s=null",
    async (path) => {
      const probesOf = (objects: readonly ApiObject[]) => {
        const { livenessProbe, readinessProbe, startupProbe } = named(objects, "DaemonSet")!.spec.template
          .spec.containers[0];
        return { liveness: livenessProbe, readiness: readinessProbe, startup: startupProbe };
      };
      const expected: Record<string, ApiObject> = probesOf(byDefault);
      for (const [name, { httpGet }] of Object.entries(expected))
        if (`probes.${name}`.startsWith(path)) expected[name] = { httpGet };
      expect(probesOf(await render(`${path}=null`))).toEqual(expected);
    },
  );
});
