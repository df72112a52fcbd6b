import { declareError, declareProblem } from "./declare.ts";

// NK16xx: eviction.

export const EvictionNotAccepted = declareProblem({
  id: "NK1601",
  title: "An eviction is not accepted yet",
  cause:
    "A PodDisruptionBudget allows no disruption of the pod now (429): too few replicas are ready, or `maxUnavailable` is 0. Or the API server can't be reached.",
  remedy:
    "Nothing, if the budget is meant: other pods are selected in the next rounds, and this one again after `eviction.failedEvictionPause`. The message names the budget.",
});

export const EvictionFailed = declareProblem({
  id: "NK1602",
  title: "An eviction failed",
  cause:
    "The agent may not create `pods/eviction` or delete pods (403), an admission webhook or a PodDisruptionBudget refused it, or the accepted pod is not terminating. `EvictionKillerReady` fails if a right is missing, or the last three evictions failed.",
  remedy:
    "Compare the agent's role with `deploy/rbac.yaml`; the message has the API server's answer, and `nodekeeper explain pod` each step.",
});

export const EvictionPluginCallFailed = declareProblem({
  id: "NK1603",
  title: "An eviction plugin's call failed",
  cause:
    "The plugin did not respond within its deadline (`eviction.callTimeout`, at most `eviction.syncPeriod`), disconnected, or returned an error. The round continues; the call selects no pod.",
  remedy:
    "Check the plugin's log. `nodekeeper plugins list` shows since when it fails; metrics count its failures.",
});

export const EvictionAnswerRefused = declareError({
  id: "NK1604",
  code: "invalid",
  title: "An eviction plugin's response is invalid",
  cause: "The response can't be decoded, is larger than 16 MiB, or names too many pods.",
  remedy: "Correct the plugin: it should return only the few pods to evict first.",
});

export const EvictionPluginNameInUse = declareError({
  id: "NK1605",
  code: "conflict",
  message: "{name} is the name of another eviction plugin",
  title: "Another eviction plugin has this name",
  cause: "Another eviction plugin, in-tree or external, is registered under the name.",
  remedy: "Rename one of them: see NK1303 and NK1304.",
});

export const PodNotRecorded = declareError({
  id: "NK1606",
  code: "notFound",
  title: "No record of this pod",
  cause:
    "The pod was not on this node while records were kept, or its records have expired (`eviction.records`).",
  remedy:
    "Check namespace and name, and the node: `kubectl get pod -o wide`. The message has the time since which records are kept, and the gaps in them: nothing is known about the time before, or within the gaps.",
});

export const EvictionNoticeNotWritten = declareProblem({
  id: "NK1607",
  title: "A soft eviction's notice can't be written to its file",
  cause:
    "The path of the notice is a link, a directory, or a file with several names. A pod may have created it.",
  remedy:
    "Remove it from the pod's directory below `eviction.softEvictionNotifyPath`. The pod still gets its Event.",
});

export const PluginConditionRefused = declareProblem({
  id: "NK1608",
  title: "A condition of an eviction plugin is invalid",
  cause:
    "The condition's name or effect is invalid for a taint, or the effect is not in `eviction.taintEffects`.",
  remedy:
    "Correct the plugin's condition, or add the effect to `eviction.taintEffects`. The plugin's requests to evict are not affected.",
});

export const EvictionPluginDisconnected = declareProblem({
  id: "NK1609",
  title: "An eviction plugin disconnected",
  cause:
    "Its process exited or its socket was removed. Its conditions, and their taints, stay for the transition period.",
  remedy: "Check the plugin's log. The agent calls the plugin again as soon as it registers.",
});

export const EvictedPodNotTerminating = declareProblem({
  id: "NK1610",
  title: "An evicted pod does not terminate",
  cause:
    "The API server accepted the eviction, but the pod or its containers still run after the grace period: a finalizer, a process that does not exit, or a kubelet that does not act.",
  remedy:
    "`kubectl get pod -o yaml` shows finalizers; check the logs of the kubelet and the container runtime. Other pods are evicted meanwhile.",
});

export const PolicyCannotJudge = declareError({
  id: "NK1611",
  code: "invalid",
  title: "An eviction policy can't evaluate the node or a pod",
  cause:
    "An expression failed: a reading that it uses is missing on this node, or it has no result, for example after a division by zero. `nodekeeper plugins list` shows the field, or the place in the file.",
  remedy:
    "Guard the expression, for example with `has()`. `nodekeeper policy test FILE` shows the values in recorded rounds. The policy evicts no pod that it can't evaluate.",
});

export const ReadingMissing = declareProblem({
  id: "NK1612",
  title: "A reading of an in-tree eviction plugin is missing",
  cause: "A file of `/proc`, `/sys` or a cgroup can't be read, or the kubelet's API does not respond.",
  remedy: "The log line has the reading and the reason. Without the reading, the plugin evicts no pod.",
});

export const RoundsIncomplete = declareProblem({
  id: "NK1613",
  title: "Eviction rounds do not complete",
  cause:
    "The API server has not listed the pods of this node yet, a round failed, or a round takes longer than five times `eviction.syncPeriod`.",
  remedy:
    "The message has the reason. Check the pods' watch in `/readyz?verbose`, and slow plugins in `nodekeeper plugins list`.",
});

export const TaintsMissing = declareProblem({
  id: "NK1614",
  title: "The Node lacks the agent's taints",
  cause: "The Node can't be written, or another client keeps removing the agent's taints.",
  remedy:
    "`nodekeeper explain node` names the client that removed or changed a taint, if the Node's managed fields show it. Configure that client to keep the taints that the annotation `nodekeeper.dev/own-taints` lists.",
});

export const ContainerOutOfMemory = declareProblem({
  id: "NK1615",
  title: "A container was killed: out of memory",
  cause:
    "The container reached its memory limit, or the node ran out of memory and the kernel selected the container.",
  remedy:
    "Compare the limit with the usage in the log line. `nodekeeper explain pod` shows what the agent recorded about the pod. If the node is under pressure, lower the eviction thresholds.",
});

export const EvictionPluginWithoutCalls = declareProblem({
  id: "NK1616",
  title: "An eviction plugin implements no calls",
  cause:
    "The plugin implements neither `ThresholdMet` nor `GetEvictPods` (`UNIMPLEMENTED`): it can't request evictions. The agent calls it again after it registers or connects again.",
  remedy:
    "Implement one of the two calls; `docs/plugin-authors.md` describes their responses. If the plugin has another purpose, do not register it.",
});

export const HardThresholdUnserved = declareProblem({
  id: "NK1617",
  title: "A hard threshold is met, but no pod can be selected",
  cause:
    "The plugin's call for pods fails or is late, it returns no pod or only pods that can't be evicted, no candidate can be evicted, or the node's limit of evictions is reached. The message has the reason.",
  remedy:
    "`nodekeeper rounds` and `nodekeeper plugins list` have the plugin's errors. If it returns pods that can't be evicted, see `nodekeeper explain pod` for each; if the scope is unknown, the plugin must report the candidates with its threshold. After a minute, the Node has the condition `EvictionBlocked`.",
});
