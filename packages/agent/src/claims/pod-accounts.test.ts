import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { PodAccounts } from "./pod-accounts.ts";

const pods = Array.from({ length: 256 }, (_, number) => ({ name: `pod-${number}`, uid: `uid-${number}` }));

function accountsWith(read: (name: string) => Promise<void>, known?: (uid: string) => string | undefined) {
  const clock = new FakeClock();
  let most = 0;
  let underWay = 0;
  const client = {
    get: async (_resource: unknown, name: string) => {
      most = Math.max(most, ++underWay);
      await read(name).finally(() => underWay--);
      return {
        metadata: { name, uid: name.replace("pod", "uid") },
        spec: { serviceAccountName: `of-${name}` },
      };
    },
  };
  return { accounts: new PodAccounts({ client, known, clock, log: silentLogger }), clock, most: () => most };
}

it("the accounts of 256 pods are read, four at once", async () => {
  const { accounts, most } = accountsWith(async () => {});
  const found = await accounts.of("default", pods, new AbortController().signal);
  expect(found).toEqual(pods.map((pod) => ({ ...pod, serviceAccount: `of-${pod.name}` })));
  expect(most()).toBe(4);
});

it("a pod that a watch has reported is not read", async () => {
  const read: string[] = [];
  const { accounts } = accountsWith(
    async (name) => void read.push(name),
    (uid) => ({ "uid-0": "watched", "uid-1": "" })[uid],
  );
  const found = await accounts.of("default", pods.slice(0, 3), new AbortController().signal);
  expect(found.map(({ serviceAccount }) => serviceAccount)).toEqual(["watched", undefined, "of-pod-2"]);
  expect(read).toEqual(["pod-2"]);
});

it("a server that does not answer is waited for at most 2 s: what was read by then is used", async () => {
  const reading = Promise.withResolvers<void>();
  const { accounts, clock } = accountsWith(async (name) => {
    if (name === "pod-0") return;
    reading.resolve();
    await new Promise(() => {});
  });
  const found = accounts.of("default", pods.slice(0, 2), new AbortController().signal);
  await reading.promise;
  await clock.step(2_000);
  expect(await found).toEqual([{ ...pods[0], serviceAccount: "of-pod-0" }, pods[1]]);
});

it("rejects with the reason of a call that ended", async () => {
  const ended = new AbortController();
  const { accounts } = accountsWith(async () => ended.abort(new Error("the call has ended")));
  await expect(accounts.of("default", pods, ended.signal)).rejects.toThrow("the call has ended");
});
