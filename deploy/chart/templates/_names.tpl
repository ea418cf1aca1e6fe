{{/* The name of what there is one of. There is one Taintward in a cluster: nothing is named after the release. */}}
{{- define "taintward.name" -}}
{{ eq .Values.mode "agent" | ternary "taintward-agent" "taintward" }}
{{- end }}

{{/* The name of what it may do in the whole cluster. */}}
{{- define "taintward.clusterRole" -}}
{{ eq .Values.mode "agent" | ternary "taintward-agent" "taintward-in-cluster" }}
{{- end }}

{{/* By which its pods are found. */}}
{{- define "taintward.podLabels" -}}
app.kubernetes.io/name: taintward
app.kubernetes.io/component: {{ .Values.mode }}
{{- end }}

{{/* The image, by its digest if that is given. */}}
{{- define "taintward.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* Whether a request is a replica's, in CEL. */}}
{{- define "taintward.isReplica" -}}
request.userInfo.username == "system:serviceaccount:{{ .Release.Namespace }}:{{ include "taintward.name" . }}"
{{- end }}

{{/* The account of a replica, as the subject of a binding. */}}
{{- define "taintward.subject" -}}
- kind: ServiceAccount
  name: {{ include "taintward.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
