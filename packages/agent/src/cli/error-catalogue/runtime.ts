import type { CatalogueEntries } from "./entry.ts";

/** NK14xx: the container runtime. */
export const runtimeErrors: CatalogueEntries = {
  NK1409: {
    title: "The kubelet's PodResources API can't be read",
    cause:
      "The kubelet is down, its socket is not mounted into the agent's container, or its answer is too large. The last content stays published.",
    remedy: "Mount the folder of `reporting.kubelet.podResourcesSocket`, and check that the kubelet runs.",
  },
};
