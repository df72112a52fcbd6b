import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { Host } from "../../host/index.ts";
import { KubeletFlags, topologyFlags } from "./kubelet-flags.ts";

describe("flags of the topology manager", () => {
  it.each<[string[], object]>([
    [["kubelet", "--config=/etc/kubelet.yaml"], {}],
    [["kubelet", "--topology-manager-policy=restricted"], { policy: "restricted" }],
    [["kubelet", "--topology-manager-scope", "pod", "--v=2"], { scope: "pod" }],
    [
      ["kubelet", "--topology-manager-policy=none", "--topology-manager-policy=best-effort"],
      { policy: "best-effort" },
    ],
    [["kubelet", "--config-dir", "/etc/kubelet.d"], { dropIns: "/etc/kubelet.d" }],
    [["kubelet", "--topology-manager-policy"], {}],
    [["kubelet", "--topology-manager-policy="], {}],
  ])("of %j are %j", (line, expected) => {
    expect(topologyFlags(line)).toEqual(expected);
  });
});

it("the running kubelet's flags are found, followed over its restart, and searched for once a minute at most", async () => {
  const root = mkdtempSync(join(tmpdir(), "nodekeeper-flags-"));
  const run = (pid: number, name: string, ...line: string[]) => {
    mkdirSync(join(root, "proc", String(pid)), { recursive: true });
    writeFileSync(join(root, "proc", String(pid), "comm"), `${name}\n`);
    writeFileSync(join(root, "proc", String(pid), "cmdline"), `${line.join("\0")}\0`);
  };
  const clock = new FakeClock();
  const flags = new KubeletFlags(new Host({ root }), clock);
  const { signal } = new AbortController();
  const policy = async () => (await flags.read(signal)).policy;
  try {
    run(1, "systemd", "/sbin/init");
    run(2, "grep", "grep", "--topology-manager-policy=restricted");
    expect(await policy()).toBeUndefined();
    run(30, "kubelet", "/usr/bin/kubelet", "--topology-manager-policy=restricted");
    expect(await policy()).toBeUndefined();
    await clock.step(60_000);
    expect(await policy()).toBe("restricted");
    rmSync(join(root, "proc", "30"), { recursive: true });
    run(31, "kubelet", "/usr/bin/kubelet", "--topology-manager-policy=best-effort");
    expect(await policy()).toBe("best-effort");
    // Read between its end and its start.
    rmSync(join(root, "proc", "31"), { recursive: true });
    expect(await policy()).toBe("best-effort");
    await clock.step(59_000);
    expect(await policy()).toBe("best-effort");
    await clock.step(1_000);
    expect(await policy()).toBeUndefined();
  } finally {
    rmSync(root, { recursive: true });
  }
});
