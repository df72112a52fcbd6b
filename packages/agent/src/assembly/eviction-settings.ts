import type { AgentConfiguration } from "@nodekeeper/api/settings";
import type { AnnotationValue, QosAnnotations } from "../eviction/index.ts";
import { pairOf } from "../intree/index.ts";

/** Returns the annotations that set a QoS level in addition to katalyst's. */
export function qosAnnotationsOf({ eviction }: Pick<AgentConfiguration, "eviction">): QosAnnotations {
  const { reclaimed, shared, dedicated, system } = eviction.qosAnnotations;
  return {
    reclaimed_cores: annotationsOf(reclaimed),
    shared_cores: annotationsOf(shared),
    dedicated_cores: annotationsOf(dedicated),
    system_cores: annotationsOf(system),
  };
}

function annotationsOf(list: readonly string[]): AnnotationValue[] {
  return list.map((text) => {
    const [key, value] = pairOf(text);
    return { key, value };
  });
}
