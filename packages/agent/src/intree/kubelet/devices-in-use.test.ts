import { expect, it } from "vitest";
import { devicesInUse } from "./pod-resources.ts";
import { FakeKubelet } from "./testing/fake-kubelet.ts";

const never = new AbortController().signal;

async function devicesOf(driverName: string) {
  await using kubelet = await FakeKubelet.make();
  const claimResources = ["gpu-0", "gpu-1"].map((deviceName) => ({ driverName, poolName: "p", deviceName }));
  const dynamicResources = [{ claimName: "c", claimNamespace: "default", claimResources }];
  kubelet.pods = [{ namespace: "default", name: "web", containers: [{ name: "main", dynamicResources }] }];
  await kubelet.start();
  return await devicesInUse(kubelet.socket, never);
}

it("names the devices of running pods' claims", async () => {
  expect(await devicesOf("gpu.example.com")).toEqual(
    new Set(["gpu.example.com/p/gpu-0", "gpu.example.com/p/gpu-1"]),
  );
});

it("an old kubelet that does not name them is no proof that none is used", async () => {
  await expect(devicesOf("")).rejects.toMatchObject({ code: "unsupported" });
});
