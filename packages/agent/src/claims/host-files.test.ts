import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ContainerEdits } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cdiEdits } from "./container-edits.ts";
import { HostFiles } from "./host-files.ts";
import { followPath } from "./host-path.ts";
import { preparedOf } from "./prepared-claim.ts";

let root: string;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "nkhf-"));
  for (const directory of ["opt/vendor/lib", "opt/other", "etc", "dev"])
    mkdirSync(join(root, directory), { recursive: true });
  writeFileSync(join(root, "etc/shadow"), "");
  // Targets as the host has them.
  symlinkSync("/etc", join(root, "opt/vendor/absolute"));
  symlinkSync("../../etc/shadow", join(root, "opt/vendor/relative"));
  symlinkSync("lib", join(root, "opt/vendor/inside"));
  symlinkSync("/opt/vendor/around", join(root, "opt/vendor/around"));
  symlinkSync("/opt/vendor", join(root, "opt/link"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const nothing = ContainerEdits.fromPartial({});
const mountOf = (hostPath: string, type = "", options: string[] = []) => ({
  ...nothing,
  mounts: [{ hostPath, containerPath: "/x", type, options }],
});
const nodeOf = (hostPath: string, type = "", major = 0, minor = 0) => ({
  ...nothing,
  deviceNodes: [
    { path: "/dev/x", hostPath, type, major: BigInt(major), minor: BigInt(minor), permissions: "" },
  ],
});

it.each([
  ["a path inside", mountOf("/opt/vendor/lib"), undefined],
  ["the directory itself", mountOf("/opt/vendor"), undefined],
  ["a link that stays inside", mountOf("/opt/vendor/inside"), undefined],
  ["a tmpfs", mountOf("tmpfs", "tmpfs", ["size=1m"]), undefined],
  ["a path outside", mountOf("/etc"), '"/etc" is outside of /opt/vendor (devices.kubeletPlugin.hostPaths)'],
  ["a directory whose name begins the same", mountOf("/opt/vendor2"), "is outside of"],
  ["a recursive bind mount of another type", mountOf("/etc", "none", ["rbind"]), '"/etc" is outside of'],
  [
    "an overlay",
    mountOf("overlay", "overlay", ["lowerdir=/etc"]),
    '"overlay" is neither a bind mount nor a tmpfs',
  ],
  ["an absolute link", mountOf("/opt/vendor/absolute/shadow"), 'which leads to "/etc/shadow", is outside of'],
  ["a relative link", mountOf("/opt/vendor/relative"), 'which leads to "/etc/shadow", is outside of'],
  ["a link to itself", mountOf("/opt/vendor/around"), "too many symbolic links"],
  ["what the agent can't see", mountOf("/srv/x"), "is outside of"],
  ["a device by numbers alone", nodeOf("/opt/vendor/lib", "b", 8, 0), "8:0 is not the device"],
  [
    "a hook behind a link",
    {
      ...nothing,
      hooks: [{ hookName: "poststop", path: "/opt/vendor/relative", args: [], env: [], timeout: 0 }],
    },
    "is outside of",
  ],
])("%s", async (_, edits, message) => {
  const host = new HostFiles({ root, allowed: ["/opt/vendor"] });
  const made = cdiEdits(edits, host);
  if (message === undefined) await made;
  else await expect(made).rejects.toThrow(message);
});

it("an allowed directory may be a link, and numbers those of a file in it", async () => {
  await cdiEdits(mountOf("/opt/link/lib"), new HostFiles({ root, allowed: ["/opt/link"] }));
  const devices = new HostFiles({ root: "/", allowed: ["/dev"] });
  await cdiEdits(nodeOf("/dev/null", "c", 1, 3), devices);
  await expect(cdiEdits(nodeOf("/dev/null", "c", 1, 5), devices)).rejects.toThrow("1:5 is not the device");
});

it("numbers without a type are refused where paths are restricted: runtimes would keep them", async () => {
  const restricted = new HostFiles({ root: "/", allowed: ["/dev"] });
  await cdiEdits(nodeOf("/dev/null"), restricted);
  for (const [major, minor] of [
    [8, 0],
    [0, 1],
  ])
    await expect(cdiEdits(nodeOf("/dev/null", "", major, minor), restricted)).rejects.toThrow(
      `edits.deviceNodes[0].type: must be set if device numbers are specified: ${major}:${minor}`,
    );
  await cdiEdits(nodeOf("/dev/null", "", 8, 0), new HostFiles({ root: "/", allowed: ["/"] }));
});

it("CDI devices of other vendors are refused where paths are restricted", async () => {
  const identity = { request: "req", pool: "p", device: "gpu-0", shareId: "" };
  const allocated = { ...identity, consumedCapacity: {}, adminAccess: false, configuration: [] };
  const owner = {
    driver: "gpu.example.com",
    namespace: "n",
    name: "c",
    uid: "u",
    boot: "b",
    pods: [],
    driverUid: 0,
  };
  const preparing = (id: string, allowed: string) =>
    preparedOf(
      owner,
      [allocated],
      { devices: [{ ...identity, edits: undefined, cdiDeviceIds: [id], annotations: {} }], edits: undefined },
      new HostFiles({ root, allowed: [allowed] }),
    );
  await preparing("other.com/gpu=all", "/");
  await preparing("gpu.example.com/gpu=0", "/opt/vendor");
  await expect(preparing("other.com/gpu=all", "/opt/vendor")).rejects.toThrow(
    'the vendor of "other.com/gpu=all" is not gpu.example.com',
  );
});

describe.runIf(process.getuid?.() === 0)("components that others than root can change", () => {
  let owned: string;

  beforeAll(() => {
    owned = mkdtempSync(join(tmpdir(), "nkho-"));
    const make = (path: string, mode: number, uid = 0) => {
      mkdirSync(join(owned, path), { recursive: true });
      chmodSync(join(owned, path), mode);
      chownSync(join(owned, path), uid, 0);
    };
    make("good/deep", 0o755);
    make("sticky/a", 0o755);
    make("sticky", 0o1777);
    make("group/a", 0o755);
    make("group", 0o775);
    make("user/a", 0o755);
    make("user", 0o700, 1000);
    for (const [name, mode] of [
      ["file", 0o644],
      ["open", 0o666],
    ] as const) {
      writeFileSync(join(owned, "good", name), "");
      chmodSync(join(owned, "good", name), mode);
    }
    symlinkSync("/user/a", join(owned, "good/link"));
    symlinkSync("deep", join(owned, "good/inside"));
    symlinkSync("../good/deep", join(owned, "user/back"));
  });
  afterAll(() => rmSync(owned, { recursive: true, force: true }));

  it.each([
    ["/", undefined],
    ["/good/deep", undefined],
    ["/good/inside", undefined],
    ["/good/file", undefined],
    ["/good/none/further", undefined],
    ["/good/file/further", undefined],
    ["/good/open", ["/good/open", "is writable by all users (mode 666)"]],
    ["/sticky", ["/sticky", "is writable by all users (mode 1777)"]],
    ["/sticky/a", ["/sticky", "is writable by all users (mode 1777)"]],
    ["/sticky/none", ["/sticky", "is writable by all users (mode 1777)"]],
    ["/group/a", ["/group", "is writable by its group (mode 775)"]],
    ["/user/a", ["/user", "belongs to user ID 1000"]],
    ["/good/link", ["/user", "belongs to user ID 1000"]],
    ["/user/back", ["/user", "belongs to user ID 1000"]],
  ])("%s", async (path, expected) => {
    const weakness = (await followPath(owned, path))?.weakness;
    expect(weakness && [weakness.component, weakness.what]).toEqual(expected);
  });

  it("a device may be writable for those who use it", async () => {
    expect((await followPath("/", "/dev/null"))?.weakness).toBeUndefined();
  });

  it("an exempt driver of root only is not held to them", async () => {
    const host = new HostFiles({ root: owned, allowed: ["/"], exemptRootDrivers: true });
    await cdiEdits(mountOf("/user/a"), host.forDriverOf(0));
    for (const uid of [1000, undefined])
      await expect(cdiEdits(mountOf("/user/a"), host.forDriverOf(uid))).rejects.toThrow(
        'edits.mounts[0].hostPath: "/user" on the way to "/user/a" belongs to user ID 1000',
      );
  });

  it("sources of other mounts are held to them, if they are paths", async () => {
    const host = new HostFiles({ root: owned, allowed: ["/"] });
    await cdiEdits(mountOf("tmpfs", "tmpfs"), host);
    await expect(cdiEdits(mountOf("/user/a", "ext4"), host)).rejects.toThrow("belongs to user ID 1000");
  });
});
