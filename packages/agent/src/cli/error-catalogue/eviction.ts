import type { CatalogueEntries } from "./entry.ts";

/** NK16xx: eviction. */
export const evictionErrors: CatalogueEntries = {
  NK1601: {
    title: "An eviction is not accepted yet",
    cause:
      "A PodDisruptionBudget allows no disruption of the pod now (429): too few replicas are ready, or `maxUnavailable` is 0. Or the API server can't be reached.",
    remedy:
      "Nothing, if the budget is meant: other pods are selected in the next rounds, and this one again after `eviction.failedEvictionPause`. The message names the budget.",
  },
  NK1602: {
    title: "An eviction failed",
    cause:
      "The agent may not create `pods/eviction` or delete pods (403), an admission webhook or a PodDisruptionBudget refused it, or the accepted pod is not terminating. `EvictionKillerReady` fails if a right is missing, or the last three evictions failed.",
    remedy:
      "Compare the agent's role with `deploy/rbac.yaml`; the message has the API server's answer, and `nodekeeper explain pod` each step.",
  },
  NK1603: {
    title: "An eviction plugin's call failed",
    cause:
      "The plugin had no answer within its deadline (`eviction.callTimeout`, at most `eviction.syncPeriod`), disconnected, or answered with an error. The round continues; the call selects no pod.",
    remedy:
      "Look at the plugin's log. `nodekeeper plugins list` shows since when; metrics count its failures.",
  },
  NK1604: {
    title: "An eviction plugin's answer is refused",
    cause: "The answer can't be decoded, is larger than 16 MiB, or names too many pods.",
    remedy: "Correct the plugin: it should name the few pods that are to be evicted first.",
  },
  NK1605: {
    title: "A plugin can't be asked under this name",
    cause: "Another eviction plugin, in-tree or external, is served under the name.",
    remedy: "Rename one of them: see NK1303 and NK1304.",
  },
  NK1606: {
    title: "No record of this pod",
    cause:
      "The pod was not on this node while records were kept, or its records have expired (`eviction.records`).",
    remedy:
      "Check namespace and name, and the node: `kubectl get pod -o wide`. The message has the time since which records are kept, and the gaps in them: nothing is known about the time before, or within the gaps.",
  },
  NK1607: {
    title: "A soft eviction's notice can't be written to its file",
    cause:
      "Something else lies at the path of the notice: a link, a folder, or a file with several names. A pod may have put it there.",
    remedy:
      "Remove it from the pod's folder below `eviction.softEvictionNotifyPath`. The pod still gets its Event.",
  },
  NK1608: {
    title: "A condition of an eviction plugin is refused",
    cause:
      "The condition's name or effect is not valid for a taint, or the effect is not in `eviction.taintEffects`.",
    remedy:
      "Correct the plugin's condition, or add the effect to `eviction.taintEffects`. The plugin's requests to evict are not affected.",
  },
  NK1609: {
    title: "An eviction plugin disconnected",
    cause:
      "Its process exited or its socket was removed. Its conditions, and their taints, stay for the transition period.",
    remedy: "Look at the plugin's log. It is asked again as soon as it has registered again.",
  },
  NK1610: {
    title: "An evicted pod does not terminate",
    cause:
      "The API server accepted the eviction, and the pod or its containers still run after its grace period: a finalizer, a process that does not exit, or a kubelet that does not act.",
    remedy:
      "`kubectl get pod -o yaml` shows finalizers; look at the kubelet's and the container runtime's log. Other pods are evicted meanwhile.",
  },
  NK1611: {
    title: "An eviction policy can't judge the node or a pod",
    cause:
      "An expression failed: a reading that it uses is missing on this node, or it has no result, as after a division by zero. `nodekeeper plugins list` has the field, or the place in the file.",
    remedy:
      "Guard the expression, such as with `has()`. `nodekeeper policy test FILE` shows values for recorded rounds. Until then the policy evicts no pod that it can't judge.",
  },
  NK1612: {
    title: "A reading of an in-tree eviction plugin is missing",
    cause: "A file of `/proc`, `/sys` or a cgroup can't be read, or the kubelet's API does not answer.",
    remedy: "The line names the reading and the reason. Without it the plugin evicts no pod.",
  },
  NK1613: {
    title: "Eviction rounds do not complete",
    cause:
      "The API server has not listed the pods of this node yet, a round failed, or a round takes longer than five times `eviction.syncPeriod`.",
    remedy:
      "The message has the reason. See the check of the pods' watch in `/readyz?verbose`, and `nodekeeper plugins list` for plugins that are slow.",
  },
  NK1614: {
    title: "The Node does not have the taints that it should",
    cause: "The Node can't be written, or another client keeps removing the agent's taints.",
    remedy:
      "`nodekeeper explain node` names the client that removed or changed a taint, as far as the Node's managed fields show it. Let it leave the taints that the annotation `nodekeeper.dev/own-taints` lists.",
  },
  NK1615: {
    title: "A container was killed for want of memory",
    cause:
      "The container used its memory limit up, or the node ran out of memory and the kernel selected it.",
    remedy:
      "Compare the limit with the usage in the line. `nodekeeper explain pod` has what the agent knew of the pod; for pressure of the node, set the thresholds of eviction lower.",
  },
  NK1616: {
    title: "An eviction plugin reports nothing",
    cause:
      "The plugin implements neither `ThresholdMet` nor `GetEvictPods` (`UNIMPLEMENTED`): it can request no eviction. The agent calls it again once it has registered or connected again.",
    remedy:
      "Implement one of the two calls; `docs/plugin-authors.md` has what they return. If the plugin does something else, remove its registration.",
  },
  NK1617: {
    title: "A hard threshold is met and no pod may be selected for it",
    cause:
      "The plugin's call for pods fails or is late, it names no pod or only pods that can't be evicted, no candidate can be evicted, or the node's limit of evictions is reached. The message has the reason.",
    remedy:
      "`nodekeeper rounds` and `nodekeeper plugins list` have the plugin's errors. If it names pods that can't be evicted, see `nodekeeper explain pod` of these; for a scope that is not known, let the plugin report the candidates with its threshold. After a minute the Node has the condition `EvictionBlocked`.",
  },
};
