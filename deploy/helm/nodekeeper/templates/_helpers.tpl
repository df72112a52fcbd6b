{{- define "nodekeeper.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "nodekeeper.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "nodekeeper.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "nodekeeper.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "nodekeeper.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "nodekeeper.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "nodekeeper.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "nodekeeper.user" -}}
{{- printf "system:serviceaccount:%s:%s" (include "nodekeeper.namespace" .) (include "nodekeeper.serviceAccount" .) -}}
{{- end -}}

{{- define "nodekeeper.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository $tag -}}
{{- end -}}
{{- end -}}

{{- define "nodekeeper.selectorLabels" -}}
app.kubernetes.io/name: {{ include "nodekeeper.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "nodekeeper.labels" -}}
{{ include "nodekeeper.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: node-agent
app.kubernetes.io/part-of: nodekeeper
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Removes sections without a value from a map, which would replace those of another in mergeOverwrite. */}}
{{- define "nodekeeper.dropEmptySections" -}}
{{- $map := . -}}
{{- range $key, $value := . -}}
{{- if kindIs "invalid" $value -}}{{- $_ := unset $map $key -}}{{- end -}}
{{- if kindIs "map" $value -}}{{- include "nodekeeper.dropEmptySections" $value -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* The AgentConfiguration: what the values say, and over it .Values.config. */}}
{{- define "nodekeeper.configuration" -}}
{{- $settings := dict
  "apiVersion" "nodekeeper.dev/v1alpha1"
  "kind" "AgentConfiguration"
  "hostRoot" "/host"
  "rollingUpdate" true
  "server" (dict "address" (printf "127.0.0.1:%v" .Values.statusServer.port))
  "plugins" (dict
    "directories" (list .Values.hostPaths.plugins)
    "endpointDirectories" (list (printf "%s/plugins" .Values.hostPaths.kubelet)))
  "lifecycle" (dict "enabled" .Values.lifecycle.enabled)
  "reporting" (dict
    "inTreePlugins" .Values.reporting.inTreePlugins
    "kubelet" (dict "configFile" (ternary "" "/etc/nodekeeper-kubelet/config" (eq .Values.hostPaths.kubeletConfig ""))))
  "devices" (dict
    "clusterPools" (dict
      "drivers" .Values.devices.clusterPools.drivers
      "leaseNamespace" (include "nodekeeper.namespace" .))
    "kubeletPlugin" (dict
      "enabled" .Values.devices.kubeletPlugin.enabled
      "deviceStatus" .Values.devices.kubeletPlugin.deviceStatus))
  "eviction" (dict "enabled" .Values.eviction.enabled "dryRunPlugins" (ternary (list "*") (list) .Values.eviction.dryRun))
-}}
{{- if .Values.lifecycle.runtimeEndpoint -}}
{{- $_ := set $settings "runtime" (dict "endpoint" .Values.lifecycle.runtimeEndpoint) -}}
{{- end -}}
{{- with .Values.archive -}}
{{- if .endpoint -}}
{{- $_ := set $settings "archive" (dict "endpoint" .endpoint "protocol" .protocol) -}}
{{- if .headersSecretName -}}{{- $_ := set $settings.archive "headersFile" "/etc/nodekeeper-archive/headers" -}}{{- end -}}
{{- if .caSecretName -}}{{- $_ := set $settings.archive "caFile" "/etc/nodekeeper-archive/ca.crt" -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if .Values.statusServer.remote.enabled -}}
{{- $_ := merge $settings.server (dict
  "remoteAddress" (printf "0.0.0.0:%v" .Values.statusServer.remote.port)
  "tlsCertFile" "/etc/nodekeeper-tls/tls.crt"
  "tlsPrivateKeyFile" "/etc/nodekeeper-tls/tls.key") -}}
{{- end -}}
{{- $config := deepCopy (default dict .Values.config) -}}
{{- include "nodekeeper.dropEmptySections" $config -}}
{{- mergeOverwrite $settings $config | toYaml -}}
{{- end -}}

{{/*
What the configuration uses, as YAML of booleans: rights, mounts and volumes follow it. It is the merged configuration
that counts, so that .Values.config turns parts on and off as well.
*/}}
{{- define "nodekeeper.uses" -}}
{{- $settings := include "nodekeeper.configuration" . | fromYaml -}}
{{- $eviction := $settings.eviction -}}
{{- $reporters := $settings.reporting.inTreePlugins -}}
{{- $all := has "*" $reporters -}}
{{- $kubelet := and (or $all (has "kubelet-reporter-plugin" $reporters)) (not (has "-kubelet-reporter-plugin" $reporters)) -}}
{{- $system := and (or $all (has "system-reporter-plugin" $reporters)) (not (has "-system-reporter-plugin" $reporters)) -}}
{{- $killers := list (default "evictionApi" $eviction.killer) -}}
{{- range $eviction.killerRules -}}
{{- $killers = append $killers (splitList "=" . | last) -}}
{{- end -}}
{{- $isDryRun := has "*" $eviction.dryRunPlugins -}}
{{- range $eviction.dryRunPlugins -}}
{{- if hasPrefix "-" . -}}{{- $isDryRun = false -}}{{- end -}}
{{- end -}}
{{- $isEvictionOn := eq true $eviction.enabled -}}
{{- $evicts := and $isEvictionOn (not $isDryRun) -}}
{{- $kubeletPlugin := eq true $settings.devices.kubeletPlugin.enabled -}}
lifecycle: {{ eq true $settings.lifecycle.enabled }}
kubeletReporter: {{ $kubelet }}
kubeletPlugin: {{ $kubeletPlugin }}
deviceStatus: {{ and $kubeletPlugin (eq true $settings.devices.kubeletPlugin.deviceStatus) }}
clusterPools: {{ gt (len $settings.devices.clusterPools.drivers) 0 }}
deviceMetadata: {{ and $kubeletPlugin (eq true (default false $settings.devices.kubeletPlugin.metadata)) }}
host: {{ or $kubelet $system $isEvictionOn $kubeletPlugin }}
eviction: {{ $isEvictionOn }}
evictionApi: {{ and $evicts (has "evictionApi" $killers) }}
deletion: {{ and $evicts (has "deletion" $killers) }}
reviews: {{ or (and $isEvictionOn (eq true $eviction.strict)) (ne "" (default "" $settings.server.tlsCertFile)) }}
remote: {{ .Values.statusServer.remote.enabled }}
archiveSecrets: {{ and (ne "" .Values.archive.endpoint) (or (ne "" .Values.archive.headersSecretName) (ne "" .Values.archive.caSecretName)) }}
{{- end -}}

{{/* The drivers whose pools beyond the node any agent may write, as a CEL list. */}}
{{- define "nodekeeper.clusterPoolDrivers" -}}
{{- $settings := include "nodekeeper.configuration" . | fromYaml -}}
{{- $settings.devices.clusterPools.drivers | toJson -}}
{{- end -}}

{{/* The Leases of these drivers, as JSON. */}}
{{- define "nodekeeper.clusterPoolLeases" -}}
{{- $names := list -}}
{{- range include "nodekeeper.clusterPoolDrivers" . | fromJsonArray -}}
{{- $names = append $names (printf "nodekeeper-pools-%s" .) -}}
{{- end -}}
{{- $names | toJson -}}
{{- end -}}

{{- define "nodekeeper.leaseNamespace" -}}
{{- (include "nodekeeper.configuration" . | fromYaml).devices.clusterPools.leaseNamespace -}}
{{- end -}}

{{/* The container runtime mounts files of it, so it has the same path on the host. */}}
{{- define "nodekeeper.metadataDirectory" -}}
{{- $settings := include "nodekeeper.configuration" . | fromYaml -}}
{{- default "/var/lib/nodekeeper/device-metadata" $settings.devices.kubeletPlugin.metadataDirectory -}}
{{- end -}}

{{- define "nodekeeper.serverName" -}}
{{- default (printf "%s.%s.svc" (include "nodekeeper.fullname" .) (include "nodekeeper.namespace" .)) .Values.statusServer.remote.serverName -}}
{{- end -}}

{{- define "nodekeeper.tlsSecretName" -}}
{{- default (printf "%s-tls" (include "nodekeeper.fullname" .)) .Values.statusServer.remote.tlsSecretName -}}
{{- end -}}

{{/*
With surge, the new agent of a node takes over from the old one. Without it if statusServer.remote is enabled: a declared port of
the host keeps a second pod from being scheduled, and without hostNetwork each pod is probed at its own address, on which an
agent that waits or has handed over does not listen.
*/}}
{{- define "nodekeeper.updateStrategy" -}}
{{- if .Values.updateStrategy -}}
{{- toYaml .Values.updateStrategy -}}
{{- else if .Values.statusServer.remote.enabled -}}
type: RollingUpdate
rollingUpdate:
  maxUnavailable: 10%
{{- else -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: 10%
  maxUnavailable: 0
{{- end -}}
{{- end -}}

{{/* The value of a setting in a configuration as JSON; empty if it is not set. */}}
{{- define "nodekeeper.setting" -}}
{{- $value := .configuration -}}
{{- range splitList "." .path -}}
{{- $value = ternary $value dict (kindIs "map" $value) -}}
{{- $value = get $value . -}}
{{- end -}}
{{- if not (has $value (list nil "")) -}}{{- toJson $value -}}{{- end -}}
{{- end -}}

{{/*
The settings that a running agent does not apply. Their checksum is an annotation of the pods, which are replaced if it
changes.
*/}}
{{- define "nodekeeper.restartSettings" -}}
{{- $configuration := include "nodekeeper.configuration" . | fromYaml -}}
{{- range (.Files.Get "files/settings.json" | fromJson).restart }}
{{ . }}: {{ include "nodekeeper.setting" (dict "configuration" $configuration "path" .) }}
{{- end -}}
{{- end -}}

{{/* Durations and sizes of .Values.config that the agent would refuse; the schema has checked how they are written. */}}
{{- define "nodekeeper.validateRanges" -}}
{{- $known := .Files.Get "files/settings.json" | fromJson -}}
{{- $durations := dict "h" 3600000 "m" 60000 "s" 1000 "ms" 1 "us" 0.001 "µs" 0.001 "μs" 0.001 "ns" 0.000001 -}}
{{- $sizes := dict "" 1 "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976 -}}
{{- include "nodekeeper.validateRangesOf" (dict "config" .Values.config "ranges" $known.durations "units" $durations) -}}
{{- include "nodekeeper.validateRangesOf" (dict "config" .Values.config "ranges" $known.sizes "units" $sizes) -}}
{{- end -}}

{{- define "nodekeeper.validateRangesOf" -}}
{{- $root := . -}}
{{- range $path, $range := .ranges -}}
{{- $given := include "nodekeeper.setting" (dict "configuration" $root.config "path" $path) -}}
{{- $value := 0.0 -}}
{{- range regexFindAll "([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?[a-zA-Zµμ]*" $given -1 -}}
{{- $unit := regexFind "[a-zA-Zµμ]*$" . -}}
{{- $value = addf $value (mulf (trimSuffix $unit . | float64) (get $root.units $unit)) -}}
{{- end -}}
{{- if hasPrefix "-" (trimAll "\"" $given) -}}{{- $value = mulf -1 $value -}}{{- end -}}
{{- if and $given (or (lt $value (float64 $range.minimum)) (gt $value (float64 $range.maximum))) -}}
{{- fail (printf "config.%s: got %s, expected %s" $path $given $range.expected) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The annotations of what runs when the release was deleted; the argument is its place in the order. */}}
{{- define "nodekeeper.uninstallHook" -}}
helm.sh/hook: post-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* A map of labels as a selector: "a=1,b=2". */}}
{{- define "nodekeeper.selectorText" -}}
{{- $terms := list -}}
{{- range $key, $value := . -}}{{- $terms = append $terms (printf "%s=%s" $key $value) -}}{{- end -}}
{{- join "," $terms -}}
{{- end -}}

{{/* Values that contradict each other, each with what to set. */}}
{{- define "nodekeeper.validate" -}}
{{- include "nodekeeper.validateRanges" . -}}
{{- $remote := .Values.statusServer.remote.enabled -}}
{{- if and .Values.podMonitor.enabled (not $remote) -}}
{{- fail "podMonitor.enabled needs statusServer.remote.enabled=true: metrics are on the loopback of the node otherwise, which Prometheus does not reach" -}}
{{- end -}}
{{- if and (not .Values.hostNetwork) (not $remote) -}}
{{- fail "hostNetwork=false needs statusServer.remote.enabled=true: the kubelet does not reach the loopback of the pod for its probes" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled .Values.hostNetwork -}}
{{- fail "networkPolicy.enabled needs hostNetwork=false: a NetworkPolicy has no effect on a pod with the host's network" -}}
{{- end -}}
{{- if include "nodekeeper.setting" (dict "configuration" .Values.config "path" "server.address") -}}
{{- fail (printf "config.server.address has no effect: the agent, its probes and the commands in its container use 127.0.0.1:%v; set statusServer.port" .Values.statusServer.port) -}}
{{- end -}}
{{- if and $remote .Values.hostNetwork (eq (int .Values.statusServer.port) (int .Values.statusServer.remote.port)) -}}
{{- fail "statusServer.port and statusServer.remote.port must differ" -}}
{{- end -}}
{{- end -}}

{{/* What a probe asks: on the loopback of the host, or of the pod's own address over TLS. */}}
{{- define "nodekeeper.probe" -}}
httpGet:
  path: {{ .path }}
  {{- if .root.Values.hostNetwork }}
  host: 127.0.0.1
  port: {{ .root.Values.statusServer.port }}
  {{- else }}
  scheme: HTTPS
  port: {{ .root.Values.statusServer.remote.port }}
  {{- end }}
{{- end -}}

{{/* The labels of what `helm test` creates: not those of the agents' pods. */}}
{{- define "nodekeeper.testLabels" -}}
app.kubernetes.io/name: {{ include "nodekeeper.name" . | trunc 58 }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: test
{{- end -}}

{{/* Its annotations. If the test fails, its pod stays, for the log. */}}
{{- define "nodekeeper.testHook" -}}
helm.sh/hook: test
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* What the containers of `helm test` have in common. */}}
{{- define "nodekeeper.testContainer" -}}
image: {{ include "nodekeeper.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
resources:
  requests:
    cpu: 10m
    memory: 50Mi
  limits:
    memory: 200Mi
{{- end -}}
