import { isDnsSubdomain, isQuantity, quote } from "@nodekeeper/core/lib";
import type { CheckedPools } from "../model/checked.ts";
import { isSemanticVersion } from "../model/field-names.ts";
import { oldNameOf } from "../model/mapped-names.ts";
import type {
  Device,
  DeviceAttribute,
  DevicePool,
  DeviceProblem,
  NamedAttribute,
  NamedInstance,
  NamedResources,
} from "../model/model.ts";
import type { ValidationOptions } from "../model/validate.ts";
import { gatedFields } from "./gated-fields.ts";

/** Models that are valid in resource.k8s.io/v1alpha2, with the quarantined instances and why. */
export type CheckedModels = Omit<CheckedPools, "pools"> & { models: NamedResources[] };

/**
 * Checks models by the rules of Kubernetes 1.30. Invalid instances are quarantined and reported; the others are
 * published. If instances of any models share a name, the first is kept. Problems are reported under the name `pool`.
 */
export function checkModels(
  models: readonly NamedResources[],
  pool: string,
  { maxDevices, maxProblems }: Omit<ValidationOptions, "maxPools">,
): CheckedModels {
  const answer: CheckedModels = { models: [], problems: [], quarantined: 0 };
  const names = new Set<string>();
  for (const model of models) {
    const instances = model.instances.filter((instance) => {
      const problem =
        problemOf(instance) ??
        (names.has(instance.name)
          ? { field: "name", message: "duplicates the name of an earlier instance" }
          : undefined) ??
        (names.size >= maxDevices
          ? { field: "name", message: "the driver has more instances than allowed" }
          : undefined);
      if (!problem) {
        names.add(instance.name);
        return true;
      }
      answer.quarantined++;
      if (answer.problems.length < maxProblems) {
        answer.problems.push({ pool, device: instance.name.slice(0, 253), ...problem });
      }
      return false;
    });
    answer.models.push({ instances });
  }
  return answer;
}

/**
 * Converts pools to the v1alpha2 model, one model per pool. Omits what that model has no field for. A device that would
 * be allocated wrongly without the field is quarantined and reported.
 */
export function modelsOfPools(pools: readonly DevicePool[]): {
  models: NamedResources[];
  problems: DeviceProblem[];
} {
  const problems: DeviceProblem[] = [];
  const models: NamedResources[] = [];
  const message = "quarantined: resource.k8s.io/v1alpha2 has no such field";
  for (const { name: pool, fields = {}, devices } of pools) {
    const instances = devices.flatMap((device) => {
      const need = gatedFields(device, fields).find(({ isUnsafe }) => isUnsafe);
      if (!need) return [instanceOf(device)];
      problems.push({ pool, device: device.name, field: need.field, message });
      return [];
    });
    models.push({ instances });
  }
  return { models, problems };
}

function instanceOf({ name, attributes = {}, capacity = {} }: Device): NamedInstance {
  const values = Object.entries(attributes).flatMap(([key, attribute]) =>
    oldAttribute(oldNameOf(key), attribute),
  );
  // The v1alpha2 model has one namespace for both. The prefix keeps a capacity from colliding with an attribute of the
  // same name.
  const quantities = Object.entries(capacity).map(([key, { value }]): NamedAttribute => {
    const isTaken = Object.hasOwn(attributes, key);
    return { name: oldNameOf(isTaken ? `capacity/${key}` : key), quantity: value };
  });
  return { name: oldNameOf(name), attributes: [...values, ...quantities] };
}

function oldAttribute(
  name: string,
  { bools, versions, ints, strings, ...scalar }: DeviceAttribute,
): NamedAttribute[] {
  if (ints) return [{ name, intSlice: { ints } }];
  if (strings) return [{ name, stringSlice: { strings } }];
  return Object.keys(scalar).length > 0 ? [{ name, ...scalar }] : [];
}

function problemOf(instance: NamedInstance): { field: string; message: string } | undefined {
  if (!isDnsSubdomain(instance.name)) {
    return { field: "name", message: `${quote(instance.name)} is not a DNS subdomain` };
  }
  const names = new Set<string>();
  for (const { name, ...value } of instance.attributes) {
    const field = `attributes[${name.slice(0, 100)}]`;
    if (!isDnsSubdomain(name)) return { field, message: `${quote(name)} is not a DNS subdomain` };
    if (names.has(name)) return { field, message: "is duplicated" };
    names.add(name);
    const kinds = Object.keys(value);
    if (kinds.length !== 1) {
      return {
        field,
        message: kinds.length === 0 ? "has no value" : `has more than one value: ${kinds.join(", ")}`,
      };
    }
    if (value.version !== undefined && !isSemanticVersion(value.version)) {
      return { field, message: `${quote(value.version)} is not a version of semver.org 2.0.0` };
    }
    if (value.quantity !== undefined && !isQuantity(value.quantity)) {
      return { field, message: `${quote(value.quantity)} is not a quantity` };
    }
  }
  return undefined;
}
