{{/* The name of all objects. */}}
{{- define "kohort.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains "kohort" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-kohort" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "kohort.selector" -}}
app.kubernetes.io/name: kohort
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kohort.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "kohort.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: kohort
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "kohort.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The names of controllers that are on. */}}
{{- define "kohort.controllers" -}}
{{- $on := list -}}
{{- range $name, $is := .Values.controllers -}}
{{- if $is -}}{{- $on = append $on $name -}}{{- end -}}
{{- end -}}
{{- toJson $on -}}
{{- end -}}

{{/* The processes: name, and which of scheduler and controllers it runs. */}}
{{- define "kohort.parts" -}}
{{- $name := include "kohort.fullname" . -}}
{{- $controllers := include "kohort.controllers" . | fromJsonArray -}}
{{- $parts := list -}}
{{- if not .Values.split -}}
{{- $runs := list -}}
{{- if .Values.scheduler.enabled -}}{{- $runs = append $runs "scheduler" -}}{{- end -}}
{{- if $controllers -}}{{- $runs = append $runs "controllers" -}}{{- end -}}
{{- if $runs -}}{{- $parts = list (dict "name" $name "component" "kohort" "runs" $runs) -}}{{- end -}}
{{- else -}}
{{- if .Values.scheduler.enabled -}}
{{- $parts = append $parts (dict "name" (printf "%s-scheduler" $name) "component" "scheduler" "runs" (list "scheduler")) -}}
{{- end -}}
{{- if $controllers -}}
{{- $parts = append $parts (dict "name" (printf "%s-controllers" $name) "component" "controllers" "runs" (list "controllers")) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.dashboard.enabled $parts -}}
{{- $_ := set (first $parts) "runs" (append (first $parts).runs "dashboard") -}}
{{- end -}}
{{- if and .Values.webhook.enabled (or $controllers .Values.webhook.grouping) -}}
{{- $runs := list "webhook" -}}
{{- if .Values.webhook.grouping -}}{{- $runs = append $runs "webhook-groups" -}}{{- end -}}
{{- $parts = append $parts (dict "name" (printf "%s-webhook" $name) "component" "webhook" "runs" $runs) -}}
{{- end -}}
{{- if not $parts -}}
{{- fail "scheduler.enabled, controllers and webhook.grouping: nothing is switched on; switch on the scheduler or a controller" -}}
{{- end -}}
{{- toJson $parts -}}
{{- end -}}

{{/* The configuration of one part. */}}
{{- define "kohort.config" -}}
{{- $root := .root -}}{{- $part := .part -}}
{{- $made := dict
  "apiVersion" "config.kohort.dev/v1alpha1"
  "kind" "KohortConfiguration"
  "scheduler" (has "scheduler" $part.runs)
  "listen" (printf "%s:%d" $root.Values.listenAddress (int $root.Values.port))
  "logFormat" $root.Values.log.format
-}}
{{- $election := dict "namespace" $root.Release.Namespace "name" $part.name -}}
{{- range $name, $value := $root.Values.leaderElection -}}{{- $_ := set $election $name (int $value) -}}{{- end -}}
{{- if not (has "webhook" $part.runs) -}}{{- $_ := set $made "leaderElection" $election -}}{{- end -}}
{{- if has "webhook" $part.runs -}}
{{- $webhook := dict "listen" (printf "%s:%d" $root.Values.listenAddress (int $root.Values.webhook.port)) "name" $part.name "namespace" $root.Release.Namespace -}}
{{- if eq $root.Values.webhook.certificates "cert-manager" -}}
{{- $_ := set $webhook "certificate" "/etc/kohort-webhook/tls.crt" -}}
{{- $_ := set $webhook "key" "/etc/kohort-webhook/tls.key" -}}
{{- end -}}
{{- $_ := set $made "webhook" $webhook -}}
{{- $_ := set $made "schedulerNames" $root.Values.scheduler.names -}}
{{- end -}}
{{- if has "scheduler" $part.runs -}}
{{- $_ := set $made "schedulerNames" $root.Values.scheduler.names -}}
{{- if $root.Values.scheduler.profile -}}{{- $_ := set $made "profile" "/etc/kohort/profile.yaml" -}}{{- end -}}
{{- end -}}
{{- $words := list "none" -}}
{{- if and (or (has "controllers" $part.runs) (has "webhook" $part.runs)) (include "kohort.controllers" $root | fromJsonArray) -}}
{{- $words = list "*" -}}
{{- range $name, $is := $root.Values.controllers -}}
{{- if not $is -}}{{- $words = append $words (printf "-%s" $name) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set $made "controllers" $words -}}
{{- if has "dashboard" $part.runs -}}
{{- $page := dict "listen" "127.0.0.1:10353" -}}
{{- if $root.Values.dashboard.tlsSecret -}}
{{- $page = dict "listen" (printf "%s:10353" $root.Values.listenAddress) "certificate" "/etc/kohort-dashboard/tls.crt" "key" "/etc/kohort-dashboard/tls.key" -}}
{{- end -}}
{{- $_ := set $made "dashboard" $page -}}
{{- end -}}
{{- if $root.Values.namespaces -}}{{- $_ := set $made "namespaces" $root.Values.namespaces -}}{{- end -}}
{{- if $root.Values.featureGates -}}{{- $_ := set $made "featureGates" $root.Values.featureGates -}}{{- end -}}
{{- if $root.Values.settings -}}{{- $_ := set $made "settings" $root.Values.settings -}}{{- end -}}
{{- toYaml (mergeOverwrite $made $root.Values.config) -}}
{{- end -}}
