import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { imageName } from "./support/container-image.ts";
import { Containerd } from "./support/containerd.ts";
import { missingParts } from "./support/parts.ts";

const isRoot = process.getuid?.() === 0;

// What the cases with pods rest on.
describe.each(["oldContainerd", "containerd", "newContainerd"] as const)("%s", (part) => {
  const ends: Array<() => Promise<void> | void> = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  it.skipIf(!isRoot || missingParts(part, "runc", "busybox"))(
    "runs containers, and leaves nothing behind",
    async () => {
      const directory = mkdtempSync(join(tmpdir(), "nodekeeper-e2e-"));
      ends.push(() => rmSync(directory, { recursive: true, force: true }));
      const containerd = await Containerd.start(directory, part);
      ends.push(() => containerd.stop());
      expect(await containerd.ctr("plugins", "ls")).toMatch(/grpc\.v1\s+cri\s+\S+\s+ok/);
      const run = (...args: string[]) =>
        containerd.ctr("run", "--snapshotter", "native", "--net-host", ...args);
      expect(await run("--rm", imageName, "once", "/bin/echo", "from within")).toBe("from within\n");
      await run("--detach", imageName, "lasting");
      expect(await containerd.ctr("task", "ls", "-q")).toBe("lasting\n");
      await containerd.process.kill();
      await containerd.stop();
      expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(directory);
    },
  );
});
