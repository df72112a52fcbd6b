import { expect, it } from "vitest";
import { detailsOf } from "./claim-details.ts";

const exact = {
  deviceClassName: "gpu.example.com",
  allocationMode: "ExactCount",
  count: 2,
  adminAccess: true,
  selectors: [{ cel: { expression: "device.attributes['model'] == 'a'" } }],
  capacity: { requests: { memory: "10Gi" } },
};
const expected = {
  deviceClassName: "gpu.example.com",
  allocationMode: "ExactCount",
  count: 2,
  adminAccess: true,
  selectors: ["device.attributes['model'] == 'a'"],
  capacity: { memory: "10Gi" },
};
const none = { allocationMode: "", count: 0, adminAccess: false, selectors: [], capacity: {} };
const metadata = { name: "claim", labels: { team: "a" }, annotations: { "example.com/note": "b" } };
const alternatives = [
  { name: "large", deviceClassName: "large.example.com" },
  { name: "small", deviceClassName: "small.example.com", count: 2 },
];

it.each([
  ["v1 and v1beta2", { name: "gpu", exactly: exact }],
  ["v1beta1", { name: "gpu", ...exact }],
])("a claim of %s: labels, annotations, and all requests with each alternative", (_, request) => {
  const spec = { devices: { requests: [request, { name: "any", firstAvailable: alternatives }] } };
  expect(detailsOf({ metadata, spec })).toEqual({
    labels: { team: "a" },
    annotations: { "example.com/note": "b" },
    requests: [
      { name: "gpu", ...expected },
      { ...none, name: "any/large", deviceClassName: "large.example.com" },
      { ...none, name: "any/small", deviceClassName: "small.example.com", count: 2 },
    ],
  });
});

it("a claim without any has none, without defaults of ours", () => {
  expect(detailsOf({ metadata: { name: "claim" } })).toEqual({ labels: {}, annotations: {}, requests: [] });
  const spec = { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "c" } }] } };
  expect(detailsOf({ metadata, spec }).requests).toEqual([{ ...none, name: "gpu", deviceClassName: "c" }]);
});
