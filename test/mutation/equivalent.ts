/** Survivors that no test can detect, because the changed line does the same. */
export interface Equivalent {
  /** The text of the line on which the mutants start, without indentation. */
  readonly line: string;
  /** The number of mutants by mutator, over all lines of the file with this text. */
  readonly mutants: Readonly<Record<string, number>>;
  readonly reason: string;
}

/** The equivalent mutants of the mutation rooms, by file. */
export const EQUIVALENT: Readonly<Record<string, readonly Equivalent[]>> = {
  'shared/aws/consume.ts': [
    {
      line: 'if (!joins?.([first, ...joined], message.content)) break;',
      mutants: { OptionalChaining: 1 },
      reason: 'In a standard queue, no message is behind another.',
    },
  ],
  'shared/aws/delta-message.ts': [
    {
      line: 'if (known !== undefined) return known;',
      mutants: { ConditionalExpression: 1 },
      reason: 'The text of a list leads to the same index. The lookup only avoids encoding the list.',
    },
    {
      line: 'this.#indexByList.set(list, index);',
      mutants: { CallExpression: 1 },
      reason: 'The text then leads to the index each time.',
    },
    {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: The line is source text.
      line: "const subject = `${nodeKey(ref)}#${onlyPod(delta) ?? 'node'}`;",
      mutants: { StringLiteral: 1 },
      reason: 'No pod has an empty UID.',
    },
  ],
  'shared/aws/due-queues.ts': [
    {
      line: 'failures.push({ ...failure, index: some[failure.index]?.index ?? failure.index });',
      mutants: { OptionalChaining: 1 },
      reason: 'A queue reports the index of a message that it was given.',
    },
  ],
  'shared/aws/sqs-message.ts': [
    {
      line: "if (groupId !== undefined && !ID.test(groupId)) return idFault('groupId');",
      mutants: { ConditionalExpression: 1 },
      reason: 'A regular expression tests `undefined` as the word "undefined", which is a valid ID.',
    },
    {
      line: "if (deduplicationId !== undefined && !ID.test(deduplicationId)) return idFault('deduplicationId');",
      mutants: { ConditionalExpression: 1 },
      reason: 'A regular expression tests `undefined` as the word "undefined", which is a valid ID.',
    },
    {
      line: 'if (groupId === undefined) return;',
      mutants: { ConditionalExpression: 1 },
      reason: 'An entry for `undefined` stops no message, because lookups require a group.',
    },
    {
      line: 'const first = groupId === undefined ? undefined : this.#stoppedGroups.get(groupId);',
      mutants: { ConditionalExpression: 1 },
      reason: 'There is never an entry for `undefined`.',
    },
    {
      line: 'if (first === undefined || first > index) return false;',
      mutants: { EqualityOperator: 1 },
      reason: 'The first failed message is not checked again.',
    },
  ],
  'shared/aws/sqs-sender.ts': [
    {
      line: 'addRefused(batch, Failed ?? [], failures);',
      mutants: { ArrayDeclaration: 1 },
      reason: 'A text has no `Id`, so it matches no message.',
    },
  ],
  'shared/engine/work-queue/moments.ts': [
    {
      line: 'if (this.#heap[0] === at) this.#wait();',
      mutants: { ConditionalExpression: 1 },
      reason: 'The alarm for the first time is set again, to the same time.',
    },
    {
      line: 'for (let [at] = this.#heap; at !== undefined && at <= now; [at] = this.#heap) {',
      mutants: { ConditionalExpression: 1 },
      reason: '`undefined` is at or before no time.',
    },
    {
      line: 'const keys = this.#keys.get(at) ?? [];',
      mutants: { ArrayDeclaration: 1 },
      reason: 'Each time in the heap has keys.',
    },
    {
      line: 'while (place > 0) {',
      mutants: { EqualityOperator: 1 },
      reason: 'The first place has no parent, and ends the loop.',
    },
    {
      line: 'if (parent <= at) break;',
      mutants: { EqualityOperator: 1 },
      reason: 'No time is in the heap twice.',
    },
    {
      line: 'if (last === undefined || heap.length === 0) return;',
      mutants: { ConditionalExpression: 1 },
      reason: 'An empty heap has no last time.',
    },
    {
      line: 'const child = (heap[left + 1] ?? Infinity) < (heap[left] ?? Infinity) ? left + 1 : left;',
      mutants: { EqualityOperator: 1 },
      reason: 'Only two absent children are equal, as no time is in the heap twice.',
    },
    {
      line: 'if (below === undefined || below >= last) break;',
      mutants: { EqualityOperator: 1 },
      reason: 'No time is in the heap twice.',
    },
  ],
  'shared/engine/work-queue/work-queue.ts': [
    {
      line: 'if (this.#stopped) return;',
      mutants: { ConditionalExpression: 1 },
      reason: 'A time that is added after the stop comes for no key.',
    },
    {
      line: 'if (turn.working === 0) break;',
      mutants: { ConditionalExpression: 1 },
      reason: 'No cluster has fewer keys in work; the search only ends earlier.',
    },
    {
      line: 'if (key === undefined) return undefined;',
      mutants: { ConditionalExpression: 1 },
      reason: 'The cluster was chosen because it has a key.',
    },
    {
      line: 'this.#moments.clear();',
      mutants: { CallExpression: 1 },
      reason: 'After the stop, a time comes for no key, and keeps no process alive.',
    },
    {
      line: 'for (const rest of this.#resting.values()) clearTimeout(rest);',
      mutants: { CallExpression: 1 },
      reason: 'After the stop, a delay ends for no key, and keeps no process alive.',
    },
    {
      line: 'this.#tidy(cluster, turn);',
      mutants: { CallExpression: 2 },
      reason: 'A cluster without keys is never chosen, and costs memory alone.',
    },
    {
      line: '#tidy(cluster: ClusterName, turn: Turn<Key>): void {',
      mutants: { BlockStatement: 1 },
      reason: 'A cluster without keys is never chosen, and costs memory alone.',
    },
    {
      line: 'if (sizeOf(turn) === 0) this.#turns.delete(cluster);',
      mutants: { ConditionalExpression: 1, CallExpression: 1 },
      reason: 'A cluster without keys is never chosen, and costs memory alone.',
    },
  ],
  'shared/engine/work-queue/workers.ts': [
    {
      line: 'if (again !== undefined) queue.addAt(key, again);',
      mutants: { ConditionalExpression: 1 },
      reason: '`undefined` is no time, and comes for no key.',
    },
  ],
  'shared/eviction/budget.ts': [
    {
      line: "if (method.kind === 'evict' && isOver(method, found.blocked, now)) {",
      mutants: { ConditionalExpression: 1 },
      reason: 'The other method has no deadline that could pass; the check satisfies the type checker.',
    },
  ],
  'shared/eviction/evaluate.ts': [
    {
      line: ': (last ?? []);',
      mutants: { ArrayDeclaration: 1 },
      reason: 'A string has no effect, so as a taint it evicts no pod.',
    },
    {
      line: 'return deadline ? [{ key, at: deadline.at }] : [];',
      mutants: { ArrayDeclaration: 1 },
      reason: 'A string has no time, so it is neither due nor due later.',
    },
  ],
  'shared/eviction/facts.ts': [
    {
      line: '(least, moment) => (moment === undefined || (least ?? moment + 1) <= moment ? least : moment),',
      mutants: { EqualityOperator: 1 },
      reason: 'If two times are equal, either is the earliest.',
    },
    {
      line: 'return compareVersions(a, b) < 0 ? b : a;',
      mutants: { EqualityOperator: 1 },
      reason: 'If two versions are equal, either is the newer one.',
    },
  ],
  'shared/eviction/gate.ts': [
    {
      line: 'const untils = gates.map((each) => each?.until).filter((until) => until !== undefined);',
      mutants: { OptionalChaining: 1 },
      reason: "If a taint has no gate, the line above has returned, which the type checker can't infer.",
    },
    {
      line: 'return earliest(moments.filter((moment) => moment !== undefined && moment > now));',
      mutants: { ConditionalExpression: 1 },
      reason: '`undefined` is never after `now`; the check satisfies the type checker.',
    },
    {
      line: 'function matchesExpression({ operator, values = [] }: LabelExpression, value: string | undefined): boolean {',
      mutants: { ArrayDeclaration: 1 },
      reason:
        'Without values, only `Exists` and `DoesNotExist` are possible, which ignore values: other policies are rejected.',
    },
    {
      line: 'return value !== undefined && values.includes(value);',
      mutants: { ConditionalExpression: 1 },
      reason: '`undefined` is never one of the values; the check satisfies the type checker.',
    },
    {
      line: 'return value === undefined || !values.includes(value);',
      mutants: { ConditionalExpression: 1 },
      reason: '`undefined` is never one of the values; the check satisfies the type checker.',
    },
    {
      line: 'const before = downSince !== undefined && trippedAt - downSince >= DOWN_BEFORE_MS;',
      mutants: { ConditionalExpression: 1 },
      reason:
        'A time minus `undefined` is NaN, which is never large enough; the check satisfies the type checker.',
    },
  ],
  'shared/eviction/guard.ts': [
    {
      line: 'const zones = new Set([...counts.zones.keys(), ...known.flatMap((each) => each.zone ?? [])]);',
      mutants: { ArrayDeclaration: 1 },
      reason:
        'A zone without counts, trips, and episodes has no node that is down, so its review yields nothing.',
    },
  ],
  'shared/eviction/node-state.ts': [
    {
      line: "const { answeredAt = 0 } = delta.kind === 'node' && delta.wake ? delta : {};",
      mutants: { ConditionalExpression: 1 },
      reason: 'Only node deltas have `wake`; the check satisfies the type checker.',
    },
    {
      line: 'setAgainAt === undefined || isAhead(setAgainAt, latest)',
      mutants: { ConditionalExpression: 1 },
      reason: '`undefined` compares like NaN, which is never later, so the countdown stays.',
    },
    {
      line: 'if (known && compareVersions(delta.version, known.version) < 0) return known;',
      mutants: { EqualityOperator: 1 },
      reason: 'Each version has exactly one delta, whose facts are known already.',
    },
    {
      line: 'const storedOf = countdownsOf(known?.taints ?? []);',
      mutants: { ArrayDeclaration: 1 },
      reason: 'A string has neither key nor effect, so no taint continues its countdown.',
    },
    {
      line: 'const storedOf = countdownsOf(isRecreated ? [] : (known?.taints ?? []));',
      mutants: { ArrayDeclaration: 2 },
      reason: 'A string has neither key nor effect, so no taint continues its countdown.',
    },
    {
      line: 'const setAgainAt = setAgainSince(known?.taints ?? [], evicting);',
      mutants: { ArrayDeclaration: 1 },
      reason: 'A string has neither key nor effect, so no taint continues its countdown.',
    },
    {
      line: 'b !== undefined &&',
      mutants: { ConditionalExpression: 1 },
      reason: 'The lists have the same length, so `b` exists; the check satisfies the type checker.',
    },
  ],
  'shared/eviction/outcome.ts': [
    {
      line: "return note && note.event !== 'released' ? { record, note } : [];",
      mutants: { ConditionalExpression: 1, StringLiteral: 1 },
      reason: 'No pass frees a pod; the check satisfies the type checker.',
    },
    {
      line: "case 'behind':",
      mutants: { StringLiteral: 1 },
      reason: 'This outcome needs no action here.',
    },
    {
      line: "case 'early':",
      mutants: { ConditionalExpression: 1, StringLiteral: 1 },
      reason: 'This outcome needs no action here.',
    },
    {
      line: "case 'fault':",
      mutants: { ConditionalExpression: 1, StringLiteral: 1 },
      reason: 'This outcome needs no action here.',
    },
    {
      line: '[before.scheduled.get(record.uid)?.dueAt, record.dueAt].includes(stored.dueAt) &&',
      mutants: { OptionalChaining: 1 },
      reason: 'Each due record was in the partition before.',
    },
  ],
  'shared/eviction/plan.ts': [
    {
      line: 'const present = new Set([...delta.pods.map((pod) => pod.uid), ...(delta.others ?? [])]);',
      mutants: { ArrayDeclaration: 1 },
      reason: 'No pod has that UID.',
    },
    {
      line: 'const missing = !present.has(record.uid) && compareVersions(delta.version, record.version) >= 0;',
      mutants: { EqualityOperator: 1 },
      reason: "A record of the delta's own version was written by that delta, which names its pod.",
    },
    {
      line: "if (age === 0 && delta.kind === 'node' && !isFree) return leaveAsItIs(node, delta, record);",
      mutants: { ConditionalExpression: 1 },
      reason:
        "A pod delta does not share its version: a record with this version is the pod's own, which the line with `isBy` handles.",
    },
    {
      line: 'const heldMs = Math.max(0, now - (held?.since ?? now));',
      mutants: { OptionalChaining: 1 },
      reason: "Only held records are freed, which the type checker can't infer.",
    },
    {
      line: 'if (record === undefined || moment === undefined) return undefined;',
      mutants: { ConditionalExpression: 1 },
      reason: 'Without a record, there is no time either; the check satisfies the type checker.',
    },
  ],
  'shared/eviction/pod-deadline.ts': [
    {
      line: 'if (deletedAt !== undefined && podSince > deletedAt) return undefined;',
      mutants: { ConditionalExpression: 1 },
      reason: 'No number is greater than `undefined`; the check satisfies the type checker.',
    },
    {
      line: 'if (!description) {',
      mutants: { ConditionalExpression: 1 },
      reason: 'The map only avoids describing the same deadline for each pod.',
    },
    {
      line: 'described.set(found, description);',
      mutants: { CallExpression: 1 },
      reason: 'The map only avoids describing the same deadline for each pod.',
    },
    {
      line: 'seconds: seconds < MAX_SECONDS ? Number(seconds) : Number(MAX_SECONDS),',
      mutants: { EqualityOperator: 1 },
      reason: 'If they are equal, either is the number.',
    },
  ],
  'shared/eviction/release-order.ts': [
    {
      line: 'const byDeadline = [...pods].sort((a, b) => a.dueAt - b.dueAt || (a.uid < b.uid ? -1 : 1));',
      mutants: { EqualityOperator: 1 },
      reason: 'No two pods have the same UID.',
    },
  ],
  'shared/eviction/retry.ts': [
    {
      line: 'return earliest(moments.filter((moment) => moment !== undefined && moment > now));',
      mutants: { ConditionalExpression: 1 },
      reason: '`undefined` is never after `now`; the check satisfies the type checker.',
    },
    {
      line: "failure: failure ?? { since, error: failures.everything ?? '' },",
      mutants: { StringLiteral: 1 },
      reason:
        "A record without a failure of its own counts here only if `everything` is set, which the type checker can't infer.",
    },
  ],
  'shared/eviction/settings.ts': [
    {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: The line is source text.
      line: 'export const text = (what: string) => z.string(`must be ${what}`).min(1, `must be ${what}`);',
      mutants: { StringLiteral: 1 },
      reason: 'Without a message of its own, a check uses the message of its type, which is the same.',
    },
    {
      line: "decode: (written) => (typeof written === 'string' ? Number.parseFloat(written) : written),",
      mutants: { ConditionalExpression: 1 },
      reason: '`parseFloat` returns the same number for a number.',
    },
  ],
  'shared/state/policy-document.ts': [
    {
      line: 'function withoutNulls(value: unknown, above: readonly unknown[] = []): unknown {',
      mutants: { ArrayDeclaration: 1 },
      reason: 'It is one level less of more than a policy has.',
    },
    {
      line: 'if (above.length > MAX_LEVELS || above.includes(value)) return value;',
      mutants: { LogicalOperator: 1, ConditionalExpression: 1, EqualityOperator: 1 },
      reason: 'A deeper document is rejected by the schema, with or without its nulls.',
    },
    {
      line: 'schema instanceof z.ZodOptional ||',
      mutants: { ConditionalExpression: 1 },
      reason: 'No other schema has an inner type.',
    },
    {
      line: 'if (!(error instanceof YAMLException)) throw error;',
      mutants: { ConditionalExpression: 1 },
      reason: "Reading YAML throws nothing else. Any other error would not be the policy author's fault.",
    },
  ],
  'shared/taints/deadline.ts': [
    {
      line: 'return podSince <= limits.from ? limits.latest : earliest(limits.causes, podSince);',
      mutants: { EqualityOperator: 1, ConditionalExpression: 1 },
      reason:
        'A pod that was there before the taints gets the deadline that all of them share; worked out for it alone, it is the same.',
    },
    {
      line: 'return seconds > 0n ? seconds : 0n;',
      mutants: { EqualityOperator: 1 },
      reason: 'Zero seconds are zero either way.',
    },
    {
      line: 'if (atMs > MAX_DATE_MS) return Number(MAX_DATE_MS);',
      mutants: { EqualityOperator: 1 },
      reason: 'At the limit it returns the limit either way.',
    },
    {
      line: 'if (atMs < -MAX_DATE_MS) return Number(-MAX_DATE_MS);',
      mutants: { EqualityOperator: 1 },
      reason: 'At the limit it returns the limit either way.',
    },
  ],
  'shared/taints/deciding.ts': [
    {
      line: 'const open = evicting.map(({ virtual }, at) => virtual === true && progress[at] !== FOUND);',
      mutants: { ConditionalExpression: 1 },
      reason:
        'A NoExecute taint is the same as itself when it executes: another walk finds the same tolerations again. The condition spares the walk.',
    },
    {
      line: 'if (open.includes(true)) {',
      mutants: { ConditionalExpression: 1 },
      reason: 'Where nothing is open the walk finds nothing; the condition spares it.',
    },
    {
      line: 'for (const at of (toleration.key ? byKey.get(toleration.key) : all) ?? []) {',
      mutants: { ArrayDeclaration: 1 },
      reason: 'There is no taint at such a place, and the loop goes on to the next.',
    },
    {
      line: 'if (tolerates(taint, toleration, { comparisonOperators: false })) {',
      mutants: { ObjectLiteral: 1 },
      reason: 'An absent option is off.',
    },
  ],
  'shared/taints/match.ts': [
    {
      line: 'return left !== undefined && right !== undefined && left < right;',
      mutants: { ConditionalExpression: 3, LogicalOperator: 1 },
      reason:
        '`undefined` is less than nothing, and nothing is less than it: the checks are for the type checker.',
    },
  ],
  'shared/taints/taint-argument.ts': [
    {
      line: "const [keyAndValue = '', effect, ...moreEffects] = text.split(':');",
      mutants: { StringLiteral: 1 },
      reason: 'A text that is split has a first part; the type checker does not know.',
    },
    {
      line: "const [key = '', value = '', ...moreValues] = keyAndValue.split('=');",
      mutants: { StringLiteral: 1 },
      reason: 'A text that is split has a first part; the type checker does not know.',
    },
  ],
  'shared/taints/validation.ts': [
    {
      line: "const name = parts.at(-1) ?? '';",
      mutants: { StringLiteral: 1 },
      reason: 'A text that is split has a last part; the type checker does not know.',
    },
    {
      line: "return [...(parts.length === 2 ? prefixFaults(parts[0] ?? '') : []), ...nameFaults(name)];",
      mutants: { StringLiteral: 1 },
      reason: 'Two parts have a first one; the type checker does not know.',
    },
  ],
};
