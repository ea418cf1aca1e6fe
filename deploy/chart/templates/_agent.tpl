{{/*
What the agent is told. Its own queues, schedules and roles are named after the service and its ID, as its stack names them; Kubernetes
puts the first five into the others, so that whoever patches manifests patches those alone.
*/}}
{{- define "taintward.agentEnvironment" -}}
{{- $region := required "agent.region: say where the service is deployed, such as eu-west-1." .Values.agent.region -}}
{{- $partition := hasPrefix "cn-" $region | ternary "aws-cn" (hasPrefix "us-gov-" $region | ternary "aws-us-gov" "aws") -}}
{{- $domain := hasPrefix "cn-" $region | ternary "amazonaws.com.cn" "amazonaws.com" -}}
- name: AWS_REGION
  value: {{ $region | quote }}
- name: ACCOUNT
  value: {{ required "agent.account: say the account that the service is in, twelve digits in quotes." .Values.agent.account | quote }}
- name: SERVICE
  value: {{ .Values.agent.installation | quote }}
- name: CLUSTER
  value: {{ required "agent.cluster: say the name that this cluster is registered under." .Values.agent.cluster | quote }}
- name: AGENT
  value: {{ required "agent.id: say the agent's own ID, such as edge-1." .Values.agent.id | quote }}
- name: INSTALLATION_NAME
  value: $(SERVICE).$(AWS_REGION).$(ACCOUNT)
- name: TABLE_NAME
  value: $(SERVICE)
- name: NODE_DELTAS_URL
  value: https://sqs.$(AWS_REGION).{{ $domain }}/$(ACCOUNT)/$(SERVICE)-node-deltas.fifo
- name: POD_DELTAS_URL
  value: https://sqs.$(AWS_REGION).{{ $domain }}/$(ACCOUNT)/$(SERVICE)-pod-deltas.fifo
- name: EVICTIONS_DUE_URL
  value: https://sqs.$(AWS_REGION).{{ $domain }}/$(ACCOUNT)/$(SERVICE)-agent-$(AGENT)-evictions-due
- name: EVICTIONS_DUE_ARN
  value: arn:{{ $partition }}:sqs:$(AWS_REGION):$(ACCOUNT):$(SERVICE)-agent-$(AGENT)-evictions-due
- name: DEAD_LETTER_QUEUE_URL
  value: https://sqs.$(AWS_REGION).{{ $domain }}/$(ACCOUNT)/$(SERVICE)-agent-$(AGENT)-evictions-due-dlq
- name: SCHEDULE_GROUP_NAME
  value: $(SERVICE)-agent-$(AGENT)
- name: SCHEDULE_ROLE_ARN
  value: arn:{{ $partition }}:iam::$(ACCOUNT):role/$(SERVICE)-agent-$(AGENT)-schedules-$(AWS_REGION)
- name: HISTORY_DAYS
  value: {{ .Values.historyDays | quote }}
- name: COMPARISON_OPERATORS
  value: {{ .Values.comparisonOperators | quote }}
{{- end }}
