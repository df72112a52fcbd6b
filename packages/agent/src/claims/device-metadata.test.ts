import { describe, expect, it } from "vitest";
import { metadataFile, metadataMounts, metadataOf, metadataPath } from "./device-metadata.ts";

const claim = { driver: "gpu.example.com", namespace: "team", name: "claim-1", uid: "uid-1" };
const device = (request: string, name: string) => ({ request, pool: "worker-1", device: name, shareId: "" });

/** Reads a file as a consumer does: the JSON objects of the stream, and of these the first of a version that it knows. */
function read(text: string, ...known: string[]): Record<string, unknown> {
  const found = text
    .split(/\n(?=\{)/)
    .map((object): Record<string, unknown> => JSON.parse(object))
    .find(({ apiVersion }) => known.includes(String(apiVersion)));
  if (!found) throw new Error("no known version");
  return found;
}

// Types of metadata.resource.k8s.io, v1beta1 and v1alpha1, read independently.
const expected = {
  kind: "DeviceMetadata",
  metadata: { name: "claim-1", namespace: "team", uid: "uid-1", generation: 1 },
  podClaimName: "gpu",
  requests: [
    {
      name: "req/large",
      devices: [
        {
          driver: "gpu.example.com",
          pool: "worker-1",
          name: "gpu-0",
          attributes: { model: { string: "a\n<b>" }, "other.com/sizes": { ints: [1, 2] } },
        },
        { driver: "gpu.example.com", pool: "worker-1", name: "gpu-1" },
      ],
    },
  ],
};

describe("the file of a request", () => {
  const devices = [device("req/large", "gpu-0"), device("req/large", "gpu-1"), device("other", "gpu-2")];
  const metadata = metadataOf({ ...claim, podClaimName: "gpu" }, devices, (_driver, _pool, name) =>
    name === "gpu-0"
      ? { name, attributes: { model: { string: "a\n<b>" }, "other.com/sizes": { ints: [1, 2] } } }
      : undefined,
  );

  it("is a stream of the claim in each version, most recent first", () => {
    const text = metadataFile(metadata.req!);
    for (const version of ["v1beta1", "v1alpha1"]) {
      const apiVersion = `metadata.resource.k8s.io/${version}`;
      expect(read(text, apiVersion)).toEqual({ ...expected, apiVersion });
    }
    expect(
      read(text, "metadata.resource.k8s.io/v1alpha1", "metadata.resource.k8s.io/v1beta1").apiVersion,
    ).toBe("metadata.resource.k8s.io/v1beta1");
  });

  it("is named after the request without its subrequest", () => {
    expect(Object.keys(metadata)).toEqual(["req", "other"]);
    expect(metadataMounts(claim, metadata, (request) => `/host/${request}`).get("req")).toEqual({
      hostPath: "/host/req",
      containerPath:
        "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/claim-1/req/gpu.example.com-metadata.json",
      options: ["ro", "bind"],
    });
  });
});

it("integers beyond 2^53 are exact", () => {
  const metadata = metadataOf(claim, [device("req", "gpu-0")], (_driver, _pool, name) => ({
    name,
    attributes: { id: { int: 9223372036854775807n }, ids: { ints: [-9223372036854775808n] } },
  }));
  expect(metadataFile(metadata.req!).match(/-?922337203685477580\d/g)).toEqual([
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775807",
    "-9223372036854775808",
  ]);
});

it.each([
  ["gpu", "resourceclaimtemplates/gpu"],
  [undefined, "resourceclaims/claim-1"],
  ["", "resourceclaims/claim-1"],
  ["../../../../etc", "resourceclaims/claim-1"],
])("the pod's name of the claim, %j, leads to %s", (podClaimName, directory) => {
  expect(metadataPath({ ...claim, podClaimName }, "req")).toBe(
    `/var/run/kubernetes.io/dra-device-attributes/${directory}/req/gpu.example.com-metadata.json`,
  );
});
