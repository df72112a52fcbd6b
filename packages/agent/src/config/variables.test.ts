import { settings } from "@nodekeeper/api/settings";
import { describe, expect, it } from "vitest";
import { WrittenConfiguration } from "./testing/written-configuration.ts";
import { checkVariables } from "./variables.ts";

const written = new WrittenConfiguration();

/** Variables that the kubelet adds to pods in the namespace of a Service with the port "https" and another one. */
function variablesOfService(service: string): Record<string, string> {
  const port = (number: number) => ({
    [`${service}_PORT_${number}_TCP`]: `tcp://10.96.0.7:${number}`,
    [`${service}_PORT_${number}_TCP_PROTO`]: "tcp",
    [`${service}_PORT_${number}_TCP_PORT`]: String(number),
    [`${service}_PORT_${number}_TCP_ADDR`]: "10.96.0.7",
  });
  return {
    [`${service}_SERVICE_HOST`]: "10.96.0.7",
    [`${service}_SERVICE_PORT`]: "10290",
    [`${service}_SERVICE_PORT_HTTPS`]: "10290",
    [`${service}_PORT`]: "tcp://10.96.0.7:10290",
    ...port(10_290),
    ...port(10_291),
  };
}

describe("unknown variables", () => {
  it.each([
    ["NODEKEEPER_EVICTION_DRYRUN_PLUGINS", "NODEKEEPER_EVICTION_DRY_RUN_PLUGINS"],
    ["NODEKEEPER_EVICTION_ENABLED", "NODEKEEPER_EVICTION"],
    ["NODEKEEPER_KUBE_QPS", "NODEKEEPER_KUBE_API_QPS"],
    ["NODEKEEPER_LOG_LEVL", "NODEKEEPER_LOG_LEVEL"],
    ["NODEKEEPER_NAMESPACES", "NODEKEEPER_NAMESPACE"],
  ])("%s is refused, and %s suggested", async (name, suggested) => {
    expect(await written.problemsOf(written.load({ env: { [name]: "*" } }))).toEqual([
      `env ${name}||unknown variable; did you mean ${suggested}?`,
    ]);
  });

  it("are refused with all other problems, and without a suggestion if no name is similar", async () => {
    const env = {
      NODEKEEPER_ZZZZ: "1",
      NODEKEEPER_KUBE_API_BURST: "0",
      [`NODEKEEPER_${"Q".repeat(500)}`]: "x",
    };
    expect(await written.problemsOf(written.load({ env }))).toEqual([
      `env NODEKEEPER_${"Q".repeat(109)}...||unknown variable`,
      "env NODEKEEPER_ZZZZ||unknown variable",
      "env NODEKEEPER_KUBE_API_BURST|kube.burst|got 0, expected a whole number from 1 to 2000",
    ]);
  });

  it("count as unset if they are empty, and belong to others without the prefix", () => {
    checkVariables({ NODEKEEPER_ZZZZ: "", NODEKEEPER_YYYY: undefined, NODE_NAMES: "a", nodekeeper_x: "b" });
  });

  it("are not those of the unit, of kubectl nodekeeper, of a restarted process, and of settings", () => {
    const others = ["NODEKEEPER_EXTRA_ARGS", "NODEKEEPER_NAMESPACE", "NODEKEEPER_STARTED_OVER"];
    const names = [...others, ...settings.flatMap(({ envNames }) => envNames)];
    checkVariables(Object.fromEntries(names.map((name) => [name, "1"])));
  });
});

describe("variables that Kubernetes adds to pods for Services", () => {
  it.each(["NODEKEEPER", "NODEKEEPER_SERVER", "NODEKEEPER_METRICS_2"])("are ignored: %s", (service) => {
    checkVariables({ ...variablesOfService("KUBERNETES"), ...variablesOfService(service) });
  });

  it("are recognized by their Service, and not by their form alone", () => {
    expect(() => checkVariables({ NODEKEEPER_SERVER_PORT: "10290" })).toThrow(
      /env NODEKEEPER_SERVER_PORT: unknown variable/,
    );
    const env = { ...variablesOfService("NODEKEEPER"), NODEKEEPER_PORTS: "1", NODEKEEPER_OTHER_PORT: "1" };
    expect(() => checkVariables(env)).toThrow(
      /has 2 problems.*\n.*NODEKEEPER_OTHER_PORT.*\n.*NODEKEEPER_PORTS/,
    );
  });
});

describe("variables of settings", () => {
  it("set also what has no flag", async () => {
    const kinds = [{ group: "example.com", version: "v1", kind: "Thing" }];
    const { configuration, origins } = await written.load({
      env: {
        NODEKEEPER_NODE_NAME: "of-own",
        NODE_NAME: "of-alias",
        NODEKEEPER_RUNTIME_ENDPOINT: "",
        CONTAINER_RUNTIME_ENDPOINT: "/run/cri.sock",
        NODEKEEPER_EVICTION_PID_OVERUSE_THRESHOLD: "7",
        NODEKEEPER_REPORTING_ADDITIONAL_KINDS: JSON.stringify(kinds),
      },
    });
    expect(configuration).toMatchObject({
      nodeName: "of-own",
      runtime: { endpoint: "/run/cri.sock" },
      eviction: { pidOveruse: { threshold: 7 } },
      reporting: { additionalKinds: kinds },
    });
    expect(origins.get("runtime.endpoint")).toBe("env CONTAINER_RUNTIME_ENDPOINT");
    const wrong = written.load({ env: { NODEKEEPER_REPORTING_ADDITIONAL_KINDS: "Thing" } });
    expect((await written.problemsOf(wrong)).join()).toContain('got "Thing", expected a list of at most 64');
  });

  it("a comma is an empty list, as an empty flag is, and an empty variable leaves the default", async () => {
    const dryRunOf = async (given: Parameters<typeof written.load>[0]) =>
      (await written.load(given)).configuration.eviction.dryRunPlugins;
    const name = "NODEKEEPER_EVICTION_DRY_RUN_PLUGINS";
    expect(await dryRunOf({ env: { [name]: "," } })).toEqual([]);
    expect(await dryRunOf({ flags: { evictionDryRunPlugins: "" } })).toEqual([]);
    expect(await dryRunOf({ env: { [name]: "" } })).toEqual(["*"]);
    expect(await dryRunOf({})).toEqual(["*"]);
  });
});
