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

{{/* The AgentConfiguration: what the values say, and over it .Values.config. */}}
{{- define "nodekeeper.configuration" -}}
{{- $settings := dict
  "apiVersion" "nodekeeper.dev/v1alpha1"
  "kind" "AgentConfiguration"
  "hostRoot" "/host"
  "server" (dict "address" (printf "127.0.0.1:%v" .Values.statusServer.port))
  "plugins" (dict
    "directories" (list .Values.hostPaths.plugins)
    "endpointDirectories" (list (printf "%s/plugins" .Values.hostPaths.kubelet)))
  "lifecycle" (dict "enabled" .Values.lifecycle.enabled)
  "reporting" (dict
    "inTreePlugins" .Values.reporting.inTreePlugins
    "kubelet" (dict "configFile" (ternary "" "/etc/nodekeeper-kubelet/config" (eq .Values.hostPaths.kubeletConfig ""))))
  "devices" (dict "kubeletPlugin" (dict "enabled" .Values.devices.kubeletPlugin.enabled))
  "eviction" (dict "enabled" .Values.eviction.enabled "dryRunPlugins" (ternary (list "*") (list) .Values.eviction.dryRun))
-}}
{{- if .Values.lifecycle.runtimeEndpoint -}}
{{- $_ := set $settings "runtime" (dict "endpoint" .Values.lifecycle.runtimeEndpoint) -}}
{{- end -}}
{{- mergeOverwrite $settings (deepCopy .Values.config) | toYaml -}}
{{- end -}}
