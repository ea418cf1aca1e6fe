import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseProtobuf } from '#simulator/api/protobuf.ts';
import { parseJson } from '#simulator/objects/json.ts';
import { StatusError } from '#simulator/objects/status.ts';

/** Encoded by `k8s.io/apimachinery/pkg/runtime/serializer/protobuf`. */
const EVICTION =
  'azhzAAoVCglwb2xpY3kvdjESCEV2aWN0aW9uEi4KHAoFd2ViLTASABoHZGVmYXVsdCIAKgAyADgAQgASDggAEgUKA3UtMSoDQWxs' +
  'GgAiAA==';
const DEPLOYMENT =
  'azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50EpcDCikKA3dlYhIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViWggKBHRpZXISABLb' +
  'AggAEh0KCgoDYXBwEgN3ZWISDwoBeBIFTm90SW4aABoBYhqNAgocCgASABoAIgAqADIAOABCAFoKCgNhcHASA3dlYhLsAQoQCgF2' +
  'EgsSCQoAEgUKAzFHaRJoCgRtYWluEgduZ2lueDoxKgA6EQoBUxIAGgoiCAoDCgFzEgFrQg8SDQoDY3B1EgYKBDEwMG1SIQoVEhMK' +
  'AS8SCggBEAAaBGh0dHAaACIAEAAYACAFKAAwAGoAcgCAAQCIAQCQAQCiAQAaADIAQgBKAFIAWABgAGgAggEAigEAmgEAsgEsCgtt' +
  'YWludGVuYW5jZRIGRXhpc3RzGgAiCU5vRXhlY3V0ZSj//////////3+yASIKABIGRXhpc3RzGgAiCU5vRXhlY3V0ZSj7////////' +
  '//8BwgEAIiQKDVJvbGxpbmdVcGRhdGUSEwoGCAAQARoAEgkIARAAGgMyNSUoADgAGgwIABAAGAAgACgAOAAaACIA';

const DEPLOYMENT_JSON = `
{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","labels":{"app":"web","tier":""}},
"spec":{"replicas":0,"selector":{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"x",
"operator":"NotIn","values":["","b"]}]},"template":{"metadata":{"labels":{"app":"web"}},
"spec":{"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}],"containers":[{"name":"main",
"image":"nginx:1","env":[{"name":"S","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}],
"resources":{"requests":{"cpu":"100m"}},"livenessProbe":{"httpGet":{"path":"/","port":"http"},
"periodSeconds":5}}],"tolerations":[{"key":"maintenance","operator":"Exists","effect":"NoExecute",
"tolerationSeconds":9223372036854775807},{"operator":"Exists","effect":"NoExecute",
"tolerationSeconds":-5}]}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,
"maxSurge":"25%"}}},"status":{}}`;

/** Removes zero values. Go omits zero numbers and flags in JSON, but not in protobuf. */
function withoutZeros(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutZeros);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, field]): [string, unknown] => [name, withoutZeros(field)])
      .filter(
        ([, field]) =>
          field !== 0 &&
          field !== false &&
          !(typeof field === 'object' && Object.keys(field ?? {}).length === 0),
      ),
  );
}

const decoded = (base64: string) => parseProtobuf(Buffer.from(base64, 'base64'));
const refused = (error: unknown) => error instanceof StatusError && error.code === 400;

describe('protobuf', () => {
  test('decodes an Eviction with its options, including zero values', () => {
    assert.deepEqual(decoded(EVICTION), {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'web-0', namespace: 'default', generation: 0 },
      deleteOptions: { gracePeriodSeconds: 0, preconditions: { uid: 'u-1' }, dryRun: ['All'] },
    });
  });

  test('decodes a Deployment like its JSON: maps, quantities, shares, 64-bit integers, embedded messages', () => {
    assert.deepEqual(withoutZeros(decoded(DEPLOYMENT)), withoutZeros(parseJson(DEPLOYMENT_JSON)));
  });

  test('rejects truncated input or decodes its complete part', () => {
    const bytes = Buffer.from(DEPLOYMENT, 'base64');
    for (let length = 0; length < bytes.length; length += 1) {
      try {
        parseProtobuf(bytes.subarray(0, length));
      } catch (error) {
        assert.ok(refused(error), String(error));
      }
    }
  });

  test('rejects an unknown kind', () => {
    const secret = Buffer.from('k8s\0\n\x0c\n\x02v1\x12\x06Secret');
    assert.throws(() => parseProtobuf(secret), /Secret in version "v1" is not known/);
  });
});
