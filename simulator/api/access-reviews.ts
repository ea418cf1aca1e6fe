/**
 * A review by which a client asks for its permissions. A client with the token has all permissions, so the answer is constant.
 */
interface Review {
  readonly name: string;
  readonly kind: string;
  readonly status: object;
}

const EVERYTHING = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };
const EVERY_PATH = { verbs: ['*'], nonResourceURLs: ['*'] };

export const REVIEWS: readonly Review[] = [
  { name: 'selfsubjectaccessreviews', kind: 'SelfSubjectAccessReview', status: { allowed: true } },
  {
    name: 'selfsubjectrulesreviews',
    kind: 'SelfSubjectRulesReview',
    status: { resourceRules: [EVERYTHING], nonResourceRules: [EVERY_PATH], incomplete: false },
  },
];

/** Returns the answer to a POST to `path`; `undefined`: `path` names no review. */
export function reviewAt(path: string): object | undefined {
  const found = REVIEWS.find(({ name }) => path === `/apis/authorization.k8s.io/v1/${name}`);
  if (found === undefined) return undefined;
  const { kind, status } = found;
  return { kind, apiVersion: 'authorization.k8s.io/v1', metadata: {}, spec: {}, status };
}
