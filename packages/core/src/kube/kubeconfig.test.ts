import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { loadClusterAccess } from "./cluster-access.ts";

const PEM = "-----BEGIN CERTIFICATE-----\n";
const base64 = (text: string) => Buffer.from(text).toString("base64");

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "kubeconfig-"));
});
afterEach(() => rm(directory, { recursive: true }));

async function write(cluster: object, user: object, extra: object = {}): Promise<string> {
  const path = join(directory, "config");
  const config = {
    "current-context": "here",
    contexts: [
      { name: "here", context: { cluster: "c", user: "u" } },
      { name: "anonymous", context: { cluster: "c" } },
    ],
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user }],
    ...extra,
  };
  await writeFile(path, stringify(config));
  return path;
}

const server = "https://example.test:6443";
const load = (kubeconfig: string, context?: string) =>
  loadClusterAccess({ kubeconfig, environment: {}, ...(context ? { context } : {}) });

describe("a kubeconfig", () => {
  test("gives the server, the authority and a token", async () => {
    const path = await write(
      { server, "certificate-authority-data": base64(PEM), "tls-server-name": "kubernetes" },
      { token: "the-token" },
    );
    expect(await load(path)).toEqual({
      source: `${path} (context here)`,
      server: new URL(server),
      serverName: "kubernetes",
      certificateAuthority: { text: PEM },
      token: { text: "the-token" },
    });
  });

  test("resolves paths against its own directory, and lets a token file win over a token", async () => {
    const path = await write(
      { server, "certificate-authority": "pki/ca.crt" },
      { token: "old", tokenFile: "token", "client-certificate": "/abs/crt", "client-key-data": base64(PEM) },
    );
    expect(await load(path)).toMatchObject({
      certificateAuthority: { file: join(directory, "pki/ca.crt") },
      token: { file: join(directory, "token") },
      clientCertificate: { file: "/abs/crt" },
      clientKey: { text: PEM },
    });
  });

  test("is found by KUBECONFIG, and its context by name", async () => {
    const KUBECONFIG = await write({ server, "insecure-skip-tls-verify": true }, { token: "the-token" });
    const access = await loadClusterAccess({ environment: { KUBECONFIG }, context: "anonymous" });
    expect(access).toMatchObject({ insecureSkipTlsVerify: true });
    expect(access.token).toBeUndefined();
  });

  const user = { token: "the-token" };
  test.each([
    [
      "exec",
      { server },
      { exec: { command: "aws" } },
      /users\[0\]\.user\.exec: expected a token.*not supported/,
    ],
    ["auth-provider", { server }, { "auth-provider": {} }, /auth-provider is not supported/],
    ["a password", { server }, { username: "a", password: "b" }, /username is not supported/],
    ["impersonation", { server }, { as: "root" }, /as is not supported/],
    ["a proxy", { server, "proxy-url": "http://p" }, user, /clusters\[0\]\.cluster\.proxy-url/],
    ["no server", {}, user, /clusters\[0\]\.cluster\.server: expected a text/],
    ["a wrong server", { server: "example.test:6443" }, user, /server: expected a URL/],
    ["a wrong type", { server: 5 }, user, /server: expected a text/],
    ["a certificate without key", { server }, { "client-certificate": "x" }, /client-key: expected both/],
    [
      "data that is not PEM",
      { server, "certificate-authority-data": "AAAA" },
      user,
      /authority-data: expected PEM/,
    ],
    [
      "insecure with CA",
      { server, "certificate-authority": "x", "insecure-skip-tls-verify": true },
      user,
      /beside/,
    ],
    [
      "a token in the clear",
      { server: "http://example.test" },
      user,
      /user\.token: expected a server with https/,
    ],
  ])("with %s is refused, naming file and field", async (_, cluster, wrongUser, message) => {
    const path = await write(cluster, wrongUser);
    const error = await load(path).catch((error) => error);
    expect(error).toMatchObject({ code: "invalid", id: "NK1202" });
    expect(error.message).toMatch(message);
    expect(error.message).toContain(path);
    expect(error.message).not.toContain("the-token");
  });

  test("without the context asked for names those there are", async () => {
    const path = await write({ server }, user);
    await expect(load(path, "there")).rejects.toThrow(
      /contexts: expected an entry named "there"; there are: here, anon/,
    );
  });

  test("that is missing, no YAML, no mapping, or a list of files is refused by name", async () => {
    await expect(load("/nowhere/config")).rejects.toMatchObject({
      code: "invalid",
      id: "NK1202",
      message: /\/nowhere\/config/,
    });
    await writeFile(join(directory, "bad"), "a: [");
    await expect(load(join(directory, "bad"))).rejects.toMatchObject({ code: "invalid" });
    await writeFile(join(directory, "bad"), "- a");
    await expect(load(join(directory, "bad"))).rejects.toThrow(/expected a mapping/);
    await expect(load("/a:/b")).rejects.toThrow(/expected one file/);
  });
});

describe("in a pod", () => {
  test("the service account is used, also over IPv6", async () => {
    const serviceAccountDirectory = join(directory, "sa");
    await mkdir(serviceAccountDirectory);
    await writeFile(join(serviceAccountDirectory, "token"), "t");
    const environment = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" };
    const access = await loadClusterAccess({ environment, serviceAccountDirectory });
    expect(access.server.href).toBe("https://[fd00::1]/");
    expect(access.token).toEqual({ file: join(serviceAccountDirectory, "token") });
    expect(access.certificateAuthority).toEqual({ file: join(serviceAccountDirectory, "ca.crt") });
  });

  test("without a mounted token the file is named", async () => {
    const environment = { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" };
    const loading = loadClusterAccess({ environment, serviceAccountDirectory: directory });
    await expect(loading).rejects.toThrow(join(directory, "token"));
  });

  test("nothing at all: the error names what was looked for", async () => {
    await expect(loadClusterAccess({ environment: {} })).rejects.toThrow(/KUBECONFIG is not set/);
  });
});
