{{/* The settings that a policy document may have; the service reads all of it to the last field. */}}
{{- define "taintward.policySettings" -}}
mode guard evictionRate maxEvictionsPerWorkload releaseRate exclude include method evict tolerationSecondsOverrides requireExpiredLease treatAsNoExecute giveUpAfter
{{- end }}

{{/* Those of an entry to exclude or include. */}}
{{- define "taintward.policyEntrySettings" -}}
namespaces labels annotations ownerKinds priorityClassNames taints until
{{- end }}

{{/* Fails for a policy document with a setting that there is not. */}}
{{- define "taintward.checkPolicy" -}}
{{- $policy := .Values.service.policy | fromYaml }}
{{- with $policy.Error }}
{{- fail (printf "service.policy is not a policy document: %s" .) }}
{{- end }}
{{- if not $policy.mode }}
{{- fail "service.policy has no mode: write mode: observe or mode: enforce, or leave service.policy empty" }}
{{- end }}
{{- $settings := include "taintward.policySettings" . | splitList " " }}
{{- range $name := keys $policy | sortAlpha }}
{{- if not (has $name $settings) }}
{{- fail (printf "service.policy has no setting %s: its settings are %s" $name (join ", " $settings)) }}
{{- end }}
{{- end }}
{{- $settings = include "taintward.policyEntrySettings" . | splitList " " }}
{{- range $list := list "exclude" "include" }}
{{- range $index, $entry := get $policy $list | default list }}
{{- if kindIs "map" $entry }}
{{- range $name := keys $entry | sortAlpha }}
{{- if not (has $name $settings) }}
{{- fail (printf "service.policy.%s[%d] has no setting %s: its settings are %s" $list $index $name (join ", " $settings)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
