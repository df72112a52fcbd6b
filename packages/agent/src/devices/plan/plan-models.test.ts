import type { KubeObject } from "@nodekeeper/core/kube";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkModels,
  decodeModel,
  defaultValidation,
  encodeModel,
  modelsOfPools,
  type NamedResources,
  planModels,
  storedModel,
} from "../index.ts";
import { anyDevice, driver, nodeName, poolOf } from "../testing/slice-store.ts";

function modelOf(...names: string[]): NamedResources {
  return { instances: names.map((name) => ({ name, attributes: [{ name: "memory", quantity: "1Gi" }] })) };
}

class ModelStore {
  readonly objects = new Map<string, KubeObject>();

  sync(models: NamedResources[]) {
    const stored = [...this.objects.values()].map((object) => storedModel(object));
    const plan = planModels({ driver, nodeName, models, stored });
    for (const { name } of plan.deletes) this.objects.delete(name);
    for (const { stored, model } of plan.updates)
      this.#put(encodeModel(stored.metadata, driver, nodeName, model));
    for (const { name, model } of plan.creates) {
      expect(this.objects.has(name)).toBe(false);
      this.#put(encodeModel({ name }, driver, nodeName, model));
    }
    return plan;
  }

  #put(object: KubeObject): void {
    this.objects.set(object.metadata.name!, JSON.parse(JSON.stringify(object).replaceAll("1Gi", "1024Mi")));
  }
}

describe("planModels", () => {
  const model = fc.constantFrom(modelOf(), modelOf("a"), modelOf("a", "b"), modelOf("c"));

  test("one slice for each model, alike ones too, and then nothing more to do", () => {
    fc.assert(
      fc.property(fc.array(fc.array(model, { maxLength: 6 }), { minLength: 1, maxLength: 4 }), (states) => {
        const store = new ModelStore();
        for (const models of states) {
          const before = store.objects.size;
          const plan = store.sync(models);
          expect(plan.creates.length).toBe(Math.max(0, models.length - before));
          const texts = (list: NamedResources[]) =>
            list.map((entry) => JSON.stringify(entry).replaceAll("1024Mi", "1Gi")).sort();
          expect(texts([...store.objects.values()].map(decodeModel))).toEqual(texts(models));
          expect(store.sync(models)).toEqual({ deletes: [], updates: [], creates: [] });
        }
      }),
    );
  });

  test("a slice as Kubernetes 1.30 has it", () => {
    const { instances } = modelOf("gpu.0");
    const object = encodeModel({ name: "x" }, driver, nodeName, { instances });
    expect(object).toEqual({
      apiVersion: "resource.k8s.io/v1alpha2",
      kind: "ResourceSlice",
      metadata: { name: "x" },
      nodeName,
      driverName: driver,
      namedResources: { instances },
    });
  });
});

describe("checkModels", () => {
  test("an invalid instance is quarantined, the others are published", () => {
    const models: NamedResources[] = [
      modelOf("gpu.0", "Not A Name", "gpu.0"),
      {
        instances: [
          { name: "none", attributes: [{ name: "a" }] },
          { name: "two", attributes: [{ name: "a", bool: true, int: 1 }] },
          { name: "version", attributes: [{ name: "a", version: "1.2.3.4" }] },
          { name: "quantity", attributes: [{ name: "a", quantity: "?" }] },
          { name: "gpu.1", attributes: [] },
        ],
      },
    ];
    const answer = checkModels(models, nodeName, defaultValidation);
    expect(answer.models.map(({ instances }) => instances.map(({ name }) => name))).toEqual([
      ["gpu.0"],
      ["gpu.1"],
    ]);
    expect(answer.problems.map(({ device }) => device)).toEqual([
      "Not A Name",
      "gpu.0",
      "none",
      "two",
      "version",
      "quantity",
    ]);
    expect(answer.quarantined).toBe(6);
  });
});

describe("modelsOfPools", () => {
  test("any device becomes a good instance, or is quarantined and named", () => {
    fc.assert(
      fc.property(fc.array(anyDevice("x"), { maxLength: 5 }), (devices) => {
        const named = devices.map((device, at) => ({ ...device, name: `gpu-${at}` }));
        const { models, problems } = modelsOfPools([poolOf(named)]);
        const answer = checkModels(models, nodeName, defaultValidation);
        expect(answer.problems).toEqual([]);
        expect(models[0]!.instances.length + problems.length).toBe(named.length);
      }),
    );
  });
});
