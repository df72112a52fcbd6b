import { eventually } from "@nodekeeper/testing/until";
import { expect } from "vitest";
import type { UpstreamCase } from "./case.ts";
import type { Row } from "./row.ts";

const once = { driver: "serves", kubelet: "runs" };
const ofHelper =
  "it is about options of upstream's Go helper; the SDK retries a socket that it cannot serve, which its own tests cover";

/** The registration is retried once a call of it no longer fails. */
async function recovers(own: UpstreamCase, call: "getInfo" | "notifyRegistrationStatus"): Promise<void> {
  const driver = own.newSplitDriver();
  const registration = driver.registration!;
  registration.failing = call;
  await registration.start();
  await driver.start();
  await eventually(() => expect(registration.outcomes).toContain(`${call} failed`));
  expect(registration.outcomes).not.toContain("registered");
  registration.failing = undefined;
  await eventually(() => expect(registration.outcomes).toContain("registered"));
  await own.untilRegistered(driver);
  await own.pod([driver]);
  await own.untilPhase("Succeeded");
}

/** The service of a driver goes while a pod runs, and comes back before the pod ends. */
async function reconnects(own: UpstreamCase, sockets: 1 | 2): Promise<void> {
  const driver = sockets === 2 ? own.newSplitDriver() : own.newDriver();
  await driver.registration?.start();
  await driver.start();
  await own.untilRegistered(driver);
  await own.pod([driver], { stays: true });
  await own.untilPhase("Running");
  await driver.stop();
  await own.untilNoSlices(driver);
  expect(await own.phase()).toBe("Running");
  await driver.start();
  await own.delete();
  await own.untilDeleted();
  await own.until(driver, "unprepare succeeded");
}

export const registrationRows: readonly Row[] = [
  {
    upstream: "must register after Kubelet restart",
    driver: "serves",
    kubelet: "restarts",
    expected: "the agent is registered for the driver again, and a pod runs",
    restarts: true,
    async run(own) {
      const driver = await own.driver();
      const before = await own.registrations(driver);
      await own.restartKubelet();
      await own.untilRegistered(driver, before + 1);
      await own.pod([driver]);
      await own.untilPhase("Succeeded");
    },
  },
  {
    upstream: "must register after plugin restart",
    driver: "restarts",
    kubelet: "runs",
    expected: "a pod runs, prepared by the new instance",
    async run(own) {
      const driver = await own.driver();
      await driver.stop();
      await driver.start();
      await own.pod([driver]);
      await own.untilPhase("Succeeded");
      expect(driver.count("prepare succeeded")).toBe(1);
    },
  },
  {
    upstream: "must recover and register after registration failure",
    driver: "fails GetInfo, then answers it",
    kubelet: "runs",
    expected: "the driver is registered and a pod runs",
    differs:
      "the driver registers with the agent, which calls GetInfo again without a restart of the kubelet",
    run: (own) => recovers(own, "getInfo"),
  },
  {
    upstream: "must recover and register after NotifyRegistrationStatus failure",
    driver: "fails NotifyRegistrationStatus, then answers it",
    kubelet: "runs",
    expected: "the driver is registered and a pod runs",
    differs:
      "the driver registers with the agent, which calls NotifyRegistrationStatus again without a restart of the kubelet",
    run: (own) => recovers(own, "notifyRegistrationStatus"),
  },
  {
    upstream:
      "must be functional when plugin starts to listen on a service socket after registration: 2 sockets",
    driver: "registers, and then starts to serve on another socket",
    kubelet: "runs",
    expected: "the driver is registered when it serves, and a pod runs",
    differs:
      "the agent checks whose socket it is before it registers a driver, so it calls GetInfo until there is one",
    async run(own) {
      const driver = own.newSplitDriver();
      await driver.registration!.start();
      await eventually(() => expect(driver.registration!.outcomes).toContain("getInfo succeeded"));
      expect(driver.registration!.outcomes).not.toContain("registered");
      await driver.start();
      await own.untilRegistered(driver);
      await own.pod([driver]);
      await own.untilPhase("Succeeded");
      expect(driver.count("prepare succeeded")).toBe(1);
    },
  },
  {
    upstream:
      "must be functional when plugin starts to listen on a service socket after registration: 1 common socket",
    notApplicable:
      "a driver's socket in the agent's directory also serves its registration, so it is not registered before it listens",
  },
  {
    upstream: "must be functional after service reconnect: 2 sockets",
    driver:
      "stops serving while a pod runs, until its slices are removed, and serves again; its registration stays",
    kubelet: "runs",
    expected: "the pod runs on, and is unprepared when it is deleted",
    run: (own) => reconnects(own, 2),
  },
  {
    upstream: "must be functional after service reconnect: 1 common socket",
    driver: "stops while a pod runs, until its slices are removed, and starts again",
    kubelet: "runs",
    expected: "the pod runs on, and is unprepared when it is deleted",
    run: (own) => reconnects(own, 1),
  },
  { upstream: "must report gRPC serving error: for registrar", notApplicable: ofHelper },
  { upstream: "must report gRPC serving error: for DRA service", notApplicable: ofHelper },
  ...[
    "must use one gRPC connection for all service calls",
    "must reuse one gRPC connection for service and health-monitoring calls",
  ].map((upstream, at) => ({
    upstream,
    ...once,
    expected:
      "two pods are prepared, unprepared and have health over the connections that the driver had before",
    differs: "the agent keeps separate connections to a driver, such as for probes; a claim opens no other",
    run: (own: UpstreamCase) => keepsConnections(own, at === 1),
  })),
];

async function keepsConnections(own: UpstreamCase, withHealth: boolean): Promise<void> {
  const driver = own.newSplitDriver({ counted: true });
  await driver.registration!.start();
  await driver.start();
  await own.untilRegistered(driver);
  const seen: number[] = [];
  for (const each of ["a", "b"]) {
    const name = await own.pod([driver], { name: `${own.name}-${each}`, stays: withHealth });
    await own.untilPhase(withHealth ? "Running" : "Succeeded", name);
    if (withHealth) await own.untilHealth("Healthy", name);
    else await own.until(driver, "unprepare succeeded", seen.length + 1);
    seen.push(driver.connections);
  }
  expect(seen[0]).toBeGreaterThan(0);
  expect(seen[1]).toBe(seen[0]);
}
