/**
 * Packages of proto/nodekeeper/devices, most recent first. A driver registers with the packages that it serves. Each
 * package is a superset of the older ones, with the same field numbers, so the messages of all packages are decoded as
 * those of the most recent one.
 */
const contracts = ["nodekeeper.devices.v1alpha2", "nodekeeper.devices.v1alpha1"] as const;

export type Contract = (typeof contracts)[number];

/** All packages, as an error lists them. */
export const contractNames = contracts.join(", ");

/** Returns the most recent package that a driver registered with. Undefined if there is none. */
export function contractOf(versions: readonly string[]): Contract | undefined {
  return contracts.find((contract) => versions.includes(contract));
}

/** Returns the full name of a service in the most recent package in which a driver serves it. Undefined: in none. */
export function serviceOf(versions: readonly string[], { name }: { name: string }): string | undefined {
  return contracts.map((contract) => `${contract}.${name}`).find((service) => versions.includes(service));
}
